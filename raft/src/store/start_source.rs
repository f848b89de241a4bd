//! Source of a start: the rows, or the snapshot if that is quicker or the rows are suspect.

use std::path::Path;
use std::thread;

use crate::progress::Progress;
use crate::store::directory::{Marker, StoreError};
use crate::store::journal::JournalFiles;
use crate::store::log::next;
use crate::store::rows::{self, Point, Rows};
use crate::store::snapshot::{Instant, SnapshotDir};
use crate::types::LogId;

/// Number of entries that are quick to apply: each takes at most 12 ms, with 1,000 allocations in it.
const NEAR_ENTRIES: u64 = 256;

/// Rows and their position, if they are trustworthy; others are set aside.
pub(super) fn sound_rows(
    dir: &Path,
    marker: &Marker,
    same_boot: bool,
    covered: Option<LogId>,
) -> Result<Option<(Rows, Point)>, StoreError> {
    let fresh = !rows::path(dir).exists();
    let opened = if !same_boot && !marker.clean && !fresh {
        Err("the machine went down without a clean stop".to_owned())
    } else {
        Rows::open_at(dir).and_then(|opened| match opened.1.applied {
            applied if applied < marker.rows_applied => {
                Err(format!("they went back to {applied:?}, from {:?}", marker.rows_applied))
            }
            applied if applied > covered => Err(format!("they are ahead of the log, at {applied:?}")),
            _ => Ok(opened),
        })
    };
    believed(dir, opened)
}

fn believed<T>(dir: &Path, rows: Result<T, String>) -> Result<Option<T>, StoreError> {
    match rows {
        Ok(rows) => Ok(Some(rows)),
        Err(quarantine) => {
            tracing::warn!(quarantine, "rows put aside; they are rebuilt from snapshot and log");
            rows::put_aside(dir).map_err(StoreError::io(&rows::path(dir)))?;
            Ok(None)
        }
    }
}

/// The source of a start.
pub(super) struct Start {
    pub(super) instant: Instant,
    /// Row store and its position, which may be ahead of the state; none if it must be rewritten.
    pub(super) rows: Option<(Rows, Option<LogId>)>,
}

/// Begins with the snapshot if the log continues shortly after it, else with the rows. A snapshot loads in
/// half the time. The snapshot must be intact in both cases, since peers may request it.
pub(super) fn begin(
    dir: &Path,
    rows: Option<(Rows, Point)>,
    snapshots: &SnapshotDir,
    covered: Option<LogId>,
    journal: &JournalFiles,
    progress: &Progress,
) -> Result<Start, StoreError> {
    let rows = rows.filter(|(_, point)| point.applied >= snapshots.last());
    let near = snapshots.last().is_some_and(|last| is_near(Some(last), covered));
    let Some((rows, point)) = rows else { return from_snapshot(snapshots, None, progress) };
    if near {
        return from_snapshot(snapshots, Some((rows, point.applied)), progress);
    }
    progress.begin("its rows are read");
    let (read, sound) = thread::scope(|scope| {
        let sound = scope.spawn(|| snapshots.verify_current());
        let read = rows.read(&point, progress).and_then(|state| {
            let blocks = journal.load_open(&state.header().journal);
            let blocks = blocks.map_err(|error| format!("the journal doesn't reach them: {error}"))?;
            Ok((state, blocks))
        });
        (read, sound.join())
    });
    sound.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    match read {
        Ok((state, journal)) => {
            let Point { applied, membership, .. } = point;
            let instant = Instant { state, applied, membership, journal };
            Ok(Start { instant, rows: Some((rows, applied)) })
        }
        Err(quarantine) => {
            // An open sled database keeps writing, so it is closed first.
            drop(rows);
            believed::<()>(dir, Err(quarantine))?;
            from_snapshot(snapshots, None, progress)
        }
    }
}

fn from_snapshot(
    snapshots: &SnapshotDir,
    rows: Option<(Rows, Option<LogId>)>,
    progress: &Progress,
) -> Result<Start, StoreError> {
    progress.begin("its snapshot is read");
    Ok(Start { instant: snapshots.load_current(progress)?.unwrap_or_default(), rows })
}

/// Returns true if the replay from one entry to another is quick, even with the largest entries.
pub(super) fn is_near(from: Option<LogId>, to: Option<LogId>) -> bool {
    next(to).saturating_sub(next(from)) <= NEAR_ENTRIES
}
