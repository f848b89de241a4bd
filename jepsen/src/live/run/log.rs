//! Complaints in the log of a process.

use std::path::Path;

/// Parts of lines by which a process reports a defect of its own.
const COMPLAINTS: [&str; 3] = ["panicked at", "invariant", "stack overflow"];
/// Maximum number of complaints of one process.
const COMPLAINTS_MAX: usize = 20;

/// Lines of a log that report a defect; none without a log.
pub(super) fn complaints(log: &Path) -> Vec<String> {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let complains = |line: &&str| COMPLAINTS.iter().any(|complaint| line.to_lowercase().contains(complaint));
    text.lines().filter(complains).take(COMPLAINTS_MAX).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        std::fs::write(&log, "started\nthread 'main' panicked at src/a.rs:1\n\n").unwrap();
        assert_eq!(complaints(&log), ["thread 'main' panicked at src/a.rs:1"]);
        assert!(complaints(&dir.path().join("none")).is_empty());
    }
}
