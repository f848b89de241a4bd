//! Seeded bugs in simulated runs: one seed after another until a checker detects the bug.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::bugs::Bug;
use crate::report::Validity;
use crate::sim::{self, Case, run_case};

/// Bugs that only live runs detect. The first needs several processes; the second needs more events than
/// simulated clients cause between two pages of a stream.
const LIVE_ONLY: &[&str] = &["bug-local-lease", "bug-skipped-event"];
/// Simulated time of a run.
const TIME: Duration = Duration::from_secs(60);

/// Names of workloads and of nemeses.
type Scope = (Vec<String>, Vec<String>);

/// Workloads and nemeses of simulated runs that may detect a bug; none for one that only live runs detect.
pub(super) fn scope(bug: &Bug) -> Option<Scope> {
    let of = |names: &str, known: &[&str]| -> Vec<String> {
        names.split(',').filter(|name| known.contains(name)).map(str::to_owned).collect()
    };
    let workloads = of(bug.workloads, &sim::workloads());
    let nemeses = of(bug.nemeses, sim::NEMESES);
    let is_simulated = !LIVE_ONLY.contains(&bug.option)
        && !workloads.is_empty()
        && (bug.nemeses == "none" || !nemeses.is_empty());
    is_simulated.then_some((workloads, nemeses))
}

/// Makes the runs of the seeds from 1 until a run breaks a promise. Returns the checkers that report
/// violations, and the last seed.
pub(super) fn detected(
    (workloads, nemeses): &Scope,
    bug: Option<&str>,
    seeds: u64,
    dir: &Path,
) -> Result<(Vec<String>, u64)> {
    for seed in 1..=seeds {
        let test_options = bug.iter().map(|bug| (*bug).to_owned()).collect();
        let case = Case { test_options, ..Case::of_seed(seed, TIME, workloads, nemeses) };
        let run = run_case(&case, dir, None)?;
        if run.results.valid == Validity::No {
            return Ok((run.broken().iter().map(|id| (*id).to_owned()).collect(), seed));
        }
    }
    Ok((Vec::new(), seeds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeded::ALL;

    #[test]
    fn all_bugs_but_two_can_be_simulated() {
        let live: Vec<&str> = ALL.iter().filter(|bug| scope(bug).is_none()).map(|bug| bug.option).collect();
        assert_eq!(live, LIVE_ONLY);
        let names_of = |name: &str| {
            let (workloads, nemeses) = scope(ALL.iter().find(|bug| bug.option == name).unwrap()).unwrap();
            (workloads.join(","), nemeses.join(","))
        };
        let names = |workloads: &str, nemeses: &str| (workloads.to_owned(), nemeses.to_owned());
        assert_eq!(names_of("bug-unconfirmed-read"), names("reads,alloc-specific", "partition,pause"));
        assert_eq!(names_of("bug-restamped-request"), names("cni", ""));
    }
}
