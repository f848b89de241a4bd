//! Race between the sender of a request and a waiter that gives up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Stage of a request. Exactly one side moves it on from waiting, and so knows the other side's limits: an
/// abandoned request is never sent, and a sent one may have had its effect.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stage(Arc<AtomicU8>);

impl Stage {
    const WAITING: u8 = 0;
    const SENT: u8 = 1;
    const GIVEN_UP: u8 = 2;

    /// Claims the request for sending. If this returns false, it must not be sent.
    pub(crate) fn try_send(&self) -> bool {
        self.move_to(Self::SENT)
    }

    /// Claims the request for giving up. If this returns false, the request may have been sent.
    pub(crate) fn try_give_up(&self) -> bool {
        self.move_to(Self::GIVEN_UP)
    }

    /// Returns true once the waiter has given up.
    pub(crate) fn is_given_up(&self) -> bool {
        self.0.load(Ordering::Acquire) == Self::GIVEN_UP
    }

    fn move_to(&self, stage: u8) -> bool {
        self.0.compare_exchange(Self::WAITING, stage, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
