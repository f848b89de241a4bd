//! Kinds and times of the cuts, determined by the seed alone.

use std::time::Duration;

use crate::live::Cut;
use crate::random::Random;

/// Kind of a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// All members of a new cluster, while it is being founded or right after.
    Founding,
    /// One member; the others continue.
    One,
    /// As many members as it takes to stop the cluster.
    Majority,
    All,
    /// All, and once more while they start.
    Starting,
    /// All members, while one of them writes a snapshot.
    Snapshot,
}

impl Kind {
    pub(super) const EACH: [Self; 6] =
        [Self::Founding, Self::One, Self::Majority, Self::All, Self::Starting, Self::Snapshot];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Founding => "founding",
            Self::One => "one",
            Self::Majority => "majority",
            Self::All => "all",
            Self::Starting => "starting",
            Self::Snapshot => "snapshot",
        }
    }
}

/// Cuts that follow a cluster's first one.
const ROUNDS: [Kind; 5] = [Kind::One, Kind::Majority, Kind::All, Kind::Starting, Kind::Snapshot];
/// Number of cuts of one cluster, the first one included.
const LIFE: usize = 1 + 3 * ROUNDS.len();
/// Longest time, in ms, that processes continue after a cut with flushed disks.
const AGONY_MS: usize = 40;
/// Longest time from a start to its cut, in ms.
const START_MS: usize = 400;

/// One cut.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) kind: Kind,
    /// Modes of the first and of a repeated power cut.
    pub(super) how: [Cut; 2],
    /// Time that processes continue after a cut with flushed disks.
    pub(super) agony: Duration,
    /// Acknowledged writes before the cut and, if other members continue, after it.
    pub(super) writes: [u64; 2],
    /// Time of the cut within a start; without it a founding is completed first.
    pub(super) start: Option<Duration>,
    /// True if the leader is cut.
    pub(super) leader: bool,
    /// Members in random order.
    pub(super) order: Vec<usize>,
}

/// Chooses the cut with this number. `writes` is the average number of acknowledged writes per cut.
pub(super) fn step(number: usize, writes: u64, members: usize, random: &mut Random) -> Step {
    let round = (number % LIFE).checked_sub(1).and_then(|round| ROUNDS.get(round % ROUNDS.len()));
    let kind = round.copied().unwrap_or(Kind::Founding);
    let share = |random: &mut Random, of: u64| {
        let most = usize::try_from(of.saturating_mul(2)).unwrap_or(usize::MAX);
        u64::try_from(random.below(most)).unwrap_or_default().max(1)
    };
    let writes = match kind {
        Kind::One => [share(random, writes / 2), share(random, writes / 2)],
        _ => [share(random, writes), 0],
    };
    let millis = |random: &mut Random, most| Duration::from_millis(random.below(most) as u64);
    let start = millis(random, START_MS);
    Step {
        kind,
        how: [how(random), how(random)],
        agony: millis(random, AGONY_MS),
        writes,
        start: (kind == Kind::Starting || random.below(2) == 0).then_some(start),
        leader: random.below(2) == 0,
        order: random.some_of(members, members),
    }
}

fn how(random: &mut Random) -> Cut {
    match random.below(10) {
        0 | 1 => Cut::Flushed,
        2..=4 => Cut::Journal,
        _ => Cut::Hard,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_has_every_kind_and_a_cluster_is_founded_first() {
        let mut random = Random::new(1);
        let kinds: Vec<Kind> = (0..20).map(|number| step(number, 100, 3, &mut random).kind).collect();
        assert_eq!(kinds[0], Kind::Founding);
        for kind in Kind::EACH {
            assert!(kinds.iter().filter(|one| **one == kind).count() >= 2, "{kind:?} in {kinds:?}");
        }
    }

    #[test]
    fn the_writes_of_many_cuts_are_about_those_that_were_asked_for() {
        let mut random = Random::new(1);
        let all: u64 =
            (0..1_000).map(|number| step(number, 100, 3, &mut random).writes.iter().sum::<u64>()).sum();
        assert!((90_000..110_000).contains(&all), "{all}");
    }
}
