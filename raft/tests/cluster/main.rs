//! Whole clusters of members in one process, over loopback and real disks.

mod founding;
mod harness;
mod leading;
mod strangers;
