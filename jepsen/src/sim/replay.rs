//! Replay: the second run of a case, which must be bit-identical to the first.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::store;

/// Fails if two runs of a case differ.
///
/// # Errors
/// If the runs differ, or a file can't be read.
pub fn compare(one: &Path, other: &Path) -> Result<()> {
    for name in [store::HISTORY, store::JOURNAL, store::FINALS] {
        let read = |dir: &Path| fs::read(dir.join(name)).with_context(|| dir.display().to_string());
        let (first, second) = (read(one)?, read(other)?);
        let same = first.iter().zip(&second).take_while(|(one, other)| one == other).count();
        let line = first.get(..same).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count() + 1;
        let (one, other) = (one.display(), other.display());
        ensure!(first == second, "{name} differs from its replay in line {line}: {one} {other}");
    }
    Ok(())
}
