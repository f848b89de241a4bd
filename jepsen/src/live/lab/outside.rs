//! Faults of one process that its supervisor injects: fsync and the wall clock.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Number of the error `EIO`.
pub(super) const EIO: u64 = 5;

/// Contents of a control file; see `supervise.c`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Injected {
    /// Additional time of each fsync-like call, in milliseconds.
    pub(super) fsync_ms: u64,
    /// Error number with which fsync-like calls fail; 0 for none.
    pub(super) fsync_errno: u64,
    /// Shift of the wall clock.
    pub(super) clock_shift_ms: i64,
    /// Wrong rate of the wall clock.
    pub(super) clock_drift_ppm: i64,
}

/// Numbers of calls that a supervisor altered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Altered {
    /// Delayed fsync-like calls.
    pub(super) delayed: u64,
    /// Failed fsync-like calls.
    pub(super) failed: u64,
    /// Reads of the wall clock.
    pub(super) clock: u64,
}

/// Control file of a supervisor.
#[derive(Debug)]
pub(super) struct Outside {
    path: PathBuf,
    injected: Injected,
}

impl Outside {
    /// Writes a control file without faults.
    pub(super) fn make(path: PathBuf) -> Result<Self> {
        let outside = Self { path, injected: Injected::default() };
        outside.write()?;
        Ok(outside)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Changes the faults; running processes apply the change at their next call.
    pub(super) fn set(&mut self, change: impl FnOnce(&mut Injected)) -> Result<()> {
        change(&mut self.injected);
        self.write()
    }

    fn write(&self) -> Result<()> {
        let Injected { fsync_ms, fsync_errno, clock_shift_ms, clock_drift_ppm } = self.injected;
        let mut text = String::new();
        writeln!(text, "fsync-ms {fsync_ms}\nfsync-errno {fsync_errno}")?;
        writeln!(text, "clock-shift-ms {clock_shift_ms}\nclock-drift-ppm {clock_drift_ppm}")?;
        let written = self.path.with_extension("new");
        fs::write(&written, text)
            .and_then(|()| fs::rename(&written, &self.path))
            .with_context(|| self.path.display().to_string())
    }

    /// Numbers of altered calls since the lab began.
    pub(super) fn altered(&self) -> Altered {
        let mut name = self.path.clone().into_os_string();
        name.push(".counts");
        let bytes = fs::read(name).unwrap_or_default();
        let mut numbers =
            bytes.chunks_exact(8).filter_map(|part| part.try_into().ok()).map(u64::from_ne_bytes);
        let mut next = || numbers.next().unwrap_or_default();
        Altered { delayed: next(), failed: next(), clock: next() }
    }
}
