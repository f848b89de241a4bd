//! Case: all that determines a simulated run, as a value that can be stored and made smaller.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::live::run::{Plan, Step};
use crate::random::Random;
use crate::workload;

/// Maximum number of workloads of a run.
const WORKLOADS_MAX: usize = 3;
/// Maximum number of nemeses of a run.
const NEMESES_MAX: usize = 3;
/// Mean pause in milliseconds, and maximum number of sessions of each workload. Most workloads have two to
/// four sessions, so the first two paces give about the same work, and the last one long pauses.
const PACES: &[(u64, usize)] = &[(240, 2), (480, 8), (1_440, 24)];
/// Share of clusters with five members, in percent.
const FIVE_PERCENT: usize = 10;

/// All that determines a simulated run.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Seed of all choices.
    pub seed: u64,
    /// Number of members at the begin.
    pub members: usize,
    /// Names of the workloads.
    pub workloads: Vec<String>,
    /// Names of the nemeses.
    pub nemeses: Vec<String>,
    /// Time in which clients work.
    pub time_ms: u64,
    /// Mean pause between two operations of a session.
    pub pace_ms: u64,
    /// Maximum number of sessions of each workload.
    pub sessions_max: Option<usize>,
    /// Faults instead of those that the nemeses choose.
    pub script: Option<Vec<Step>>,
    /// Options of the test build, such as seeded bugs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub test_options: Vec<String>,
}

impl Case {
    /// Case of a seed: a few workloads under a few nemeses.
    #[must_use]
    pub fn of_seed(seed: u64, time: Duration, workloads: &[String], nemeses: &[String]) -> Self {
        let mut random = Random::new(seed);
        let members = if random.below(100) < FIVE_PERCENT { 5 } else { 3 };
        let (pace_ms, sessions) = PACES.get(random.below(PACES.len())).unwrap_or(&(480, 8));
        let mut some = |names: &[String], most: usize| {
            let count = random.below(most.min(names.len())) + 1;
            let chosen = random.some_of(names.len(), count.min(names.len()));
            chosen.into_iter().filter_map(|at| names.get(at).cloned()).collect()
        };
        let fitting = |nemesis: &str| -> Vec<String> {
            let affected = affected_workloads(nemesis);
            workloads.iter().filter(|name| affected.contains(&name.as_str())).cloned().collect()
        };
        let idle = idle_nemeses(nemeses, workloads);
        let able: Vec<String> = nemeses.iter().filter(|nemesis| !idle.contains(nemesis)).cloned().collect();
        let (mut chosen, nemeses): (Vec<String>, Vec<String>) =
            (some(workloads, WORKLOADS_MAX), some(&able, NEMESES_MAX));
        for nemesis in &nemeses {
            let fitting = fitting(nemesis);
            if !fitting.is_empty() && !fitting.iter().any(|name| chosen.contains(name)) {
                chosen.truncate(WORKLOADS_MAX - 1);
                chosen.extend(fitting.get(random.below(fitting.len())).cloned());
            }
        }
        Self {
            seed,
            members,
            workloads: chosen,
            nemeses,
            time_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
            pace_ms: *pace_ms,
            sessions_max: Some(*sessions),
            script: None,
            test_options: Vec::new(),
        }
    }

    /// Reads a stored case.
    ///
    /// # Errors
    /// If the file is no case, or names unknown workloads or nemeses.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    /// Parses the text of a case.
    ///
    /// # Errors
    /// If the text is no case, or names unknown workloads or nemeses.
    pub fn parse(text: &str) -> Result<Self> {
        let case: Self = serde_json::from_str(text)?;
        let plan = case.plan(PathBuf::new(), None);
        plan.chosen_workloads()?;
        plan.chosen_nemeses()?;
        Ok(case)
    }

    /// Text of the case, for a file.
    ///
    /// # Errors
    /// Never: the type has no map with other keys than texts.
    pub fn text(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Plan of the run.
    #[must_use]
    pub fn plan(&self, store: PathBuf, log: Option<&str>) -> Plan {
        Plan {
            workloads: self.workloads.clone(),
            nemeses: self.nemeses.clone(),
            time: Duration::from_millis(self.time_ms),
            members: self.members,
            is_secure: false,
            seed: self.seed,
            bin_dir: PathBuf::new(),
            test_options: self.test_options.clone(),
            store,
            is_quiet: true,
            is_simulated: true,
            log: log.map(str::to_owned),
            pace: Duration::from_millis(self.pace_ms),
            sessions_max: self.sessions_max,
            script: self.script.clone(),
        }
    }
}

/// Workloads that a nemesis affects; empty for a nemesis that affects each workload.
fn affected_workloads(nemesis: &str) -> Vec<&'static str> {
    match nemesis {
        "agents" | "nodes" => {
            workload::all().iter().filter(|one| one.needs_node()).map(|one| one.name()).collect()
        }
        "probes" => vec!["gc-probe"],
        _ => Vec::new(),
    }
}

/// Nemeses that affect none of the workloads.
#[must_use]
pub fn idle_nemeses(nemeses: &[String], workloads: &[String]) -> Vec<String> {
    let is_idle = |nemesis: &&String| {
        let affected = affected_workloads(nemesis);
        !affected.is_empty() && !workloads.iter().any(|name| affected.contains(&name.as_str()))
    };
    nemeses.iter().filter(is_idle).cloned().collect()
}

/// Names of the workloads that the simulation knows: all.
#[must_use]
pub fn workloads() -> Vec<&'static str> {
    workload::all().iter().map(|one| one.name()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_have_different_cases_which_survive_a_file() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let (workloads, nemeses) = (names(&workloads()), names(super::super::NEMESES));
        let case = |seed| Case::of_seed(seed, Duration::from_secs(60), &workloads, &nemeses);
        assert_eq!(case(3), case(3));
        let cases: Vec<Case> = (1..=200).map(case).collect();
        for name in &workloads {
            assert!(cases.iter().any(|case| case.workloads.contains(name)), "{name}");
        }
        for name in &nemeses {
            assert!(cases.iter().any(|case| case.nemeses.contains(name)), "{name}");
        }
        assert!(cases.iter().any(|case| case.members == 5));
        for case in &cases {
            assert!(idle_nemeses(&case.nemeses, &case.workloads).is_empty(), "{case:?}");
            assert!(case.workloads.len() <= WORKLOADS_MAX, "{case:?}");
        }
        let without = Case::of_seed(3, Duration::from_secs(60), &["reads".to_owned()], &nemeses);
        assert!(idle_nemeses(&without.nemeses, &without.workloads).is_empty(), "{without:?}");
        let idle = |workload: &str| idle_nemeses(&nemeses, &[workload.to_owned()]);
        assert_eq!(idle("reads"), ["agents", "nodes", "probes"]);
        assert_eq!(idle("cni"), ["probes"]);
        assert!(idle("gc-probe").is_empty());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("case.json");
        std::fs::write(&path, case(9).text().unwrap()).unwrap();
        assert_eq!(Case::read(&path).unwrap(), case(9));
        let unknown = Case { workloads: vec!["bogus".to_owned()], ..case(9) };
        std::fs::write(&path, unknown.text().unwrap()).unwrap();
        assert!(format!("{:#}", Case::read(&path).unwrap_err()).contains("bogus is unknown"));
    }
}
