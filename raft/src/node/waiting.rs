//! Proposals that wait for an entry of this leader: admission by the expected wait, and departure.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::counters::Counters;
use super::pace::{Pace, WAIT_MAX};
use super::queue::{Costs, Queue, Queued};
use super::requester::Requester;
use super::shares::Size;
use crate::sync::held;
use crate::transport::{Busy, Declined, Stage};

/// Weight of proposals that is enough for an entry, whatever is in flight.
const ENOUGH: usize = 256;
/// Weight in flight below which an equal weight is enough: two clients shall not wait for each other.
const FEW: usize = 8;
/// Maximum time for which proposals gather while an entry is in flight; most entries take less.
const GATHERING_MAX: Duration = Duration::from_millis(10);

/// The queue with its pace. Proposals leave it for an entry, or when their proposers give up.
pub(super) struct Waiting<T> {
    line: Mutex<Line<T>>,
    arrival: Notify,
    costs: Mutex<Costs>,
    counters: Arc<Counters>,
}

struct Line<T> {
    queue: Queue<T>,
    pace: Pace,
    /// Weight of entries in flight.
    in_flight: usize,
    closed: bool,
}

/// Place of a proposal in the queue, for the lifetime of this value.
pub(super) struct Place<'a, T> {
    waiting: &'a Waiting<T>,
    requester: Requester,
    number: u64,
    stage: Stage,
}

/// A new proposal for the queue.
pub(super) struct Arrival<T> {
    pub(super) requester: Requester,
    pub(super) size: Size,
    pub(super) deadline: Instant,
    pub(super) stage: Stage,
    pub(super) item: T,
}

/// Entry in flight, for the lifetime of this value.
pub(super) struct InFlight<T> {
    pub(super) waiting: Arc<Waiting<T>>,
    weight: usize,
}

/// Serving end of the queue; dropping it closes the queue.
pub(super) struct Closed<T>(pub(super) Arc<Waiting<T>>);

impl<T> Drop for Closed<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<T> Drop for Place<'_, T> {
    fn drop(&mut self) {
        // Otherwise the proposal was taken for an entry.
        if self.stage.try_give_up() || self.stage.is_given_up() {
            self.waiting.leave(&self.requester, self.number);
        }
    }
}

impl<T> Drop for InFlight<T> {
    fn drop(&mut self) {
        let is_enough = {
            let mut line = held(&self.waiting.line);
            line.in_flight = line.in_flight.saturating_sub(self.weight);
            line.is_enough()
        };
        if is_enough {
            self.waiting.arrival.notify_one();
        }
    }
}

impl<T> Line<T> {
    /// Returns true if the next entry may be formed. An entry costs many times more than a proposal in it,
    /// so an entry beside one in flight needs twice its weight, at most [`ENOUGH`]. Beside fewer than [`FEW`]
    /// proposals, the same weight is enough, and with no entry in flight one proposal.
    fn is_enough(&self) -> bool {
        let factor = if self.in_flight < FEW { 1 } else { 2 };
        self.queue.weight() >= (factor * self.in_flight).clamp(1, ENOUGH)
    }
}

impl<T> Waiting<T> {
    /// An empty queue.
    pub(super) fn new(counters: Arc<Counters>) -> Self {
        let line = Line { queue: Queue::default(), pace: Pace::default(), in_flight: 0, closed: false };
        Self { line: Mutex::new(line), arrival: Notify::new(), costs: Mutex::default(), counters }
    }

    /// Returns the measured apply times of commands.
    pub(super) fn costs(&self) -> MutexGuard<'_, Costs> {
        held(&self.costs)
    }

    /// Queues a proposal, unless its expected wait is too long.
    pub(super) fn enter(&self, arrival: Arrival<T>, now: Instant) -> Result<Place<'_, T>, Declined> {
        let Arrival { requester, size, deadline, stage, item } = arrival;
        let (number, wakes) = {
            let mut line = held(&self.line);
            if line.closed {
                return Err(Declined::ShuttingDown);
            }
            let ahead = line.queue.ahead(&requester, size.weight);
            let entries = line.queue.entries(&requester, size.weight, &self.costs());
            let wait = line.pace.wait(ahead, entries, now);
            let wait_max = WAIT_MAX.min(deadline.saturating_duration_since(now));
            if wait > wait_max {
                drop(line);
                return Err(self.counters.refuse(Busy::Wait, wait.saturating_sub(wait_max)));
            }
            line.pace.note_arrival(now);
            let is_first = line.queue.is_empty();
            (line.queue.push(&requester, size, item), is_first || line.is_enough())
        };
        // Otherwise the end of the entry in flight wakes the queue.
        if wakes {
            self.arrival.notify_one();
        }
        Ok(Place { waiting: self, requester, number, stage })
    }

    /// Takes the proposals of the next entry once there are enough, or some have gathered for long enough;
    /// none after the end of the queue.
    pub(super) async fn take(self: &Arc<Self>) -> Option<(Vec<Queued<T>>, InFlight<T>)> {
        let mut gathered = None;
        loop {
            let now = Instant::now();
            if let Some(taken) = self.try_take(now, gathered.is_some_and(|at| at <= now)) {
                if taken.is_empty() {
                    return None;
                }
                let in_flight = self.in_flight(taken.iter().map(|queued| queued.size.weight).sum());
                return Some((taken, in_flight));
            }
            if held(&self.line).queue.is_empty() {
                gathered = None;
                self.arrival.notified().await;
            } else {
                let at = *gathered.get_or_insert(now + GATHERING_MAX);
                let _gathered = timeout_at(at, self.arrival.notified()).await;
            }
        }
    }

    fn in_flight(self: &Arc<Self>, weight: usize) -> InFlight<T> {
        held(&self.line).in_flight += weight;
        InFlight { waiting: Arc::clone(self), weight }
    }

    /// Takes the waiting proposals: none if too few wait, an empty list if the queue is closed.
    fn try_take(&self, now: Instant, is_late: bool) -> Option<Vec<Queued<T>>> {
        let mut line = held(&self.line);
        if line.closed {
            return Some(Vec::new());
        }
        if line.queue.is_empty() || !(is_late || line.is_enough()) {
            return None;
        }
        let taken = line.queue.take(&self.costs());
        let weight = taken.iter().map(|queued| queued.size.weight).sum();
        let backlog = !line.queue.is_empty();
        line.pace.note_taken(weight, backlog, now);
        Some(taken)
    }

    /// Closes the queue. The proposers of waiting proposals learn that these have no effect.
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
        let stays = waiting.enter(arrival("a", later, 1), now).ok();
        let gone = waiting.enter(arrival("a", later, 2), now).ok();
        let late = arrival("b", later, 3);
        let stage = late.stage.clone();
        let late = waiting.enter(late, now).ok();
        // Its deadline has passed.
        assert!(stage.try_give_up());
        drop((gone, late));
        assert_eq!(waiting.counters.read().proposals_abandoned, 2);
        assert_eq!(items(waiting.try_take(now, false)), Some(vec![1]));
        assert!(waiting.try_take(now, false).is_none());
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
        assert_eq!(items(waiting.try_take(now + 2 * WAIT_MAX, false)), Some(vec![1, 2]));
        assert!(waiting.enter(arrival("quiet", later, 4), now + 2 * WAIT_MAX).is_ok(), "it moves again");
    }

    /// The flood of one requester is refused by the drain rate; another requester is still served.
    #[test]
    fn a_flood_is_refused_by_the_drain_rate_and_a_quiet_requester_is_not() {
        let (waiting, mut now) = (waiting(), Instant::now());
        let later = now + Duration::from_secs(600);
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
            assert_eq!(waiting.try_take(now, false).unwrap().len(), 250);
        }
        assert!(refused > 3_000, "about half of 10000: {refused}");
        // Waiting proposals are served within the bound and one more entry, since the rate is an average.
        let entries = held(&waiting.line).queue.ahead(&arrival("flood", later, 0).requester, 0).div_ceil(250);
        assert!(entries <= 5, "{entries} entries of 0.5 s wait");
        assert!(waiting.enter(arrival("quiet", later, 1), now).is_ok());
        // Without the time to wait, the flood's next proposal is refused, and does not wait for its deadline.
        let soon = now + Duration::from_millis(100);
        assert!(waiting.enter(arrival("flood", soon, 1), now).is_err());
    }

    /// A second entry waits until it is worth its costs, for the first one to end, or for its time.
    #[tokio::test]
    async fn proposals_gather_beside_an_entry_in_flight() {
        let waiting = Arc::new(waiting());
        let later = Instant::now() + Duration::from_secs(600);
        let enter = |item| waiting.enter(arrival("a", later, item), Instant::now()).ok().unwrap();
        let take = async || {
            let (taken, in_flight) = waiting.take().await.unwrap();
            (taken.into_iter().map(|queued| queued.item).collect::<Vec<_>>(), in_flight)
        };
        let mut places: Vec<_> = (1..=3).map(enter).collect();
        let (taken, first) = take().await;
        assert_eq!(taken, [1, 2, 3], "nothing is in flight");
        places.extend((4..=5).map(enter));
        assert!(waiting.try_take(Instant::now(), false).is_none(), "two beside three");
        places.push(enter(6));
        let (taken, second) = take().await;
        assert_eq!(taken, [4, 5, 6]);
        places.push(enter(7));
        let (taken, third) = take().await;
        assert_eq!(taken, [7], "alone, once its time is over");
        places.push(enter(8));
        drop((first, second, third));
        let taken = waiting.try_take(Instant::now(), false);
        assert_eq!(items(taken), Some(vec![8]), "nothing is in flight");
        drop(places);
    }

    #[tokio::test]
    async fn beside_many_proposals_an_entry_needs_twice_as_many() {
        let waiting = Arc::new(waiting());
        let later = Instant::now() + Duration::from_secs(600);
        let enter = |_| waiting.enter(arrival("a", later, 0), Instant::now()).ok().unwrap();
        let mut places: Vec<_> = (0..FEW).map(enter).collect();
        let (taken, in_flight) = waiting.take().await.unwrap();
        assert_eq!(taken.len(), FEW);
        places.extend((1..2 * FEW).map(enter));
        assert!(waiting.try_take(Instant::now(), false).is_none());
        places.push(enter(0));
        assert_eq!(waiting.try_take(Instant::now(), false).map(|taken| taken.len()), Some(2 * FEW));
        drop((in_flight, places));
    }

    /// One command of an expensive principal fits into an entry, whatever the drain rate of the others.
    #[test]
    fn the_wait_of_an_expensive_principal_counts_its_entries() {
        let (waiting, mut now) = (waiting(), Instant::now());
        let later = now + Duration::from_secs(600);
        waiting.costs().note(&Text::given("dear"), 1, Duration::from_secs(1));
        let mut places = Vec::new();
        for _ in 0..40 {
            places.extend((0..200).map(|_| waiting.enter(arrival("cheap", later, 0), now).ok().unwrap()));
            places.extend((0..5).filter_map(|_| waiting.enter(arrival("dear", later, 1), now).ok()));
            now += Duration::from_millis(100);
            waiting.try_take(now, false).unwrap();
        }
        let queued =
            held(&waiting.line).queue.entries(&arrival("dear", later, 1).requester, 0, &waiting.costs());
        assert!((10..=25).contains(&queued), "{queued} entries of 0.1 s wait");
    }

    #[test]
    fn a_closed_queue_drops_what_waits() {
        let (waiting, now) = (Arc::new(waiting()), Instant::now());
        let _place = waiting.enter(arrival("a", now, 1), now).ok().unwrap();
        drop(Closed(Arc::clone(&waiting)));
        assert_eq!(items(waiting.try_take(now, false)), Some(Vec::new()));
        assert_eq!(waiting.enter(arrival("a", now, 2), now).err(), Some(Declined::ShuttingDown));
    }
}
