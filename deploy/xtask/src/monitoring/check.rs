//! All checks of the folder, and promtool.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::dashboards::{as_rules, board_expressions, fixed_ids};
use super::metrics::{known, unknown, unknown_in_rules};
use super::rules::read_rules;
use super::runbook::{INDEX, PAGES, Runbook, without_runbook};
use super::tested::{Tested, untested};
use crate::workspace::{Workspace, call};

const FOLDER: &str = "deploy/monitoring";
const METRICS: &str = "api/contracts/metrics.txt";

/// Checks rules, their tests, dashboards and the runbook (line 12 of the acceptance).
///
/// The tests below check the files without promtool.
pub(crate) fn test(workspace: &Workspace, promtool: &Path) -> Result<()> {
    println!("p5_12: promtool checks the rules and runs the test of each alert");
    let folder = workspace.root.join(FOLDER);
    let (rule_files, test_files) = (files(&folder, "yaml")?, files(&folder.join("tests"), "yaml")?);
    call(Command::new(promtool).args(["check", "rules"]).args(&rule_files))?;

    let contents = Contents::read(&workspace.root)?;
    let complaints = contents.complaints()?;
    for complaint in &complaints {
        println!("{complaint}");
    }
    if !complaints.is_empty() {
        bail!("{} complaints about {FOLDER}", complaints.len());
    }

    let boards = contents.dashboards.iter();
    let expressions: Vec<String> = boards.flat_map(|(_, board)| board_expressions(board)).collect();
    let scratch = workspace.target.join("monitoring");
    fs::create_dir_all(&scratch)?;
    let parsed = scratch.join("expressions.yaml");
    fs::write(&parsed, as_rules(&expressions).to_string())
        .with_context(|| format!("can't write {}", parsed.display()))?;
    call(Command::new(promtool).args(["check", "rules"]).arg(&parsed))?;
    call(Command::new(promtool).args(["test", "rules"]).args(&test_files))
}

/// Contents of the files that the checks compare; those of a folder with their paths.
struct Contents {
    metrics: String,
    runbook: Runbook,
    rules: Vec<(String, String)>,
    tests: Vec<(String, String)>,
    dashboards: Vec<(String, Value)>,
}

impl Contents {
    /// Reads the files of a checkout.
    fn read(root: &Path) -> Result<Self> {
        let folder = root.join(FOLDER);
        let mut dashboards = Vec::new();
        for (path, text) in texts(&folder.join("dashboards"), "json")? {
            let board: Value = serde_json::from_str(&text).with_context(|| path.clone())?;
            dashboards.push((path, board));
        }
        Ok(Self {
            metrics: read(&root.join(METRICS))?,
            runbook: Runbook { index: read(&root.join(INDEX))?, pages: pages(&root.join(PAGES))? },
            rules: texts(&folder, "yaml")?,
            tests: texts(&folder.join("tests"), "yaml")?,
            dashboards,
        })
    }

    /// Complaints of all checks without promtool.
    fn complaints(&self) -> Result<Vec<String>> {
        let mut rules = Vec::new();
        for (path, text) in &self.rules {
            rules.extend(read_rules(text).with_context(|| path.clone())?);
        }
        let mut tested = Tested::default();
        for (path, text) in &self.tests {
            tested.add(text).with_context(|| path.clone())?;
        }
        let known = known(&self.metrics, &rules);
        let mut complaints = unknown_in_rules(&rules, &known);
        complaints.extend(untested(&rules, &tested));
        complaints.extend(without_runbook(&rules, &self.runbook));
        for (path, board) in &self.dashboards {
            complaints.extend(fixed_ids(path, board));
            let of_board = board_expressions(board);
            if of_board.is_empty() {
                complaints.push(format!("{path}: it has no query"));
            }
            complaints.extend(of_board.iter().flat_map(|expression| unknown(path, expression, &known)));
        }
        Ok(complaints)
    }
}

/// Paths and texts of a folder's files with an extension.
fn texts(folder: &Path, extension: &str) -> Result<Vec<(String, String)>> {
    files(folder, extension)?.iter().map(|file| Ok((file.display().to_string(), read(file)?))).collect()
}

/// Texts of a folder's pages by the names of their files without the extension.
fn pages(folder: &Path) -> Result<BTreeMap<String, String>> {
    let name = |file: &Path| file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    files(folder, "md")?.iter().map(|file| Ok((name(file), read(file)?))).collect()
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("can't read {}", file.display()))
}

/// Files of a folder with an extension, in the order of their names.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("can't read {}", folder.display()))?;
    let mut files = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    files.retain(|file| file.extension().is_some_and(|found| found == extension));
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents() -> Contents {
        Contents::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
    }

    #[test]
    fn p5_12_every_alert_is_tested_and_every_metric_exists() {
        assert_eq!(contents().complaints().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn p5_12_a_missing_metric_test_or_page_is_found() {
        let mut contents = contents();
        contents.metrics.clear();
        contents.tests.clear();
        contents.runbook = Runbook::default();
        let complaints = contents.complaints().unwrap().join("\n");
        for expected in [
            "IpamdDiskNearlyFull: there is no metric ipamd_disk_free_bytes",
            "ipamd.json: there is no metric ",
            "pools.json: there is no metric ",
            "IpamdNoLeader: no test in which it fires as a page",
            "IpamdNoLeader: deploy/docs/alerts/IpamdNoLeader.md is missing",
        ] {
            assert!(complaints.contains(expected), "{expected}: {complaints}");
        }
    }
}
