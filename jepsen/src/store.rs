//! Store: a run as a directory of text files.
//!
//! `settings.json`, `history.jsonl`, `history.edn`, `journal.jsonl`, `finals.jsonl`, `samples.jsonl`,
//! `exits.jsonl`, and `logs/` with the output of each process.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::checker::Record;
use crate::history::write_edn;

/// Name of the file with the history.
pub const HISTORY: &str = "history.jsonl";
/// Name of the file with the history as Jepsen reads it.
pub const EDN: &str = "history.edn";
const SETTINGS: &str = "settings.json";
/// Name of the file with the journal.
pub const JOURNAL: &str = "journal.jsonl";
/// Name of the file with the final states.
pub const FINALS: &str = "finals.jsonl";
const SAMPLES: &str = "samples.jsonl";
const EXITS: &str = "exits.jsonl";

/// Writes a record, except for its history, which the recorder writes during the run. `history.edn` is made
/// from the history.
///
/// # Errors
/// If a file can't be written.
pub fn write(dir: &Path, record: &Record) -> Result<()> {
    std::fs::write(dir.join(SETTINGS), serde_json::to_vec_pretty(&record.settings)?)?;
    write_lines(&dir.join(JOURNAL), &record.journal)?;
    write_lines(&dir.join(FINALS), &record.finals)?;
    write_lines(&dir.join(SAMPLES), &record.samples)?;
    write_lines(&dir.join(EXITS), &record.exits)?;
    write_history_as_edn(dir)
}

/// Converts the history line by line, since a long one is large in memory.
fn write_history_as_edn(dir: &Path) -> Result<()> {
    let path = dir.join(EDN);
    let mut file = BufWriter::new(File::create(&path).with_context(|| path.display().to_string())?);
    for operation in lines(&dir.join(HISTORY))? {
        write_edn(&[operation?], &mut file)?;
    }
    Ok(file.flush()?)
}

/// Reads a stored run.
///
/// # Errors
/// If a file is missing or damaged; the error names it.
pub fn read(dir: &Path) -> Result<Record> {
    let settings = dir.join(SETTINGS);
    let text = std::fs::read(&settings).with_context(|| settings.display().to_string())?;
    Ok(Record {
        settings: serde_json::from_slice(&text).with_context(|| settings.display().to_string())?,
        history: read_lines(&dir.join(HISTORY))?,
        journal: read_lines(&dir.join(JOURNAL))?,
        finals: read_lines(&dir.join(FINALS))?,
        samples: read_lines(&dir.join(SAMPLES))?,
        exits: read_lines(&dir.join(EXITS))?,
    })
}

fn write_lines<T: Serialize>(path: &Path, rows: &[T]) -> Result<()> {
    let mut file = BufWriter::new(File::create(path).with_context(|| path.display().to_string())?);
    for row in rows {
        serde_json::to_writer(&mut file, row)?;
        file.write_all(b"\n")?;
    }
    Ok(file.flush()?)
}

fn read_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    lines(path)?.collect()
}

/// Rows of a file, one a line.
fn lines<T: DeserializeOwned>(path: &Path) -> Result<impl Iterator<Item = Result<T>>> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    Ok(BufReader::new(file).lines().enumerate().map(|(at, line)| {
        serde_json::from_str(&line?).with_context(|| format!("{} line {}", path.display(), at + 1))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::fixtures::{Script, allocation, event, final_state, pool, prefix};
    use crate::history::{Function, Value};

    #[test]
    fn a_stored_run_is_read_as_it_was_written() {
        let mut script = Script::default();
        script.lead("n1");
        script.ok(1, Function::Read, Value::default(), Value::default());
        let mut last = final_state("n1");
        last.allocations.push(allocation(5, "10.0.0.5/24", "p"));
        last.prefixes.push(prefix(6, "10.0.0.16/28", "p", None));
        last.pools.push(pool("p", 90, [17, 0, 0, 0, 0, 239]));
        let record = Record {
            history: script.history(),
            samples: script.samples(),
            journal: vec![event(5, 0, "address.allocated", Some(5))],
            finals: vec![last],
            ..Record::default()
        };
        let dir = tempfile::tempdir().unwrap();
        write_lines(&dir.path().join(HISTORY), &record.history).unwrap();
        write(dir.path(), &record).unwrap();
        let read = read(dir.path()).unwrap();
        assert_eq!((&read.history, &read.journal), (&record.history, &record.journal));
        assert_eq!(read.samples, record.samples);
        assert_eq!(read.finals[0].pools[0].status.counts, record.finals[0].pools[0].status.counts);
        let edn = std::fs::read_to_string(dir.path().join(EDN)).unwrap();
        assert_eq!(edn.lines().count(), 2);
    }
}
