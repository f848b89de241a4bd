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

/// Simulated runs that may detect a bug, one for each seed.
pub(super) enum Runs {
    /// Runs that choose among these workloads and nemeses.
    Chosen { workloads: Vec<String>, nemeses: Vec<String> },
    /// Runs of one case.
    Stored(Case),
}

impl Runs {
    /// Runs for a bug; none for one that only live runs detect.
    ///
    /// # Errors
    /// If the stored case can't be parsed.
    pub(super) fn of(bug: &Bug) -> Result<Option<Self>> {
        if let Some(text) = bug.case {
            return Ok(Some(Self::Stored(Case::parse(text)?)));
        }
        let of = |names: &str, known: &[&str]| -> Vec<String> {
            names.split(',').filter(|name| known.contains(name)).map(str::to_owned).collect()
        };
        let workloads = of(bug.workloads, &sim::workloads());
        let nemeses = of(bug.nemeses, sim::NEMESES);
        let is_simulated = !LIVE_ONLY.contains(&bug.option)
            && !workloads.is_empty()
            && (bug.nemeses == "none" || !nemeses.is_empty());
        Ok(is_simulated.then_some(Self::Chosen { workloads, nemeses }))
    }

    /// Case of a seed with these options of the test build.
    fn case(&self, seed: u64, test_options: Vec<String>) -> Case {
        match self {
            Self::Chosen { workloads, nemeses } => {
                Case { test_options, ..Case::of_seed(seed, TIME, workloads, nemeses) }
            }
            Self::Stored(case) => Case { seed, test_options, ..case.clone() },
        }
    }

    /// Makes the runs of the seeds from 1 until a run breaks a promise. Returns the checkers that report
    /// violations, and the last seed.
    ///
    /// # Errors
    /// If a run can't be made.
    pub(super) fn detect(&self, bug: Option<&str>, seeds: u64, dir: &Path) -> Result<(Vec<String>, u64)> {
        for seed in 1..=seeds {
            let test_options = bug.iter().map(|bug| (*bug).to_owned()).collect();
            let run = run_case(&self.case(seed, test_options), dir, None)?;
            if run.results.valid == Validity::No {
                return Ok((run.broken().iter().map(|id| (*id).to_owned()).collect(), seed));
            }
        }
        Ok((Vec::new(), seeds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeded::ALL;

    #[test]
    fn all_bugs_but_two_can_be_simulated() {
        let runs = |bug: &Bug| Runs::of(bug).unwrap();
        let live: Vec<&str> = ALL.iter().filter(|bug| runs(bug).is_none()).map(|bug| bug.option).collect();
        assert_eq!(live, LIVE_ONLY);
        let names_of = |name: &str| match runs(ALL.iter().find(|bug| bug.option == name).unwrap()) {
            Some(Runs::Chosen { workloads, nemeses }) => (workloads.join(","), nemeses.join(",")),
            Some(Runs::Stored(case)) => (case.workloads.join(","), case.nemeses.join(",")),
            None => panic!("{name}"),
        };
        let names = |workloads: &str, nemeses: &str| (workloads.to_owned(), nemeses.to_owned());
        assert_eq!(names_of("bug-unconfirmed-read"), names("reads,alloc-specific", "partition,pause"));
        assert_eq!(names_of("bug-restamped-request"), names("cni", ""));
        assert_eq!(names_of("bug-hasty-reclaim"), names("gc-probe,alloc-any", "agents"));
    }

    #[test]
    fn a_stored_case_has_the_seed_and_the_options_of_its_run() {
        let bug = ALL.iter().find(|bug| bug.case.is_some()).unwrap();
        let runs = Runs::of(bug).unwrap().unwrap();
        let case = runs.case(7, vec![bug.option.to_owned()]);
        assert_eq!((case.seed, case.test_options.as_slice()), (7, [bug.option.to_owned()].as_slice()));
        assert!(case.script.is_some());
    }
}
