//! `cargo xtask costs`: instructions and heap blocks of state machine and codecs, against a recorded file.
//!
//! Times of a shared machine vary by a factor; counts under valgrind do not vary. A change that costs more
//! than the tolerance fails, and one that costs less must be recorded, or a later loss would pass unseen.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, bail};

use crate::binaries::{self, COSTS};
use crate::workspace::Workspace;

/// Recorded counts.
const RECORDED: &str = "raft/machine/testdata/costs.txt";
/// First lines of the recorded file.
const HEAD: &str = "# Counts per operation under valgrind; an entry has 64 commands. \
                    UPDATE=1 cargo xtask costs\n# case | instructions | heap blocks\n";
/// The cases, with the operations of the shorter run. The longer one has twice as many.
const CASES: [(&str, u64); 6] = [
    ("apply-allocate", 1_000),
    ("apply-repeat", 1_000),
    ("apply-release", 1_000),
    ("entry-encode", 200),
    ("entry-decode", 200),
    ("request-decode", 1_000),
];
/// Accepted difference, in percent of the recorded count.
const TOLERANCE_PERCENT: u64 = 3;

/// Counts of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    instructions: u64,
    blocks: u64,
}

/// Counts all cases, and compares them with the file, or writes it with `UPDATE=1`.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    let program = binaries::build_optimised_for_tests(workspace)?.join("examples").join(COSTS);
    let mut lines = String::new();
    for (case, count) in CASES {
        // Counts do not depend on other load.
        let (instructions, blocks) = std::thread::scope(|scope| {
            let blocks = scope.spawn(|| per_operation(count, |count| blocks(&program, case, count)));
            let instructions = per_operation(count, |count| instructions(&program, case, count));
            (instructions, blocks.join())
        });
        let (instructions, blocks) = (instructions?, blocks.map_err(|_| anyhow!("a panic while counting"))??);
        println!("{case:<16} {instructions:>10} instructions {blocks:>7} heap blocks");
        writeln!(lines, "{case} | {instructions} | {blocks}")?;
    }
    let file = workspace.root.join(RECORDED);
    if std::env::var_os("UPDATE").is_some() {
        return fs::write(&file, format!("{HEAD}{lines}")).with_context(|| file.display().to_string());
    }
    let recorded = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let differences = compare(&recorded, &lines);
    if !differences.is_empty() {
        bail!("{}\nif that is intended: UPDATE=1 cargo xtask costs", differences.join("\n"));
    }
    Ok(())
}

/// Difference of two runs, per operation: the preparation of both runs cancels out.
fn per_operation(count: u64, run: impl Fn(u64) -> Result<u64>) -> Result<u64> {
    let (short, long) = (run(count)?, run(2 * count)?);
    let difference = long.checked_sub(short).context("the longer run has fewer")?;
    Ok(difference / count)
}

fn instructions(program: &Path, case: &str, count: u64) -> Result<u64> {
    let said = valgrind(&["--tool=callgrind", "--callgrind-out-file=/dev/null"], program, case, count)?;
    number_after(&said, "Collected :").context("callgrind states no count")
}

fn blocks(program: &Path, case: &str, count: u64) -> Result<u64> {
    let said = valgrind(&["--tool=dhat", "--dhat-out-file=/dev/null"], program, case, count)?;
    let total = said.lines().find(|line| line.contains("Total:")).context("dhat states no total")?;
    number_after(total, "bytes in").context("dhat states no blocks")
}

/// Output of valgrind about a run.
fn valgrind(tool: &[&str], program: &Path, case: &str, count: u64) -> Result<String> {
    let output = Command::new("valgrind")
        .args(tool)
        .arg(program)
        .args([case, &count.to_string()])
        .output()
        .context("valgrind is not installed: apt-get install valgrind")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        bail!("{case} failed under valgrind: {said}");
    }
    Ok(said)
}

/// The number behind a word; separators of thousands are skipped.
fn number_after(text: &str, word: &str) -> Option<u64> {
    let rest = text.split_once(word)?.1.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(rest.len());
    rest.get(..end)?.replace(',', "").parse().ok()
}

fn counts(text: &str) -> Vec<(&str, Counts)> {
    text.lines().filter_map(parsed).collect()
}

fn parsed(line: &str) -> Option<(&str, Counts)> {
    let mut parts = line.split(" | ");
    let (case, instructions, blocks) = (parts.next()?, parts.next()?, parts.next()?);
    Some((case, Counts { instructions: instructions.parse().ok()?, blocks: blocks.parse().ok()? }))
}

/// Cases whose counts differ by more than the tolerance, or that one side lacks.
fn compare(recorded: &str, counted: &str) -> Vec<String> {
    let (recorded, counted) = (counts(recorded), counts(counted));
    let mut differences = Vec::new();
    for (case, now) in &counted {
        let Some((_, before)) = recorded.iter().find(|(name, _)| name == case) else {
            differences.push(format!("{case} is not recorded"));
            continue;
        };
        for (what, before, now) in [
            ("instructions", before.instructions, now.instructions),
            ("heap blocks", before.blocks, now.blocks),
        ] {
            if now.abs_diff(before) * 100 > before * TOLERANCE_PERCENT {
                differences.push(format!("{case}: {now} {what} instead of {before}"));
            }
        }
    }
    let is_gone = |name: &str| counted.iter().all(|(case, _)| *case != name);
    differences.extend(
        recorded.iter().filter(|(name, _)| is_gone(name)).map(|(name, _)| format!("{name} is not counted")),
    );
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_valgrind_are_read() {
        assert_eq!(number_after("==7== Collected : 123456\n", "Collected :"), Some(123_456));
        assert_eq!(number_after("==7== Total:     1,234 bytes in 5,678 blocks", "bytes in"), Some(5_678));
        assert_eq!(number_after("nothing", "Collected :"), None);
    }

    #[test]
    fn a_difference_beyond_the_tolerance_is_reported_in_both_directions() {
        let recorded = format!("{HEAD}a | 1000 | 100\nb | 1000 | 100\ngone | 1 | 1\n");
        assert!(compare("a | 1000 | 100\n", "a | 1030 | 97\n").is_empty());
        let differences = compare(&recorded, "a | 1031 | 100\nb | 1000 | 96\nnew | 1 | 1\n");
        assert_eq!(
            differences,
            [
                "a: 1031 instructions instead of 1000",
                "b: 96 heap blocks instead of 100",
                "new is not recorded",
                "gone is not counted"
            ]
        );
    }
}
