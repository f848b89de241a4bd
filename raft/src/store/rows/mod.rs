//! The rows of the state in sled, and how a state is made of rows.

mod block;
mod database;
pub(super) mod loading;
#[cfg(test)]
mod tests;
mod wakeup;

pub(super) use block::touched;
#[cfg(feature = "testing")]
pub(super) use block::{Block, with_sum};
pub(super) use database::{Point, Rows, path, put_aside};
pub(super) use wakeup::{Notifier, Wakeup};
