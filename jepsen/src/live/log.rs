//! Logs of processes: complaints, and last lines for errors.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Parts of lines, in lower case, by which a process reports a defect of its own.
const COMPLAINTS: [&str; 3] = ["panicked", "invariant broken", "stack overflow"];
/// Maximum number of complaints of one process.
const COMPLAINTS_MAX: usize = 20;
/// Longest complaint.
const COMPLAINT_CHARS_MAX: usize = 400;
/// Lines of a log in an error.
const TAIL: usize = 12;

/// Complaints in the complete lines of a log behind a position. The position moves behind these lines.
pub(crate) fn complaints(log: &Path, from: &mut u64) -> Vec<String> {
    let mut bytes = Vec::new();
    let opened = File::open(log).and_then(|mut file| {
        file.seek(SeekFrom::Start(*from))?;
        file.read_to_end(&mut bytes)
    });
    // A process that was never started has no log.
    if opened.is_err() {
        return Vec::new();
    }
    // The process may be writing its last line.
    bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
    *from += u64::try_from(bytes.len()).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let complains = |line: &&str| COMPLAINTS.iter().any(|complaint| line.to_lowercase().contains(complaint));
    let lines = text.lines().filter(complains).take(COMPLAINTS_MAX);
    lines.map(|line| line.chars().take(COMPLAINT_CHARS_MAX).collect()).collect()
}

/// Last lines of the log of a process with this name.
pub(crate) fn tail(name: &str, log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.get(lines.len().saturating_sub(TAIL)..).unwrap_or_default();
    format!("    the end of the log of {name}:\n    {}", last.join("\n    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_found_once() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("n1.log");
        let mut from = 0;
        assert!(complaints(&log, &mut from).is_empty());
        fs::write(&log, "fine\nthread 'a' panicked at b.rs:1\n").unwrap();
        assert_eq!(complaints(&log, &mut from), ["thread 'a' panicked at b.rs:1"]);
        assert!(complaints(&log, &mut from).is_empty());
        fs::write(&log, "fine\nthread 'a' panicked at b.rs:1\nINVARIANT BROKEN: x\n").unwrap();
        assert_eq!(complaints(&log, &mut from), ["INVARIANT BROKEN: x"]);
        let begun = "fine\nthread 'a' panicked at b.rs:1\nINVARIANT BROKEN: x\nthread 'c' panicked";
        fs::write(&log, begun).unwrap();
        assert!(complaints(&log, &mut from).is_empty());
        fs::write(&log, format!("{begun} at d.rs:2\n")).unwrap();
        assert_eq!(complaints(&log, &mut from), ["thread 'c' panicked at d.rs:2"]);
    }
}
