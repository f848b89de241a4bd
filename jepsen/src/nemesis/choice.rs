//! Seeded choices that nemeses share.

use crate::random::Random;

/// Number from `low` to `high`, both included.
pub(super) fn between(random: &mut Random, low: u64, high: u64) -> u64 {
    let span = high.saturating_sub(low).saturating_add(1);
    low.saturating_add(random.number().checked_rem(span).unwrap_or_default())
}

/// True with this probability.
pub(super) fn chance(random: &mut Random, percent: u64) -> bool {
    between(random, 0, 99) < percent
}

/// One of several values; none without any.
pub(super) fn one_of<T: Clone>(random: &mut Random, values: &[T]) -> Option<T> {
    values.get(random.below(values.len())).cloned()
}

/// The values in random order.
pub(super) fn shuffled<T: Clone>(random: &mut Random, values: &[T]) -> Vec<T> {
    some_of(random, values, values.len())
}

/// Up to `count` of the values, in random order.
pub(super) fn some_of<T: Clone>(random: &mut Random, values: &[T], count: usize) -> Vec<T> {
    random.some_of(values.len(), count).into_iter().filter_map(|at| values.get(at).cloned()).collect()
}
