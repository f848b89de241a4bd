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

/// Name of the file with the history.
pub const HISTORY: &str = "history.jsonl";
/// Name of the file with the verdicts.
pub const RESULTS: &str = "results.json";
const SETTINGS: &str = "settings.json";
const JOURNAL: &str = "journal.jsonl";
const FINALS: &str = "finals.jsonl";
const SAMPLES: &str = "samples.jsonl";
const EXITS: &str = "exits.jsonl";

/// Writes a record, except for its history, which the recorder writes while the run goes on.
///
/// # Errors
/// If a file can't be written.
pub fn write(dir: &Path, record: &Record) -> Result<()> {
    std::fs::write(dir.join(SETTINGS), serde_json::to_vec_pretty(&record.settings)?)?;
    write_lines(&dir.join(JOURNAL), &record.journal)?;
    write_lines(&dir.join(FINALS), &record.finals)?;
    write_lines(&dir.join(SAMPLES), &record.samples)?;
    write_lines(&dir.join(EXITS), &record.exits)
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
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let rows = BufReader::new(file).lines().enumerate().map(|(at, line)| {
        serde_json::from_str(&line?).with_context(|| format!("{} line {}", path.display(), at + 1))
    });
    rows.collect()
}
