//! Linearizability of one register, by the search of Wing, Gong and Lowe.
//!
//! The search passes over the begins and ends of operations in the order of time and keeps all
//! configurations: a state of the register with the set of open operations that have taken effect in it.
//! Before an operation ends, it must have taken effect. Equal configurations are kept once, as Lowe's memo
//! does. The cost depends on the number of operations that are open at the same time, not on the length of
//! the history.

use std::collections::{BTreeMap, BTreeSet};

/// Sequential specification.
pub trait Register {
    /// State.
    type State: Clone + Ord;
    /// Effect of an operation with its result.
    type Act;

    /// State after an operation, or none if it can't have this result in this state.
    fn step(state: &Self::State, act: &Self::Act) -> Option<Self::State>;
}

/// Operation with its time.
#[derive(Debug, Clone)]
pub struct Timed<Act> {
    /// Begin.
    pub begin_ns: u64,
    /// End; the maximum for an operation that may take effect at any later time.
    pub end_ns: u64,
    /// True for an operation that may never take effect.
    pub is_optional: bool,
    /// Effect and result.
    pub act: Act,
}

/// Result of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The history is linearizable.
    Linearizable,
    /// The history is not linearizable: no order explains the end of the operation with this index.
    Violation(usize),
    /// The search exceeded its bound.
    Undecided,
}

/// Open operations that have taken effect, with the state after them.
type Configuration<State> = (State, BTreeSet<usize>);

/// Searches an order for the operations of one register.
///
/// `states_max` bounds the number of configurations at one time and the number of steps per operation, so
/// that the result doesn't depend on the speed of the machine.
#[must_use]
pub fn search<R: Register>(initial: R::State, operations: &[Timed<R::Act>], states_max: usize) -> Found {
    let mut turns: Vec<(u64, bool, usize)> = Vec::with_capacity(operations.len() * 2);
    for (at, operation) in operations.iter().enumerate() {
        // Begins come before ends of the same instant: the two operations overlap.
        turns.push((operation.begin_ns, false, at));
        turns.push((operation.end_ns, true, at));
    }
    turns.sort_unstable();
    let mut open: BTreeSet<usize> = BTreeSet::new();
    let mut configurations: BTreeSet<Configuration<R::State>> = BTreeSet::from([(initial, BTreeSet::new())]);
    for (time_ns, is_end, at) in turns {
        if !is_end {
            open.insert(at);
            continue;
        }
        if time_ns == u64::MAX && operations.get(at).is_none_or(|operation| operation.is_optional) {
            continue;
        }
        match closed::<R>(&configurations, operations, &open, at, states_max) {
            Some(next) if next.is_empty() => return Found::Violation(at),
            Some(next) => configurations = next,
            None => return Found::Undecided,
        }
        open.remove(&at);
    }
    Found::Linearizable
}

/// Configurations in which an operation has taken effect, with it removed from the open operations.
fn closed<R: Register>(
    configurations: &BTreeSet<Configuration<R::State>>,
    operations: &[Timed<R::Act>],
    open: &BTreeSet<usize>,
    at: usize,
    states_max: usize,
) -> Option<BTreeSet<Configuration<R::State>>> {
    let mut seen: BTreeMap<Configuration<R::State>, ()> = BTreeMap::new();
    let mut todo: Vec<Configuration<R::State>> = configurations.iter().cloned().collect();
    let mut next = BTreeSet::new();
    while let Some((state, mut done)) = todo.pop() {
        if done.remove(&at) {
            next.insert((state, done));
            continue;
        }
        if seen.insert((state.clone(), done.clone()), ()).is_some() {
            continue;
        }
        if seen.len() > states_max {
            return None;
        }
        for other in open.difference(&done) {
            let Some(operation) = operations.get(*other) else { continue };
            if let Some(state) = R::step(&state, &operation.act) {
                let mut done = done.clone();
                done.insert(*other);
                todo.push((state, done));
            }
        }
    }
    // An operation without an end that never took effect is optional in every configuration.
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Register that is written and read.
    struct Cell;

    enum Act {
        Write(u8),
        Read(u8),
    }

    impl Register for Cell {
        type State = u8;
        type Act = Act;

        fn step(state: &u8, act: &Act) -> Option<u8> {
            match act {
                Act::Write(value) => Some(*value),
                Act::Read(value) => (value == state).then_some(*state),
            }
        }
    }

    fn timed(begin_ns: u64, end_ns: u64, act: Act) -> Timed<Act> {
        Timed { begin_ns, end_ns, is_optional: end_ns == u64::MAX, act }
    }

    #[test]
    fn concurrent_writes_have_any_order_but_one() {
        let mut history = vec![
            timed(0, 10, Act::Write(1)),
            timed(0, 10, Act::Write(2)),
            timed(11, 12, Act::Read(1)),
            timed(13, 14, Act::Read(1)),
        ];
        assert_eq!(search::<Cell>(0, &history, 1000), Found::Linearizable);
        history.push(timed(15, 16, Act::Read(2)));
        assert_eq!(search::<Cell>(0, &history, 1000), Found::Violation(4));
    }

    #[test]
    fn a_read_after_a_write_sees_it() {
        let history = [timed(0, 1, Act::Write(1)), timed(2, 3, Act::Read(0))];
        assert_eq!(search::<Cell>(0, &history, 1000), Found::Violation(1));
    }

    #[test]
    fn a_lost_write_takes_effect_late_or_never() {
        let lost = || timed(0, u64::MAX, Act::Write(7));
        let late = [lost(), timed(1, 2, Act::Read(0)), timed(50, 60, Act::Read(7))];
        assert_eq!(search::<Cell>(0, &late, 1000), Found::Linearizable);
        let back = [lost(), timed(50, 60, Act::Read(7)), timed(70, 80, Act::Read(0))];
        assert_eq!(search::<Cell>(0, &back, 1000), Found::Violation(2));
    }

    #[test]
    fn too_many_open_operations_are_undecided_and_no_pass() {
        let mut history: Vec<_> = (0..20).map(|value| timed(0, 10, Act::Write(value))).collect();
        history.push(timed(11, 12, Act::Read(99)));
        assert_eq!(search::<Cell>(0, &history, 100), Found::Undecided);
        // The bound is on states: a long sequential history has few.
        let long: Vec<_> = (0..10_000).map(|at| timed(at * 2, at * 2 + 1, Act::Write(1))).collect();
        assert_eq!(search::<Cell>(0, &long, 100), Found::Linearizable);
    }
}
