//! The Meridio front end: clusters that serve a trench, asked by clients that are not part of this project.

mod changed_prefix;
mod clients;
mod conduits;
mod cooling;
mod exhausted;
mod expiry;
mod failover;
mod foreign;
mod nsp;
mod simultaneous;
mod socket;
mod trench;
mod unknown_conduit;
mod vectors;
