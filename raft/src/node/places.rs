//! Limit of the proposals that wait on a member; proposals beyond the limit are refused.

use std::sync::Arc;
use std::time::Duration;

use ipam_api::limits::{PROPOSAL_BYTES_WAITING_MAX, PROPOSAL_WAIT_MS_MAX};
use ipam_machine::Command;

use super::counters::Counters;
use super::requester::Requester;
use super::shares::{Share, Shares, Size};
use crate::transport::{Busy, Declined};

/// Places for waiting proposals, shared by all requesters.
pub(super) struct Places {
    shares: Shares,
    counters: Arc<Counters>,
}

impl Places {
    /// Creates places for proposals of this total weight.
    pub(super) fn new(counters: Arc<Counters>, weight: usize) -> Self {
        Self { shares: Shares::new(Size { weight, bytes: PROPOSAL_BYTES_WAITING_MAX }), counters }
    }

    /// Takes the places of a command with these encoded bytes.
    pub(super) fn take(&self, command: &Command, bytes: usize) -> Result<Share<'_>, Declined> {
        self.shares.take(&Requester::of(command), Size::of(&command.action, bytes)).map_err(|_| {
            // The drain rate doesn't tell when a share becomes free, so the base is about the time in which a
            // full queue drains.
            self.counters.refuse(Busy::Share, Duration::from_millis(PROPOSAL_WAIT_MS_MAX / 2))
        })
    }
}
