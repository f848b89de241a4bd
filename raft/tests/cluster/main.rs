//! Whole clusters of members in one process, over loopback and real disks.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "these are tests"
)]

mod applying;
mod cut_off;
mod digests;
mod ending;
mod founding;
mod handing_on;
mod harness;
mod history;
mod invariants;
mod leadership;
mod leading;
mod links;
mod lost_leader;
mod members;
mod overload;
mod oversize;
mod slow_disks;
mod snapshot_rows;
mod strangers;
