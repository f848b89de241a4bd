//! Elections: the election timer, and the campaigns that it starts.
//!
//! openraft's own timer is off. Its timeouts are fixed at start. If an fsync takes longer than such a
//! timeout, a candidate gives up before the votes are on the voters' disks; the next term costs the same
//! fsyncs again, and no leader is ever elected. So this member requests the votes itself, with a timeout that
//! follows the measured fsyncs. A repeated request names the same term, and finds the votes on disk. Once a
//! majority has the vote on disk, this member starts openraft's election in that term. The voters answer
//! openraft's requests without an fsync, and only these answers count as votes for openraft.

mod campaign;
mod signs;
mod timer;

pub(super) use campaign::Candidate;
pub(super) use signs::Elections;
