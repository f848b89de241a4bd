//! All checks of the folder, and promtool.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::dashboards::{as_rules, board_expressions, fixed_ids};
use super::metrics::{known, unknown, unknown_in_rules};
use super::rules::read_rules;
use super::runbook::{RUNBOOK, without_runbook};
use super::tested::{Tested, untested};
use crate::workspace::{Workspace, call};

const FOLDER: &str = "deploy/monitoring";
const METRICS: &str = "api/contracts/metrics.txt";

/// Checks rules, their tests, dashboards and the runbook.
pub(crate) fn test(workspace: &Workspace, promtool: &Path) -> Result<()> {
    let folder = workspace.root.join(FOLDER);
    let (rule_files, test_files) = (files(&folder, "yaml")?, files(&folder.join("tests"), "yaml")?);
    call(Command::new(promtool).args(["check", "rules"]).args(&rule_files))?;

    let mut rules = Vec::new();
    for file in &rule_files {
        rules.extend(read_rules(&read(file)?).with_context(|| file.display().to_string())?);
    }
    let mut tested = Tested::default();
    for file in &test_files {
        tested.add(&read(file)?).with_context(|| file.display().to_string())?;
    }
    let known = known(&read(&workspace.root.join(METRICS))?, &rules);
    let mut complaints = unknown_in_rules(&rules, &known);
    complaints.extend(untested(&rules, &tested));
    complaints.extend(without_runbook(&rules, &read(&workspace.root.join(RUNBOOK))?));
    let mut expressions = Vec::new();
    for file in files(&folder.join("dashboards"), "json")? {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let board: Value = serde_json::from_str(&read(&file)?).with_context(|| name.clone())?;
        complaints.extend(fixed_ids(&name, &board));
        let of_board = board_expressions(&board);
        if of_board.is_empty() {
            complaints.push(format!("{name}: it has no query"));
        }
        complaints.extend(of_board.iter().flat_map(|expression| unknown(&name, expression, &known)));
        expressions.extend(of_board);
    }
    for complaint in &complaints {
        println!("{complaint}");
    }
    if !complaints.is_empty() {
        bail!("{} complaints about {FOLDER}", complaints.len());
    }

    let scratch = workspace.target.join("monitoring");
    fs::create_dir_all(&scratch)?;
    let parsed = scratch.join("expressions.yaml");
    fs::write(&parsed, as_rules(&expressions).to_string())
        .with_context(|| format!("can't write {}", parsed.display()))?;
    call(Command::new(promtool).args(["check", "rules"]).arg(&parsed))?;
    call(Command::new(promtool).args(["test", "rules"]).args(&test_files))
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
