//! Model: an independent implementation of the rules of allocation, driven by the journal.
//!
//! It shares no code with the state machine. Each event must be legal in its state, and its last state must
//! be that of every member.

mod apply;
mod compare;
mod pools;
mod state;

pub use self::compare::Differences;
pub use self::pools::PoolSpecs;
pub use self::state::{Held, Model};
