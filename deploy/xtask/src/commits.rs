//! Commit messages: `area: verb object` in at most 72 columns, an empty line, and the reason.
//!
//! The check reads the newest commits of the clone, so that it works in a shallow one. It compares author
//! dates and no hashes, because a rebase changes hashes.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Newest commits to read, as an option of `git log`.
const READ_MAX: &str = "--max-count=30";

/// Author dates to which the convention applies, in Unix seconds: from 2026-11-24T00:00:00Z on.
const SINCE: u64 = 1_795_478_400;

/// Columns of a subject.
const SUBJECT_MAX: usize = 72;

/// Prints the complaints about the newest commits, and fails if there are any.
pub(crate) fn run(root: &Path) -> Result<()> {
    let complaints = check(root)?;
    for complaint in &complaints {
        println!("{complaint}");
    }
    if !complaints.is_empty() {
        bail!("{} complaints; CONTRIBUTING.md has the convention", complaints.len());
    }
    Ok(())
}

/// Complaints about the newest commits of `HEAD`, merges excluded.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let words = ["log", READ_MAX, "--no-merges", "-z", "--format=%h %at%n%B", "HEAD"];
    let output = Command::new("git").args(words).current_dir(root).output().context("can't start git")?;
    if !output.status.success() {
        bail!("git log failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let log = String::from_utf8_lossy(&output.stdout);
    let mut complaints = Vec::new();
    for commit in log.split('\0').filter(|commit| !commit.is_empty()) {
        complaints.extend(complaint(commit)?);
    }
    Ok(complaints)
}

/// Complaint about one commit: its hash and author date, then its message from the second line on.
fn complaint(commit: &str) -> Result<Option<String>> {
    let (head, message) = commit.split_once('\n').context("git log printed a commit without a message")?;
    let (hash, date) = head.split_once(' ').context("git log printed a commit without a date")?;
    let date: u64 = date.parse().with_context(|| format!("the author date of commit {hash}"))?;
    if date < SINCE {
        return Ok(None);
    }
    Ok(defect(message).map(|defect| format!("commit {hash}: {defect}")))
}

/// First departure of a message from the convention.
fn defect(message: &str) -> Option<&'static str> {
    let mut lines = message.lines();
    let subject = lines.next().unwrap_or_default();
    if subject.chars().count() > SUBJECT_MAX {
        return Some("the subject exceeds 72 columns");
    }
    if !is_subject(subject) {
        return Some("the subject is not `area: verb object`, lower case, without a full stop");
    }
    if !lines.next().unwrap_or_default().is_empty() {
        return Some("the second line is not empty");
    }
    if lines.all(|line| line.trim().is_empty()) {
        return Some("the body with the reason is missing");
    }
    None
}

/// True for `area: verb object`; several areas are divided by commas.
fn is_subject(subject: &str) -> bool {
    let Some((areas, rest)) = subject.split_once(": ") else { return false };
    let is_area = |area: &str| {
        !area.is_empty()
            && area.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_./".contains(c))
    };
    let is_sentence = rest.starts_with(|c: char| c.is_ascii_lowercase()) && rest.contains(' ');
    areas.split(", ").all(is_area) && is_sentence && !rest.ends_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    const REASON: &str = "\n\nThe count was printed twice.\n";

    #[test]
    fn a_message_of_the_convention_passes() {
        for subject in
            ["ipamctl: report pool usage once", "raft, daemon: name the errors DialError and NotIssued"]
        {
            assert_eq!(defect(&format!("{subject}{REASON}")), None, "{subject}");
        }
    }

    #[test]
    fn a_subject_of_another_form_is_refused() {
        let long = format!("ipamctl: report {}", "x".repeat(SUBJECT_MAX - 15));
        for subject in [
            "Report pool usage once",
            "ipamctl: Report pool usage once",
            "Ipamctl: report pool usage once",
            "ipamctl: report pool usage once.",
            "ipamctl: report",
            ": report pool usage once",
            "",
            &long,
        ] {
            assert!(defect(&format!("{subject}{REASON}")).is_some(), "{subject}");
        }
        assert_eq!(defect(&format!("{}{REASON}", &long[..SUBJECT_MAX])), None);
    }

    #[test]
    fn a_message_without_a_body_is_refused() {
        for body in ["", "\n", "\n\n", "\n \n", "\nThe count was printed twice.\n"] {
            assert!(defect(&format!("ipamctl: report pool usage once{body}")).is_some(), "{body:?}");
        }
    }

    #[test]
    fn earlier_commits_are_exempt() {
        let commit = |date: u64| complaint(&format!("c3a08ac {date}\nReport pool usage once\n")).unwrap();
        assert_eq!(commit(SINCE - 1), None);
        assert!(commit(SINCE).unwrap().starts_with("commit c3a08ac: the subject is not"));
    }
}
