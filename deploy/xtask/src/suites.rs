//! The tests, in four suites: what needs a machine of its own runs one at a time and after the rest.
//!
//! A suite is known by how its test binaries begin: `cluster…` and `kill…` start real daemons,
//! `namespace…` makes interfaces, `disks…` makes file systems.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::stage::Outcome;
use crate::workspace::{Workspace, call};

/// One of the four.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suite {
    Rest,
    Cluster,
    Namespaces,
    Disks,
}

/// Runs a suite with cargo-nextest where that is installed, else with what cargo brings.
pub(crate) fn run_suite(workspace: &Workspace, suite: Suite) -> Result<Outcome> {
    let dist = workspace.dist();
    if !dist.join("ipamd").exists() {
        bail!("{} has no ipamd, and the tests run what ships; first: cargo xtask build", dist.display());
    }
    let names = integration_tests(&workspace.root)?;
    let nextest = workspace.has_cargo_tool("nextest");
    let words = if nextest { suite.nextest(&names) } else { suite.cargo_test(&names) };
    let Some(words) = words else { bail!("there are no such tests; were they renamed?") };
    call(workspace.cargo(words).env("IPAMD_BIN_DIR", &dist))?;
    if nextest {
        return Ok(Outcome::Passed);
    }
    let text = "cargo-nextest is not installed; cargo test ran instead: slower, and a test that hangs hangs all\n\
                to get it: cargo install cargo-nextest --locked";
    Ok(Outcome::Without(text.to_owned()))
}

impl Suite {
    /// The suite of the test binary `name`.
    fn of(name: &str) -> Self {
        if name.starts_with("cluster") || name.starts_with("kill") {
            Self::Cluster
        } else if name.starts_with("namespace") {
            Self::Namespaces
        } else if name.starts_with("disks") {
            Self::Disks
        } else {
            Self::Rest
        }
    }

    /// Arguments of cargo that run the suite with nextest; none if there is nothing to run.
    fn nextest(self, names: &[String]) -> Option<Vec<String>> {
        // By the names that there are: nextest refuses a filter that names a binary that isn't there.
        let binaries = |wanted: &dyn Fn(Self) -> bool| {
            let mine = names.iter().filter(|name| wanted(Self::of(name)));
            mine.map(|name| format!("binary(={name})")).collect::<Vec<_>>().join(" | ")
        };
        let filter = match self {
            Self::Rest => match binaries(&|suite| suite != Self::Rest) {
                others if others.is_empty() => "all()".to_owned(),
                others => format!("not ({others})"),
            },
            _ => binaries(&|suite| suite == self),
        };
        if filter.is_empty() {
            return None;
        }
        let words = ["nextest", "run", "--workspace", "--locked", "-E", &filter];
        Some(words.map(str::to_owned).to_vec())
    }

    /// The same with what cargo brings.
    fn cargo_test(self, names: &[String]) -> Option<Vec<String>> {
        let mut words = vec!["test", "--workspace", "--locked", "--no-fail-fast"];
        let mine: Vec<&String> = names.iter().filter(|name| Self::of(name) == self).collect();
        if self == Self::Rest {
            words.extend(["--lib", "--bins"]);
        } else if mine.is_empty() {
            return None;
        }
        words.extend(mine.iter().flat_map(|name| ["--test", name.as_str()]));
        if self != Self::Rest {
            words.extend(["--", "--test-threads=1"]);
        }
        Some(words.into_iter().map(str::to_owned).collect())
    }
}

/// The names of all integration tests: `<crate>/tests/<name>.rs` and `<crate>/tests/<name>/main.rs`.
fn integration_tests(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root).with_context(|| format!("can't list {}", root.display()))? {
        let Ok(tests) = fs::read_dir(entry?.path().join("tests")) else { continue };
        for test in tests {
            let path = test?.path();
            let is_test = path.extension().is_some_and(|e| e == "rs") || path.join("main.rs").exists();
            if let (true, Some(name)) = (is_test, path.file_stem()) {
                names.push(name.to_string_lossy().into_owned());
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_binary_belongs_to_one_suite_by_its_name() {
        for (name, suite) in [
            ("cluster", Suite::Cluster),
            ("cluster_forms", Suite::Cluster),
            ("kill", Suite::Cluster),
            ("namespace", Suite::Namespaces),
            ("disks", Suite::Disks),
            ("vectors", Suite::Rest),
            ("ipam_raft", Suite::Rest),
        ] {
            assert_eq!(Suite::of(name), suite, "{name}");
        }
    }

    fn shown(words: Option<Vec<String>>) -> String {
        words.map(|words| words.join(" ")).unwrap_or_default()
    }

    #[test]
    fn nextest_is_given_the_names_that_there_are() {
        let names = ["cluster_forms", "kill", "scenarios"].map(str::to_owned);
        let common = "nextest run --workspace --locked -E";
        let heavy = "binary(=cluster_forms) | binary(=kill)";
        assert_eq!(shown(Suite::Cluster.nextest(&names)), format!("{common} {heavy}"));
        assert_eq!(shown(Suite::Rest.nextest(&names)), format!("{common} not ({heavy})"));
        assert_eq!(shown(Suite::Rest.nextest(&[])), format!("{common} all()"));
        assert_eq!(Suite::Namespaces.nextest(&names), None);
    }

    #[test]
    fn without_nextest_the_heavy_suites_run_one_test_at_a_time() {
        let names = ["kill", "scenarios"].map(str::to_owned);
        let common = "test --workspace --locked --no-fail-fast";
        assert_eq!(shown(Suite::Rest.cargo_test(&names)), format!("{common} --lib --bins --test scenarios"));
        assert_eq!(
            shown(Suite::Cluster.cargo_test(&names)),
            format!("{common} --test kill -- --test-threads=1")
        );
        assert_eq!(Suite::Namespaces.cargo_test(&names), None);
    }
}
