//! Scenarios of `testdata/*.txt`: readable commands, with the machine's answers and events.
//!
//! `UPDATE=1 cargo test -p ipam-machine scenarios` writes the present answers; review the difference. The
//! language is described in `support/script.rs`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use crate::support::script::Line;
use crate::support::{explained, print, script};
use ipam_machine::explain::explain;
use ipam_machine::{At, State, apply, dry_run};

/// Between the commands of a block and what they say.
const RULE: &str = "----";
/// Other recorded texts in the same directory.
const NO_SCENARIOS: [&str; 3] = ["golden.txt", "causes.txt", "costs.txt"];
/// Wall time at log time 0.
const WALL_MS: u64 = 1_000_000;

#[test]
fn every_scenario_says_what_is_written() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .filter(|path| path.file_name().is_some_and(|name| !NO_SCENARIOS.iter().any(|one| name == *one)))
        .collect();
    files.sort();
    assert!(files.len() >= 15, "scenarios are gone: {} are left", files.len());
    let update = std::env::var_os("UPDATE").is_some();
    let mut differing = Vec::new();
    for file in files {
        let written = std::fs::read_to_string(&file).unwrap();
        let said = play(&written);
        if update {
            std::fs::write(&file, &said).unwrap();
        } else if said != written {
            differing.push(difference(&file, &written, &said));
        }
    }
    assert!(differing.is_empty(), "\n{}", differing.join("\n"));
}

/// A scenario with what the machine says to it now.
fn play(scenario: &str) -> String {
    let mut state = State::new();
    let mut at = At { log_time_ms: 0, wall_ms: WALL_MS, leadership: 0 };
    let mut lines: VecDeque<&str> = scenario.lines().collect();
    let mut text = String::new();
    let mut block: VecDeque<&str> = VecDeque::new();
    while let Some(line) = lines.pop_front() {
        if line != RULE {
            if !line.starts_with('#') && !line.is_empty() {
                block.push_back(line);
            }
            assert!(!line.is_empty() || block.is_empty(), "a block without {RULE}: {block:?}");
            text.push_str(line);
            text.push('\n');
            continue;
        }
        text.push_str(RULE);
        text.push('\n');
        while let Some(command) = block.pop_front() {
            match script::read(command, &mut block) {
                Line::At(later, wall_ms) => {
                    (at.log_time_ms, at.wall_ms) = (later, wall_ms.unwrap_or(WALL_MS + later));
                }
                Line::Leadership(number, grace_ms) => {
                    state.begin_leadership(number, grace_ms);
                    at.leadership = number;
                }
                Line::Under(number) => at.leadership = number,
                line => text.push_str(&say(&mut state, at, line)),
            }
        }
        while lines.front().is_some_and(|line| !line.is_empty()) {
            lines.pop_front();
        }
    }
    assert!(block.is_empty(), "the last block has no {RULE}");
    text
}

fn say(state: &mut State, at: At, line: Line) -> String {
    match line {
        Line::At(..) | Line::Leadership(..) | Line::Under(_) => String::new(),
        Line::Show(what, which) => print::show(state, &what, &which),
        Line::Unreadable(problem) => print::unreadable(&problem),
        Line::Explain(command) => {
            let before = state.digest();
            let explanation = explain(state, at, &command);
            assert_eq!(state.digest(), before, "to explain changes nothing");
            explained::agrees(&explanation, &dry_run(state, at, &command).0, &command);
            print::explanation(&explanation)
        }
        Line::Propose(command) => {
            let rehearsed = dry_run(state, at, &command);
            let (outcome, events) = apply(state, at, &command);
            assert_eq!(rehearsed, (outcome.clone(), events.clone()), "a dry run says the same");
            assert!(events.iter().all(|event| event.revision == state.revision()));
            print::outcome(&outcome, &events)
        }
    }
}

/// The first lines that differ.
fn difference(file: &Path, written: &str, said: &str) -> String {
    let (mut left, mut right) = (written.lines(), said.lines());
    let mut number = 0;
    loop {
        number += 1;
        let (a, b) = (left.next(), right.next());
        if a != b {
            return format!(
                "{}:{number}\n  written: {}\n     said: {}",
                file.display(),
                a.unwrap_or("(the end)"),
                b.unwrap_or("(the end)")
            );
        }
        if a.is_none() {
            return format!("{}: line ends differ", file.display());
        }
    }
}
