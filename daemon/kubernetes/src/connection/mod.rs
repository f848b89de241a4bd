//! Connection to an API server: bounded bodies, names without `getaddrinfo`, and quorum reads.

mod body;
mod discovery;
mod open;
mod read;
mod signal;
mod transport;
mod write;

pub(crate) use self::body::TooLong;
pub(crate) use self::discovery::Kinds;
pub(crate) use self::open::Connection;
pub(crate) use self::read::{Presence, is_name, list_uids, read};
pub(crate) use self::signal::Signal;
pub(crate) use self::write::{Target, finalizers};
