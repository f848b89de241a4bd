//! Client of Meridio's NSP service, which lists the conduits of the trench.

mod apply;
mod connect;
mod follow;

pub use self::connect::Tls;
pub use self::follow::{Followed, follow_conduits};
