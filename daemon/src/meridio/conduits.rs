//! Notifications about conduits: a number that changes whenever this member sees a changed conduit.
//!
//! A conduit is a prefix of a pool, or a request for a prefix. Each check compares their number and newest
//! id, so other changes of the state cause no notification. Without a subscriber there are no checks.

use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use ipam_api::name::Name;
use ipam_machine::State;
use ipam_machine::command::Kind;
use ipam_raft::node::Node;
use tokio::sync::Notify;
use tokio::sync::watch::{Receiver, Sender, channel};
use tokio::time::sleep;

/// Shortest pause between two checks.
const PAUSE: Duration = Duration::from_millis(20);
/// Pause after a check, as a multiple of its duration.
const REST: u32 = 20;

/// Number and newest id of the prefixes, and of the waiting requests, directly below the pools.
type Seen = [(u64, u64); 2];

/// Notifications about conduits.
#[derive(Debug)]
pub(super) struct Conduits {
    /// Sender of the notifications; none once the member stops.
    changes: RwLock<Option<Sender<u64>>>,
    subscribed: Notify,
}

impl Default for Conduits {
    fn default() -> Self {
        Self { changes: RwLock::new(Some(Sender::default())), subscribed: Notify::new() }
    }
}

/// Ends the notifications when it is dropped.
struct Closing<'a>(&'a Conduits);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        *self.0.changes.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Conduits {
    /// Subscribes to changes from now on. The receiver is closed once the member stops.
    pub(super) fn subscribe(&self) -> Receiver<u64> {
        let receiver = self.of_sender(Sender::subscribe);
        self.subscribed.notify_one();
        receiver.unwrap_or_else(|| channel(0).1)
    }

    fn of_sender<R>(&self, get: impl FnOnce(&Sender<u64>) -> R) -> Option<R> {
        self.changes.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(get)
    }

    /// Follows the state of a member until the future is dropped. Then waiting calls end, and their clients
    /// connect to another member.
    pub(super) async fn follow(&self, node: &Node, pools: &[Name]) {
        let _closing = Closing(self);
        self.watch(node.events_revision(), || seen(&node.stale().0, pools)).await;
    }

    /// Checks after each published state with events, while there is a subscriber.
    async fn watch(&self, mut published: Receiver<u64>, look: impl Fn() -> Seen) {
        let mut known = look();
        loop {
            while self.of_sender(Sender::receiver_count) == Some(0) {
                self.subscribed.notified().await;
            }
            published.mark_unchanged();
            let begun = Instant::now();
            let now = look();
            if now != known {
                known = now;
                self.of_sender(|changes| changes.send_modify(|number| *number = number.wrapping_add(1)));
            }
            // Each allocation changes the state, and must not cost a check of its own.
            sleep(PAUSE.max(begun.elapsed() * REST)).await;
            if published.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Prefixes of the pools, and requests that wait for one.
fn seen(state: &State, pools: &[Name]) -> Seen {
    let mut seen = Seen::default();
    for id in pools.iter().filter_map(|pool| state.id_of(Kind::Pool, pool)) {
        let prefixes = state.prefixes_below(id.into()).map(u64::from);
        let claims = state.prefix_claims_from(id.into()).map(u64::from);
        let [of_prefixes, of_claims] = &mut seen;
        prefixes.for_each(|id| note(of_prefixes, id));
        claims.for_each(|id| note(of_claims, id));
    }
    seen
}

fn note((count, newest): &mut (u64, u64), id: u64) {
    *count += 1;
    *newest = (*newest).max(id);
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use ipam_machine::command::{Delegate, PrefixLevel, PrefixSource};
    use ipam_machine::{Action, At, apply, fixtures};
    use tokio::task::yield_now;

    use super::*;

    /// Yields to the other futures of this task until a condition holds.
    async fn until(holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < Duration::from_secs(10), "it takes too long");
            yield_now().await;
        }
    }

    #[tokio::test]
    async fn only_changes_are_told_and_only_to_subscribers() {
        let (conduits, (publish, published)) = (Conduits::default(), channel(0));
        let (now, looks) = (Cell::new(Seen::default()), Cell::new(0u128));
        let look = || {
            looks.set(looks.get() + 1);
            now.get()
        };
        let publish_for = async |time: Duration| {
            let (begun, before) = (Instant::now(), looks.get());
            while begun.elapsed() < time {
                publish.send_modify(|revision| *revision += 1);
                yield_now().await;
            }
            (looks.get() - before, begun.elapsed())
        };
        let changes = async {
            until(|| looks.get() == 1).await;
            assert_eq!(publish_for(PAUSE * 3).await.0, 0, "nothing is subscribed");
            // The conduits changed before the subscription, so the first check reports the change.
            now.set([(1, 7), (0, 0)]);
            let mut news = conduits.subscribe();
            news.changed().await.unwrap();
            assert_eq!(looks.get(), 2);
            let (looked, took) = publish_for(PAUSE * 5).await;
            assert!(looked > 0 && looked <= took.as_millis() / PAUSE.as_millis() + 2, "{looked} in {took:?}");
            assert!(!news.has_changed().unwrap(), "other changes are no news");
            now.set([(1, 8), (0, 0)]);
            publish.send_modify(|revision| *revision += 1);
            news.changed().await.unwrap();
            drop(news);
            assert!(publish_for(PAUSE * 5).await.0 <= 1, "the subscriber has left");
        };
        tokio::select! {
            () = conduits.watch(published, look) => panic!("the state is published no more"),
            () = changes => {}
        }
    }

    #[tokio::test]
    async fn subscribers_of_a_member_that_stops_wait_no_longer() {
        let conduits = Conduits::default();
        let mut before = conduits.subscribe();
        drop(Closing(&conduits));
        assert!(before.changed().await.is_err());
        assert!(conduits.subscribe().changed().await.is_err());
    }

    fn run(state: &mut State, action: Action) {
        let at = At { log_time_ms: 1, wall_ms: 1, leadership: 0 };
        apply(state, at, &fixtures::command(action)).0.unwrap();
    }

    fn level(owner: &str, length: u8) -> PrefixLevel {
        PrefixLevel { owner: owner.parse().unwrap(), length: Some(length), keep_edges: false, ttl_ms: None }
    }

    fn delegate(pool: &str, levels: Vec<PrefixLevel>) -> Delegate {
        let from = PrefixSource::Pool(pool.parse().unwrap());
        Delegate { from, realm: Name::default_name(), levels }
    }

    #[test]
    fn conduits_are_seen_and_their_nodes_are_not() {
        let mut state = State::default();
        for (pool, cidr) in [("a", "10.0.0.0/24"), ("b", "10.0.1.0/24")] {
            run(&mut state, Action::PutSubnet(fixtures::put(fixtures::subnet(pool, cidr))));
            run(&mut state, Action::PutPool(fixtures::put(fixtures::pool(pool, pool))));
        }
        let pools = [Name::new("a").unwrap(), Name::new("gone").unwrap()];
        assert_eq!(seen(&state, &pools), Seen::default());
        run(&mut state, Action::Delegate(delegate("a", vec![level("conduit", 26)])));
        let one = seen(&state, &pools);
        assert_eq!((one[0].0, one[1].0), (1, 0));
        let inner = vec![level("conduit", 26), level("node", 28), level("child", 32)];
        run(&mut state, Action::Delegate(delegate("a", inner)));
        run(&mut state, Action::Delegate(delegate("b", vec![level("conduit", 26)])));
        assert_eq!(seen(&state, &pools), one, "neither nodes and children nor other pools");
        // A request that waits is seen, too.
        run(&mut state, Action::DelegateOrWait(delegate("a", vec![level("waits", 25)])));
        run(&mut state, Action::DelegateOrWait(delegate("a", vec![level("waits-too", 25)])));
        let all = seen(&state, &pools);
        assert_ne!(all, one);
    }
}
