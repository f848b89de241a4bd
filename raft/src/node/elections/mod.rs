//! Elections: the time of a campaign, and the campaign.
//!
//! openraft's own timer is off. Its timeouts are fixed at start, and on a disk whose fsync takes as long as
//! they do a candidate gives up before the votes are on the voters' disks: the next term then costs the same
//! fsyncs again, and no leader is ever elected. So this member asks for votes itself, with the time that the
//! disks need, and repeats a request with the same term. Its raft campaigns once a majority has the vote on
//! disk: the requests that openraft sends then are answered without an fsync. A vote counts for openraft only
//! by those answers.

mod campaign;
mod timer;

pub(super) use campaign::{Candidate, Elections};
