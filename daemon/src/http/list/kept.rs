//! The states that lists are being read from, kept for a while, so that all pages of one list come from one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ipam_api::limits::{LIST_STATE_AGE_MS_MAX, LIST_STATE_IDLE_MS_MAX, LIST_STATES_MAX};
use ipam_raft::machine::State;

/// Kept states. A clone of a state is cheap; what makes it dear is how long it holds on to what has changed since.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Vec<One>>>);

#[derive(Debug)]
struct One {
    state: State,
    since: Instant,
    used: Instant,
}

impl Kept {
    fn all(&self) -> MutexGuard<'_, Vec<One>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the state of a list that has more pages.
    pub(super) fn keep(&self, state: &State) {
        let now = Instant::now();
        let mut all = self.all();
        drop_old(&mut all, now);
        if let Some(one) = all.iter_mut().find(|one| one.state.revision() == state.revision()) {
            one.used = now;
            return;
        }
        if all.len() >= LIST_STATES_MAX {
            let oldest = all.iter().enumerate().min_by_key(|(_, one)| one.used).map(|(at, _)| at);
            oldest.map(|at| all.swap_remove(at));
        }
        all.push(One { state: state.clone(), since: now, used: now });
        drop(all);
        let kept = self.clone();
        tokio::spawn(async move {
            // Nobody may come by any more who would clear it away.
            tokio::time::sleep(Duration::from_millis(LIST_STATE_AGE_MS_MAX)).await;
            drop_old(&mut kept.all(), Instant::now());
        });
    }

    /// The state of a revision, if it is kept.
    pub(super) fn at(&self, revision: u64) -> Option<State> {
        let now = Instant::now();
        let mut all = self.all();
        drop_old(&mut all, now);
        let one = all.iter_mut().find(|one| one.state.revision() == revision)?;
        one.used = now;
        Some(one.state.clone())
    }
}

fn drop_old(all: &mut Vec<One>, now: Instant) {
    all.retain(|one| {
        now.duration_since(one.used) < Duration::from_millis(LIST_STATE_IDLE_MS_MAX)
            && now.duration_since(one.since) < Duration::from_millis(LIST_STATE_AGE_MS_MAX)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(counter: u64) -> State {
        let mut state = State::new();
        state.header.counter = counter;
        state
    }

    #[tokio::test]
    async fn states_are_kept_while_they_are_used_and_there_is_room() {
        let kept = Kept::default();
        let states: Vec<State> = (0..=LIST_STATES_MAX as u64).map(state).collect();
        states[..LIST_STATES_MAX].iter().for_each(|state| kept.keep(state));
        // Used again, and so not the oldest.
        assert!(kept.at(states[0].revision()).is_some());
        kept.keep(&states[LIST_STATES_MAX]);
        assert!(kept.at(states[0].revision()).is_some());
        assert!(kept.at(states[1].revision()).is_none());
        assert_eq!(kept.all().len(), LIST_STATES_MAX);
        let later = Instant::now() + Duration::from_millis(LIST_STATE_IDLE_MS_MAX);
        drop_old(&mut kept.all(), later);
        assert!(kept.all().is_empty());
    }
}
