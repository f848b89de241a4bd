//! Series: results of simulated runs, one in each line of a file, so that a series can be continued.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context as _, Result};

use super::case::Case;
use super::process::SimulatedRun;
use crate::report::Results;
use crate::sync::held;

/// Name of the file.
const FILE: &str = "simulated.jsonl";

/// Results of a directory.
#[derive(Debug)]
pub struct Series {
    /// Cases as JSON.
    known: BTreeSet<String>,
    file: Mutex<File>,
}

impl Series {
    /// Opens the series of a directory, which is created if it is missing.
    ///
    /// # Errors
    /// If the directory can't be written.
    pub fn open(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        let path = dir.join(FILE);
        let known =
            read(&path)?.iter().map(|one| serde_json::to_string(&one.case)).collect::<Result<_, _>>()?;
        let file = File::options().create(true).append(true).open(&path);
        let mut file = file.with_context(|| path.display().to_string())?;
        if fs::read(&path)?.last().is_some_and(|last| *last != b'\n') {
            file.write_all(b"\n")?;
        }
        Ok(Self { known, file: Mutex::new(file) })
    }

    /// True if the series had this case when it was opened.
    #[must_use]
    pub fn has(&self, case: &Case) -> bool {
        serde_json::to_string(case).is_ok_and(|case| self.known.contains(&case))
    }

    /// Number of cases of the series when it was opened.
    #[must_use]
    pub fn case_count(&self) -> usize {
        self.known.len()
    }

    /// Adds a run.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn add(&self, run: &SimulatedRun) -> Result<()> {
        let mut line = serde_json::to_vec(run)?;
        line.push(b'\n');
        held(&self.file).write_all(&line).context(FILE)
    }
}

/// Reads a series. A missing series is empty; a truncated line is skipped.
///
/// # Errors
/// If the file can't be read.
fn read(path: &Path) -> Result<Vec<SimulatedRun>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let mut runs = Vec::new();
    for line in BufReader::new(file).lines() {
        if let Ok(run) = serde_json::from_str(&line?) {
            runs.push(run);
        }
    }
    Ok(runs)
}

/// Results of all series below a directory.
///
/// # Errors
/// If a file can't be read.
pub fn read_all(dir: &Path) -> Result<Vec<Results>> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        found.extend(read(&dir.join(FILE))?.into_iter().map(|run| run.results));
        for entry in fs::read_dir(&dir).with_context(|| dir.display().to_string())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_goes_on_behind_a_line_that_was_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let case = |seed| Case::of_seed(seed, std::time::Duration::from_secs(1), &["a".to_owned()], &[]);
        let run = |seed| SimulatedRun { case: case(seed), results: Results::default() };
        let series = Series::open(dir.path()).unwrap();
        series.add(&run(1)).unwrap();
        let path = dir.path().join(FILE);
        let mut text = fs::read(&path).unwrap();
        text.extend_from_slice(b"{\"case\":{\"seed\":2");
        fs::write(&path, text).unwrap();
        let series = Series::open(dir.path()).unwrap();
        assert!(series.has(&case(1)) && !series.has(&case(2)));
        series.add(&run(2)).unwrap();
        assert_eq!(read(&path).unwrap().len(), 2);
    }
}
