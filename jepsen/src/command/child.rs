//! Runs as child processes: a failed run leaves nothing behind for the next one.

use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::Outcome;

/// One run of `ipam-jepsen live`.
#[derive(Debug, Clone)]
pub(super) struct Run {
    /// Name in progress lines.
    pub(super) name: String,
    /// Arguments of `live` besides the directories.
    pub(super) words: Vec<String>,
    /// Directory of the stored run.
    pub(super) store: PathBuf,
    /// Directory of the programs under test.
    pub(super) bin_dir: PathBuf,
}

impl Run {
    /// Same run with another time under faults, in seconds.
    pub(super) fn for_seconds(&self, seconds: u64) -> Self {
        let mut run = self.clone();
        run.words.extend(["--time".into(), format!("{seconds}s")]);
        run
    }

    /// Command line that repeats the run.
    pub(super) fn shown(&self) -> String {
        format!("ipam-jepsen live {}", self.words.join(" "))
    }

    /// Makes the run, with an old attempt at it removed. Returns its outcome and the time that it took.
    ///
    /// # Errors
    /// If it can't be started, or was interrupted.
    pub(super) fn make(&self) -> Result<(Outcome, Duration)> {
        if self.store.exists() {
            std::fs::remove_dir_all(&self.store).with_context(|| self.store.display().to_string())?;
        }
        let began = Instant::now();
        // A signal of the terminal reaches the child as well, which cleans up.
        let status = Command::new(std::env::current_exe().context("this program can't be found")?)
            .arg("live")
            .args(&self.words)
            .arg("--store")
            .arg(&self.store)
            .arg("--bin-dir")
            .arg(&self.bin_dir)
            .status()
            .with_context(|| self.shown())?;
        Ok((outcome(status)?, began.elapsed()))
    }
}

fn outcome(status: ExitStatus) -> Result<Outcome> {
    match status.code() {
        Some(0) => Ok(Outcome::Held),
        Some(1) => Ok(Outcome::Violated),
        Some(_) => Ok(Outcome::Undecided),
        None => bail!("a run has ended with {status}"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn an_end_by_a_signal_is_no_outcome() {
        assert_eq!(outcome(ExitStatus::from_raw(0)).unwrap(), Outcome::Held);
        assert_eq!(outcome(ExitStatus::from_raw(1 << 8)).unwrap(), Outcome::Violated);
        assert_eq!(outcome(ExitStatus::from_raw(2 << 8)).unwrap(), Outcome::Undecided);
        assert!(outcome(ExitStatus::from_raw(9)).is_err());
    }
}
