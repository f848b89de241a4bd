//! The rows of the state in sled, and how a state is made of rows.

mod database;
pub(super) mod loading;
#[cfg(test)]
mod tests;
mod wakeup;

pub(super) use database::{Point, Rows, path, put_aside};
#[cfg(feature = "testing")]
pub(super) use database::{seal, unseal};
pub(super) use wakeup::{Notifier, Wakeup};
