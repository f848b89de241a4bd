//! State built from rows as they are read. The calling thread reads and verifies, one thread per lane
//! decodes.
//!
//! Undecoded rows wait in their encoding: a sixth of their decoded size, shrinking as the state grows, so
//! that a start needs no more memory than the state itself.

use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::progress::Progress;
#[cfg(feature = "testing")]
use crate::store::spoil::{BREAKING_TO_LOAD, break_if_named};
use ipam_machine::{Damaged, Indexed, LANES, Loading, RowKey, State, lane};

/// Bytes of rows that are handed to a lane at once.
const BATCH_BYTES: usize = 64 << 10;

/// Result of the reader: a row; none after the last.
pub(super) type Found<E> = Result<Option<(RowKey, Vec<u8>)>, E>;

/// Concatenated rows.
#[derive(Default)]
struct Batch {
    rows: Vec<(RowKey, Range<usize>)>,
    bytes: Vec<u8>,
}

impl Batch {
    fn push(&mut self, key: RowKey, row: &[u8]) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(row);
        self.rows.push((key, begin..self.bytes.len()));
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= BATCH_BYTES
    }
}

/// Makes a state of all rows that `next` finds.
pub(in crate::store) fn load<E>(
    next: impl FnMut() -> Found<E>,
    damaged: impl Fn(Damaged) -> E,
    progress: &Progress,
) -> Result<State, E> {
    let (read, decoded) = thread::scope(|scope| {
        let (lanes, threads): (Vec<_>, Vec<_>) = (0..LANES)
            .map(|_| {
                let (lane, rows) = channel();
                (lane, scope.spawn(move || decode(&rows, progress)))
            })
            .unzip();
        let read = share_out(next, &lanes);
        drop(lanes);
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        (read, threads.into_iter().map(join).collect::<Result<Vec<Indexed>, Damaged>>())
    });
    read?;
    let mut lanes = decoded.map_err(&damaged)?.into_iter();
    progress.begin("what finds things fast is made");
    let first = lanes.next().unwrap_or_else(|| Loading::default().indexed());
    first.finish(lanes).map_err(damaged)
}

/// Reads to the end, or until a lane takes no more because it found damage, which it then reports.
fn share_out<E>(mut next: impl FnMut() -> Found<E>, lanes: &[Sender<Batch>]) -> Result<(), E> {
    let mut batches: Vec<Batch> = lanes.iter().map(|_| Batch::default()).collect();
    while let Some((key, row)) = next()? {
        let at = lane(key.table);
        let (Some(batch), Some(lane)) = (batches.get_mut(at), lanes.get(at)) else { continue };
        batch.push(key, &row);
        if batch.is_full() && lane.send(std::mem::take(batch)).is_err() {
            return Ok(());
        }
    }
    for (batch, lane) in batches.into_iter().zip(lanes) {
        let _damaged = lane.send(batch);
    }
    Ok(())
}

fn decode(batches: &Receiver<Batch>, progress: &Progress) -> Result<Indexed, Damaged> {
    let mut loading = Loading::default();
    for batch in batches {
        progress.more(batch.rows.len() as u64);
        for (key, range) in batch.rows {
            let row = batch.bytes.get(range).unwrap_or_default();
            #[cfg(feature = "testing")]
            break_if_named(BREAKING_TO_LOAD, key, row);
            loading.put(key, row)?;
        }
    }
    Ok(loading.indexed())
}
