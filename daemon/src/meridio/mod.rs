//! Front end for clients of Meridio: listeners, identities of clients, and the member that answers.
//!
//! **Invariant:** nothing here decides about addresses. `ipam_meridio` turns calls into requests of the REST
//! API, which pass through the router of this member like every client's request.

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
