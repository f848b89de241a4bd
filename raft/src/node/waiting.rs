//! Proposals that wait for an entry of this leader: admission by the expected wait, and departure.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::counters::Counters;
use super::pace::{Pace, WAIT_MAX};
use super::queue::{Costs, Queue, Queued};
use super::requester::Requester;
use super::shares::Size;
use crate::sync::held;
use crate::transport::{Busy, Declined, Stage};

/// The queue with its pace. Proposals leave it for an entry, or when their proposers give up.
pub(super) struct Waiting<T> {
    line: Mutex<Line<T>>,
    arrival: Notify,
    counters: Arc<Counters>,
}

struct Line<T> {
    queue: Queue<T>,
    pace: Pace,
    closed: bool,
}

/// Place of a proposal in the queue, for the lifetime of this value.
pub(super) struct Place<'a, T> {
    waiting: &'a Waiting<T>,
    requester: Requester,
    number: u64,
    stage: Stage,
}

/// A proposal that comes to the queue.
pub(super) struct Arrival<T> {
    pub(super) requester: Requester,
    pub(super) size: Size,
    pub(super) deadline: Instant,
    pub(super) stage: Stage,
    pub(super) item: T,
}

/// The end of the queue that serves it. Without it the queue is closed.
pub(super) struct Closed<T>(pub(super) Arc<Waiting<T>>);

impl<T> Drop for Closed<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<T> Drop for Place<'_, T> {
    fn drop(&mut self) {
        // After a false it was taken.
        if self.stage.try_give_up() || self.stage.is_given_up() {
            self.waiting.leave(&self.requester, self.number);
        }
    }
}

impl<T> Waiting<T> {
    /// An empty queue.
    pub(super) fn new(counters: Arc<Counters>) -> Self {
        let line = Line { queue: Queue::default(), pace: Pace::default(), closed: false };
        Self { line: Mutex::new(line), arrival: Notify::new(), counters }
    }

    /// Lets a proposal wait, unless it would wait for too long.
    pub(super) fn enter(&self, arrival: Arrival<T>, now: Instant) -> Result<Place<'_, T>, Declined> {
        let Arrival { requester, size, deadline, stage, item } = arrival;
        let number = {
            let mut line = held(&self.line);
            if line.closed {
                return Err(Declined::ShuttingDown);
            }
            let ahead = line.queue.ahead(&requester, size.weight);
            let wait = line.pace.wait(ahead, now);
            let wait_max = WAIT_MAX.min(deadline.saturating_duration_since(now));
            if wait > wait_max {
                drop(line);
                return Err(self.counters.refuse(Busy::Wait, wait.saturating_sub(wait_max)));
            }
            line.pace.note_arrival(now);
            line.queue.push(&requester, size, item)
        };
        self.arrival.notify_one();
        Ok(Place { waiting: self, requester, number, stage })
    }

    /// Takes the proposals of the next entry once there are any; none after the end of the queue.
    pub(super) async fn take(&self, costs: &Mutex<Costs>) -> Option<Vec<Queued<T>>> {
        loop {
            if let Some(taken) = self.try_take(costs, Instant::now()) {
                return Some(taken).filter(|taken| !taken.is_empty());
            }
            self.arrival.notified().await;
        }
    }

    /// Takes what is there: none if nothing waits yet, an empty list after the end of the queue.
    fn try_take(&self, costs: &Mutex<Costs>, now: Instant) -> Option<Vec<Queued<T>>> {
        let mut line = held(&self.line);
        if line.closed {
            return Some(Vec::new());
        }
        if line.queue.is_empty() {
            return None;
        }
        let taken = line.queue.take(&held(costs));
        let weight = taken.iter().map(|queued| queued.size.weight).sum();
        let backlog = !line.queue.is_empty();
        line.pace.note_taken(weight, backlog, now);
        Some(taken)
    }

    /// Ends the queue: proposers of what waits learn that it has no effect.
    pub(super) fn close(&self) {
        let queue = {
            let mut line = held(&self.line);
            line.closed = true;
            std::mem::take(&mut line.queue)
        };
        drop(queue);
        self.arrival.notify_one();
    }

    fn leave(&self, requester: &Requester, number: u64) {
        let mut line = held(&self.line);
        let removed = line.queue.remove(requester, number);
        if line.queue.is_empty() {
            line.pace.note_empty();
        }
        drop(line);
        if removed {
            Counters::add(&self.counters.proposals_abandoned);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ipam_machine::command::Text;

    use super::*;

    const SIZE: Size = Size { weight: 1, bytes: 100 };

    fn waiting() -> Waiting<u32> {
        Waiting::new(Arc::default())
    }

    fn arrival(principal: &str, deadline: Instant, item: u32) -> Arrival<u32> {
        let requester = Requester { principal: Text::given(principal), namespace: None };
        Arrival { requester, size: SIZE, deadline, stage: Stage::default(), item }
    }

    fn items(taken: Option<Vec<Queued<u32>>>) -> Option<Vec<u32>> {
        taken.map(|taken| taken.into_iter().map(|queued| queued.item).collect())
    }

    #[test]
    fn a_proposal_leaves_the_queue_with_its_proposer() {
        let (waiting, now) = (waiting(), Instant::now());
        let later = now + Duration::from_secs(60);
        let costs = Mutex::default();
        let stays = waiting.enter(arrival("a", later, 1), now).ok();
        let gone = waiting.enter(arrival("a", later, 2), now).ok();
        let late = arrival("b", later, 3);
        let stage = late.stage.clone();
        let late = waiting.enter(late, now).ok();
        // Its deadline has passed.
        assert!(stage.try_give_up());
        drop((gone, late));
        assert_eq!(waiting.counters.read().proposals_abandoned, 2);
        assert_eq!(items(waiting.try_take(&costs, now)), Some(vec![1]));
        assert!(waiting.try_take(&costs, now).is_none());
        drop(stays);
        assert_eq!(waiting.counters.read().proposals_abandoned, 2, "it was taken");
    }

    #[test]
    fn a_queue_that_does_not_move_refuses_at_once_and_takes_nothing_in() {
        let (waiting, now) = (waiting(), Instant::now());
        let later = now + Duration::from_secs(60);
        let _first = waiting.enter(arrival("a", later, 1), now).ok().unwrap();
        let _second = waiting.enter(arrival("a", later, 2), now + WAIT_MAX).ok().unwrap();
        let refused = waiting.enter(arrival("quiet", later, 3), now + 2 * WAIT_MAX).err().unwrap();
        let Declined::Busy { why: Busy::Wait, retry_after_ms } = refused else { panic!("{refused:?}") };
        // The time for which it has not moved beyond the bound, and up to twice that.
        assert!((2_000..4_000).contains(&retry_after_ms), "{retry_after_ms}");
        assert_eq!(waiting.counters.read().proposals_too_late, 1);
        assert_eq!(items(waiting.try_take(&Mutex::default(), now + 2 * WAIT_MAX)), Some(vec![1, 2]));
        assert!(waiting.enter(arrival("quiet", later, 4), now + 2 * WAIT_MAX).is_ok(), "it moves again");
    }

    /// The flood of one requester is refused by the drain rate; another requester is still served.
    #[test]
    fn a_flood_is_refused_by_the_drain_rate_and_a_quiet_requester_is_not() {
        let (waiting, mut now) = (waiting(), Instant::now());
        let later = now + Duration::from_secs(600);
        let costs = Mutex::default();
        let mut places = Vec::new();
        let mut refused = 0;
        // Each entry takes half a second; twice as much comes as an entry takes.
        for _ in 0..20 {
            for _ in 0..500 {
                match waiting.enter(arrival("flood", later, 0), now) {
                    Ok(place) => places.push(place),
                    Err(_) => refused += 1,
                }
            }
            now += Duration::from_millis(500);
            assert_eq!(waiting.try_take(&costs, now).unwrap().len(), 250);
        }
        assert!(refused > 3_000, "about half of 10000: {refused}");
        // What waits is served within the bound: an entry more, since the rate is an average.
        let entries = held(&waiting.line).queue.ahead(&arrival("flood", later, 0).requester, 0).div_ceil(250);
        assert!(entries <= 5, "{entries} entries of 0.5 s wait");
        assert!(waiting.enter(arrival("quiet", later, 1), now).is_ok());
        // Without the time to wait, the flood's next proposal is refused, and does not wait for its deadline.
        let soon = now + Duration::from_millis(100);
        assert!(waiting.enter(arrival("flood", soon, 1), now).is_err());
    }

    #[test]
    fn a_closed_queue_drops_what_waits() {
        let (waiting, now) = (Arc::new(waiting()), Instant::now());
        let _place = waiting.enter(arrival("a", now, 1), now).ok().unwrap();
        drop(Closed(Arc::clone(&waiting)));
        assert_eq!(items(waiting.try_take(&Mutex::default(), now)), Some(Vec::new()));
        assert_eq!(waiting.enter(arrival("a", now, 2), now).err(), Some(Declined::ShuttingDown));
    }
}
