//! States kept for lists, so that all pages of one list come from one state.
//!
//! A caller with too many lists in progress loses its own least recently used one. If all callers
//! together have too many, the least recently used state of any caller is dropped.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipam_api::limits::{
    LIST_STATE_AGE_MS_MAX, LIST_STATE_IDLE_MS_MAX, LIST_STATES_MAX, LIST_STATES_PER_CALLER_MAX,
};
use ipam_machine::State;
use tokio::time::Instant;

/// Kept states. Cloning a state is cheap, but the clone keeps rows in memory that have changed since.
#[derive(Debug, Clone, Default)]
pub(in crate::http) struct Kept(Arc<Mutex<Vec<One>>>);

#[derive(Debug)]
struct One {
    state: State,
    since: Instant,
    used: Instant,
    /// Callers that read a list from the state, which is dropped with the last caller.
    callers: BTreeSet<String>,
}

impl Kept {
    fn all(&self) -> MutexGuard<'_, Vec<One>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the state of a caller's list that has more pages.
    pub(in crate::http) fn keep(&self, caller: &str, state: &State) {
        let now = Instant::now();
        let mut all = self.all();
        drop_old(&mut all, now);
        if let Some(one) = all.iter_mut().find(|one| one.state.revision() == state.revision()) {
            one.used = now;
            if !one.callers.contains(caller) {
                one.callers.insert(caller.to_owned());
                bound(&mut all, caller, state.revision());
            }
            return;
        }
        let callers = BTreeSet::from([caller.to_owned()]);
        all.push(One { state: state.clone(), since: now, used: now, callers });
        bound(&mut all, caller, state.revision());
        if all.len() > LIST_STATES_MAX {
            let others = all.iter().enumerate().filter(|(_, one)| one.state.revision() != state.revision());
            let oldest = others.min_by_key(|(_, one)| one.used).map(|(at, _)| at);
            oldest.map(|at| all.swap_remove(at));
        }
        drop(all);
        let kept = self.clone();
        tokio::spawn(async move {
            // Without later requests nothing else would remove the state.
            tokio::time::sleep(Duration::from_millis(LIST_STATE_AGE_MS_MAX)).await;
            drop_old(&mut kept.all(), Instant::now());
        });
    }

    /// The state of a revision, if it is kept.
    pub(in crate::http) fn at(&self, revision: u64) -> Option<State> {
        let now = Instant::now();
        let mut all = self.all();
        drop_old(&mut all, now);
        let one = all.iter_mut().find(|one| one.state.revision() == revision)?;
        one.used = now;
        Some(one.state.clone())
    }
}

/// Drops a caller's least recently used state if it has too many, except the one at revision `newest`.
fn bound(all: &mut Vec<One>, caller: &str, newest: u64) {
    let own = |one: &&mut One| one.callers.contains(caller);
    if all.iter_mut().filter(own).count() <= LIST_STATES_PER_CALLER_MAX {
        return;
    }
    let earlier = all.iter_mut().filter(own).filter(|one| one.state.revision() != newest);
    if let Some(oldest) = earlier.min_by_key(|one| one.used) {
        oldest.callers.remove(caller);
    }
    all.retain(|one| !one.callers.is_empty());
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
        state.spoil_header().counter = counter;
        state
    }

    #[tokio::test]
    async fn states_are_kept_while_they_are_used_and_there_is_room() {
        let kept = Kept::default();
        let states: Vec<State> = (0..=LIST_STATES_MAX as u64).map(state).collect();
        let caller = |at: usize| format!("caller-{}", at / LIST_STATES_PER_CALLER_MAX);
        for (at, state) in states[..LIST_STATES_MAX].iter().enumerate() {
            kept.keep(&caller(at), state);
        }
        // This use makes the second state the least recently used one.
        assert!(kept.at(states[0].revision()).is_some());
        kept.keep(&caller(LIST_STATES_MAX), &states[LIST_STATES_MAX]);
        assert!(kept.at(states[0].revision()).is_some());
        assert!(kept.at(states[1].revision()).is_none());
        assert_eq!(kept.all().len(), LIST_STATES_MAX);
        let later = Instant::now() + Duration::from_millis(LIST_STATE_IDLE_MS_MAX);
        drop_old(&mut kept.all(), later);
        assert!(kept.all().is_empty());
    }

    #[tokio::test]
    async fn hardening_7_a_caller_with_too_many_lists_loses_its_own_oldest_one() {
        let kept = Kept::default();
        let states: Vec<State> = (0..3 * LIST_STATES_MAX as u64).map(state).collect();
        kept.keep("you", &states[0]);
        kept.keep("both", &states[1]);
        for state in &states[1..] {
            kept.keep("me", state);
        }
        let at = |at: usize| kept.at(states[at].revision()).is_some();
        assert!(at(0) && at(1), "the lists of others go on");
        assert!(!at(2), "the caller's own oldest one does not");
        let last = states.len() - 1;
        assert!(at(last) && at(last + 1 - LIST_STATES_PER_CALLER_MAX));
        assert_eq!(kept.all().len(), 2 + LIST_STATES_PER_CALLER_MAX);
    }
}
