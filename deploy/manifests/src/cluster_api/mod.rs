//! Provider of Cluster API: definitions of its pool kinds, and the files that clusterctl installs.

mod components;
mod files;
mod kinds;
mod rules;

pub use self::files::{files, folder};
