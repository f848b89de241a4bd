//! Access: roles, limits of operators and rights of nodes, decided on the state that a command meets.

mod application;
mod limits;
mod node;
mod permit;
mod waiter;
mod within;

pub use self::permit::*;
