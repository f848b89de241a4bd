//! Targets: classes of members that a fault hits.

use super::View;
use super::choice::{one_of, some_of};
use crate::random::Random;

/// Class of targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// One member.
    One,
    /// The leader.
    Leader,
    /// As many members as the cluster can lose.
    Minority,
    /// As many members as it takes to stop the cluster.
    Majority,
    /// All members.
    All,
}

/// All classes, for faults that lose no acknowledged data.
pub(super) const ANY: &[Class] = &[Class::One, Class::Leader, Class::Minority, Class::Majority, Class::All];

/// Classes of faults that leave a majority untouched.
pub(super) const FEW: &[Class] = &[Class::One, Class::Leader, Class::Minority];

/// Chooses running members of one of these classes; none if too few run.
pub(super) fn members(random: &mut Random, view: &View, classes: &[Class]) -> Option<Vec<String>> {
    let class = one_of(random, classes)?;
    let count = match class {
        Class::One => 1,
        Class::Minority => view.minority().max(1),
        Class::Majority => view.majority(),
        Class::All => view.members.len(),
        Class::Leader => {
            let leader = view.leader.clone().filter(|leader| view.running.contains(leader));
            // Without a known leader the fault takes any member.
            return leader.or_else(|| one_of(random, &view.running)).map(|one| vec![one]);
        }
    };
    let chosen = some_of(random, &view.running, count);
    (!chosen.is_empty()).then_some(chosen)
}

/// True if no member has a fault and a leader is known: destructive faults begin only then.
pub(super) fn is_whole(view: &View) -> bool {
    let has_all = |some: &[String]| view.members.iter().all(|member| some.contains(member));
    !view.members.is_empty() && view.leader.is_some() && has_all(&view.running) && has_all(&view.healthy)
}

/// Hosts that run an agent: `c1`, `c2`, ….
pub(super) fn nodes(view: &View) -> Vec<String> {
    view.hosts.iter().filter(|host| host.starts_with('c')).cloned().collect()
}
