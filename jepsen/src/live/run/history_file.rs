//! History file of a run, with its size and the number of successful operations.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result};

use crate::sync::held;

/// Figures of a history that is being written.
#[derive(Debug, Clone, Default)]
pub(super) struct Written {
    figures: Arc<Figures>,
}

#[derive(Debug, Default)]
struct Figures {
    bytes: AtomicU64,
    ok: AtomicU64,
    last: Mutex<Last>,
}

/// Time and number of successful operations at the last progress line.
#[derive(Debug, Default)]
struct Last {
    time_ns: u64,
    ok: u64,
}

/// Mark of a successful operation in its line: the writer counts without parsing.
const OK: &[u8] = br#""type":"ok""#;

impl Written {
    /// Bytes of the history.
    pub(super) fn bytes(&self) -> u64 {
        self.figures.bytes.load(Ordering::Relaxed)
    }

    /// Successful operations.
    pub(super) fn ok(&self) -> u64 {
        self.figures.ok.load(Ordering::Relaxed)
    }

    /// Successful operations per second since the last call.
    pub(super) fn rate(&self, now_ns: u64) -> u64 {
        let ok = self.ok();
        let mut last = held(&self.figures.last);
        let (time_ns, count) = (now_ns.saturating_sub(last.time_ns), ok.saturating_sub(last.ok));
        *last = Last { time_ns: now_ns, ok };
        count.saturating_mul(1_000_000_000).checked_div(time_ns).unwrap_or_default()
    }
}

/// Buffered file that keeps the figures.
struct HistoryFile {
    file: BufWriter<File>,
    line: Vec<u8>,
    written: Written,
}

impl Write for HistoryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if bytes.last() == Some(&b'\n') {
            self.file.write_all(&self.line)?;
            let figures = &self.written.figures;
            figures.bytes.fetch_add(self.line.len() as u64, Ordering::Relaxed);
            if self.line.windows(OK.len()).any(|part| part == OK) {
                figures.ok.fetch_add(1, Ordering::Relaxed);
            }
            self.line.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Creates the history file in a directory.
pub(super) fn create(path: &Path) -> Result<(Box<dyn Write + Send>, Written)> {
    let file = BufWriter::new(File::create(path).with_context(|| path.display().to_string())?);
    let written = Written::default();
    Ok((Box::new(HistoryFile { file, line: Vec::new(), written: written.clone() }), written))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Function, Recorder, Type, Value};

    #[test]
    fn bytes_and_successful_operations_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.jsonl");
        let (writer, written) = create(&path).unwrap();
        let recorder = Recorder::new(writer);
        for kind in [Type::Ok, Type::Fail, Type::Ok, Type::Info] {
            let process = recorder.new_process();
            let invocation = recorder.begin(process, Function::Read, Value::default());
            recorder.end(invocation, kind, Value::default());
        }
        recorder.finish().unwrap();
        assert_eq!(written.ok(), 2);
        assert_eq!(written.bytes(), std::fs::metadata(&path).unwrap().len());
        assert_eq!(written.rate(1_000_000_000), 2);
        assert_eq!(written.rate(2_000_000_000), 0);
    }
}
