//! Progress of a run on the standard error: one line for each fault.

use crate::history::Recorder;
use crate::nemesis::Fault;

use super::history_file::Written;

/// Writer of progress lines.
#[derive(Clone)]
pub(super) struct Progress {
    recorder: Recorder,
    written: Written,
    is_quiet: bool,
}

impl Progress {
    pub(super) fn new(recorder: Recorder, written: Written, is_quiet: bool) -> Self {
        Self { recorder, written, is_quiet }
    }

    /// True if the history has reached its largest size: the run ends early.
    pub(super) fn is_full(&self) -> bool {
        self.written.bytes() > HISTORY_BYTES_MAX
    }

    /// Prints the time, the operations that succeeded since the last line, and these words.
    pub(super) fn say(&self, words: &str) {
        if self.is_quiet {
            return;
        }
        let now_ns = self.recorder.now_ns();
        let rate = self.written.rate(now_ns);
        eprintln!("{:>7.1} s {rate:>5} ok/s  {words}", seconds(now_ns));
    }

    /// Prints a line about a fault with its evidence.
    pub(super) fn fault(&self, verb: &str, fault: &Fault, evidence: &[String]) {
        let kind = serde_json::to_value(&fault.kind).unwrap_or_default();
        let words = kind.as_object().map(|fields| {
            let shown = fields.iter().filter(|(name, _)| *name != "kind").map(|(_, value)| short(value));
            shown.collect::<Vec<_>>().join(" ")
        });
        let name = kind.get("kind").and_then(|kind| kind.as_str()).unwrap_or_default();
        let lasts = format!("{} ms", fault.lasts_ms);
        let evidence = cut(&evidence.join("; "), EVIDENCE_CHARS_MAX);
        self.say(&format!(
            "{verb} {name} {} {lasts}: {evidence}",
            cut(&words.unwrap_or_default(), WORDS_MAX)
        ));
    }
}

/// Largest history: some two million operations.
const HISTORY_BYTES_MAX: u64 = 1 << 30;
const EVIDENCE_CHARS_MAX: usize = 160;
const WORDS_MAX: usize = 60;

fn short(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(items) => items.iter().map(short).collect::<Vec<_>>().join(","),
        serde_json::Value::Object(fields) => fields.values().map(short).collect::<Vec<_>>().join(">"),
        other => other.to_string(),
    }
}

fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn seconds(time_ns: u64) -> f64 {
    std::time::Duration::from_nanos(time_ns).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_cut_between_characters() {
        assert_eq!(cut("äöü", 2), "äö…");
        assert_eq!(cut("äöü", 3), "äöü");
    }

    #[test]
    fn links_are_shown_by_their_ends() {
        let links = serde_json::json!([{"from": "n1", "to": "n2"}, {"from": "n2", "to": "n1"}]);
        assert_eq!(short(&links), "n1>n2,n2>n1");
    }
}
