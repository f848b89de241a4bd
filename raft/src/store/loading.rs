//! A state made of rows as they are read: one thread reads and checks sums, this one decodes.
//!
//! Both take about as long. What is read and not yet decoded is bounded, so that a large state isn't in memory
//! twice.

use std::sync::mpsc::sync_channel;
use std::thread;

use crate::machine::{Damaged, Loading, RowKey, State};
use crate::progress::Progress;

/// Rows that change hands together.
const ROWS: usize = 1024;
/// How many of those may wait.
const WAITING: usize = 16;

/// What the reader finds: a row; nothing after the last.
pub(super) type Found<E> = Result<Option<(RowKey, Vec<u8>)>, E>;

/// Makes a state of all rows that `next` finds.
pub(super) fn load<E: Send>(
    mut next: impl FnMut() -> Found<E> + Send,
    damaged: impl Fn(Damaged) -> E,
    progress: &Progress,
) -> Result<State, E> {
    let mut loading = Loading::default();
    thread::scope(|scope| {
        let (found, rows) = sync_channel::<Vec<(RowKey, Vec<u8>)>>(WAITING);
        let reader = scope.spawn(move || {
            loop {
                let mut batch = Vec::with_capacity(ROWS);
                while batch.len() < ROWS
                    && let Some(row) = next()?
                {
                    batch.push(row);
                }
                let last = batch.len() < ROWS;
                // Nobody takes more: what was decoded is damaged, and the error is there.
                if found.send(batch).is_err() || last {
                    return Ok(());
                }
            }
        });
        let decode = || {
            for batch in rows {
                progress.more(batch.len() as u64);
                for (key, row) in batch {
                    loading.put(key, &row)?;
                }
            }
            Ok::<(), Damaged>(())
        };
        let decoded = decode();
        // sled panics where others return an error: it is caught further up, as if there were no thread.
        let read = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        read.and(decoded.map_err(&damaged))
    })?;
    progress.begin("what finds things fast is made");
    loading.finish().map_err(damaged)
}
