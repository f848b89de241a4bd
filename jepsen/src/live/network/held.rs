//! Frames that the switch holds back until they are due.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Instant;

/// Limit of held frames: 500 ms at 1.5 Gbit/s.
const LIMIT: usize = 1 << 16;

/// Identifier of a port, never used twice.
pub(super) type PortId = u32;

/// One frame with its link.
#[derive(Debug)]
pub(super) struct HeldFrame {
    due: Instant,
    /// Order of frames that are due at the same time.
    sequence: u64,
    pub(super) from: PortId,
    pub(super) to: PortId,
    /// True if no later frame of its link may overtake it.
    pub(super) in_order: bool,
    pub(super) bytes: Vec<u8>,
}

/// All held frames in the order in which they are due.
#[derive(Debug, Default)]
pub(super) struct Held {
    frames: BinaryHeap<Reverse<HeldFrame>>,
    sequence: u64,
}

impl Held {
    /// True if no more frames can be held.
    pub(super) fn is_full(&self) -> bool {
        self.frames.len() >= LIMIT
    }

    /// Adds a frame of a link.
    pub(super) fn add(&mut self, due: Instant, in_order: bool, (from, to): (PortId, PortId), bytes: &[u8]) {
        self.sequence += 1;
        let (sequence, bytes) = (self.sequence, bytes.to_vec());
        self.frames.push(Reverse(HeldFrame { due, sequence, from, to, in_order, bytes }));
    }

    /// Time at which the first frame is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.frames.peek().map(|Reverse(first)| first.due)
    }

    /// Removes the first frame if it is due.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<HeldFrame> {
        if self.next_due()? > now {
            return None;
        }
        self.frames.pop().map(|Reverse(first)| first)
    }
}

impl Ord for HeldFrame {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.due, self.sequence).cmp(&(other.due, other.sequence))
    }
}

impl PartialOrd for HeldFrame {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for HeldFrame {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for HeldFrame {}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn frames_leave_when_due_in_their_order() {
        let (mut held, start) = (Held::default(), Instant::now());
        for (at_ms, name) in [(20, b'c'), (10, b'a'), (10, b'b')] {
            held.add(start + Duration::from_millis(at_ms), true, (1, 2), &[name]);
        }
        assert!(held.take_due(start + Duration::from_millis(9)).is_none());
        let late = start + Duration::from_millis(20);
        let order: Vec<_> = std::iter::from_fn(|| held.take_due(late)).flat_map(|one| one.bytes).collect();
        assert_eq!(order, b"abc");
        assert_eq!(held.next_due(), None);
    }

    #[test]
    fn the_number_of_held_frames_is_limited() {
        let (mut held, now) = (Held::default(), Instant::now());
        for _ in 0..LIMIT {
            assert!(!held.is_full());
            held.add(now, true, (1, 2), &[]);
        }
        assert!(held.is_full());
    }
}
