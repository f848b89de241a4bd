//! Front end for clients of Meridio: its listeners, the identities of clients, and the member that answers.
//!
//! **Invariant:** nothing here decides about addresses. `ipam_meridio` turns calls into requests of the REST
//! API, and these take the way of every client's request through the router of this member.

mod admission;
mod certificates;
mod conduits;
mod contact;
mod front_end;
mod grpc;
mod identity;
mod member;
mod nsp;

pub use self::front_end::{FrontEnd, OpenError};
