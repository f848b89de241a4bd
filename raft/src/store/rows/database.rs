//! Rows of the state in sled, so that a start need not read the whole snapshot and log.
//!
//! sled 0.34 doesn't sync, and on damage it panics or silently returns to an older page. So everything is
//! verified: every block of rows has a checksum, the batch's point has the digest of all rows, and the marker
//! has the position that the rows must reach. On any doubt the directory is set aside: log and snapshot have
//! all of it.

use std::fs::{self, File};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::block::{self, Block, EncodedRow};
use super::loading;
use crate::progress::Progress;
use crate::store::directory::{disk, frame, truncating};
#[cfg(feature = "testing")]
use crate::store::spoil::{BREAKING_TO_WRITE, break_if_named};
use crate::threads;
use crate::types::{LogId, StoredMembership};
use ipam_machine::{Broken, State};

const POINT_KIND: u8 = 0xC1;
/// Version of point and blocks. Directories with another version are rebuilt.
const POINT_VERSION: u8 = 2;
/// Key of the point, which is shorter than any block's key.
const POINT_KEY: &[u8] = b"p";
const CACHE_BYTES: u64 = 32 << 20;
/// Blocks of one write. sled copies a node for every one, frees none of the copies before the end of the
/// batch, and frees only a limited number after it: with 256 in a batch its memory stays flat, with 1,024 it
/// grows for ever.
const BATCH_BLOCKS: usize = 128;
/// Blocks between syncs, about a megabyte. One sync of all at the end would delay the log, which shares the
/// disk.
const SYNC_BLOCKS: usize = 4 * BATCH_BLOCKS;

/// Attempts to get sled's own lock; the lock of the data directory is held already.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Position of the rows: the last applied entry, with membership and digest of that state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::store) struct Point {
    pub(in crate::store) applied: Option<LogId>,
    pub(in crate::store) membership: StoredMembership,
    pub(in crate::store) digest: u128,
}

/// The row store, open.
pub(in crate::store) struct Rows {
    db: sled::Db,
    /// Second handle on sled's file, since sled's own flush doesn't sync.
    file: File,
}

pub(in crate::store) fn path(dir: &Path) -> PathBuf {
    dir.join("rows")
}

/// Sets a suspect directory aside for an analysis; only the newest is kept.
pub(in crate::store) fn put_aside(dir: &Path) -> io::Result<()> {
    let rows = path(dir);
    if !rows.exists() {
        return Ok(());
    }
    let mut newest = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if let Some(number) = entry.file_name().to_str().and_then(|name| name.strip_prefix("rows.damaged-")) {
            newest = newest.max(number.parse::<u64>().unwrap_or(0));
            truncating::remove_dir(&entry.path())?;
        }
    }
    disk::rename(&rows, &dir.join(format!("rows.damaged-{}", newest.saturating_add(1))))
}

impl Rows {
    /// Opens the rows of a data directory, and reads their position. The error is the reason to rebuild them.
    pub(in crate::store) fn open_at(dir: &Path) -> Result<(Self, Point), String> {
        let dir = path(dir);
        unharmed(|| {
            let rows = Self::open(&dir)?;
            if rows.db.is_empty() {
                return Ok((rows, Point::default()));
            }
            let point = rows.point()?.ok_or("the last write of it was broken off")?;
            Ok((rows, point))
        })
    }

    /// Reads and verifies all rows.
    pub(in crate::store) fn read(&self, point: &Point, progress: &Progress) -> Result<State, String> {
        unharmed(|| {
            if self.db.is_empty() {
                return Ok(State::default());
            }
            let mut items = self.db.iter();
            let mut rows = Vec::new().into_iter();
            let next = || loop {
                if let Some(row) = rows.next() {
                    return Ok(Some(row));
                }
                let Some(item) = items.next() else { return Ok(None) };
                rows = unseal(&item.map_err(|error| error.to_string())?)?.into_iter();
            };
            let state = loading::load(next, |damaged| damaged.0, progress)?;
            if point.digest != state.digest() {
                return Err("the digest of its rows isn't the one it had".to_owned());
            }
            // The page cache of the last run becomes durable before it is relied on.
            self.sync()?;
            Ok(state)
        })
    }

    /// Makes a new row store with all rows of a state.
    pub(in crate::store) fn create(dir: &Path, state: &State, point: &Point) -> Result<Self, String> {
        let dir = path(dir);
        unharmed(|| {
            if dir.exists() {
                truncating::remove_dir(&dir).map_err(|error| error.to_string())?;
            }
            let rows = Self::open(&dir)?;
            rows.put(block::all(state), point)?;
            Ok(rows)
        })
    }

    /// Writes blocks that changed, and the position of their state; durable when it returns.
    pub(in crate::store) fn write(
        &self,
        blocks: impl Iterator<Item = Block>,
        point: &Point,
    ) -> Result<(), String> {
        unharmed(|| self.put(blocks, point))
    }

    /// Writes blocks and the point. A few blocks and the point are one atomic batch. With many, the first
    /// batch removes the point and the last writes it again: a directory without one isn't trusted.
    fn put(&self, blocks: impl Iterator<Item = Block>, point: &Point) -> Result<(), String> {
        let mut batch = sled::Batch::default();
        for (count, block) in blocks.enumerate() {
            if count > 0 && count % BATCH_BLOCKS == 0 {
                batch.remove(POINT_KEY);
                self.apply(std::mem::take(&mut batch))?;
            }
            if count > 0 && count % SYNC_BLOCKS == 0 {
                self.file.sync_data().map_err(|error| error.to_string())?;
            }
            #[cfg(feature = "testing")]
            block.rows.iter().for_each(|(key, row)| break_if_named(BREAKING_TO_WRITE, *key, row));
            let key = block.key.to_bytes();
            match block.rows.is_empty() {
                true => batch.remove(key.as_slice()),
                false => batch.insert(key.as_slice(), block.seal()),
            }
        }
        batch.insert(POINT_KEY, seal_point(point)?);
        self.apply(batch)?;
        self.sync()
    }

    fn open(dir: &Path) -> Result<Self, String> {
        disk::create_dir(dir).map_err(|error| error.to_string())?;
        let config = sled::Config::new().path(dir).cache_capacity(CACHE_BYTES).flush_every_ms(None);
        let mut tries = LOCK_TRIES;
        let db = loop {
            match config.open() {
                Ok(db) => break db,
                // sled releases its lock some time after it was dropped.
                Err(error) if tries > 0 && error.to_string().contains("could not acquire lock") => {
                    tries -= 1;
                    threads::pause(LOCK_PAUSE);
                }
                Err(error) => return Err(error.to_string()),
            }
        };
        let file = File::open(dir.join("db")).map_err(|error| error.to_string())?;
        disk::sync_dir(dir).map_err(|error| error.to_string())?;
        Ok(Self { db, file })
    }

    fn point(&self) -> Result<Option<Point>, String> {
        let Some(sealed) = self.db.get(POINT_KEY).map_err(|error| error.to_string())? else {
            return Ok(None);
        };
        let frame = frame::read(sealed.as_ref(), POINT_KIND).map_err(|error| error.to_string())?;
        if frame.version != POINT_VERSION {
            return Err(format!("its version is {}", frame.version));
        }
        postcard::from_bytes(&frame.body).map(Some).map_err(|error| error.to_string())
    }

    fn apply(&self, batch: sled::Batch) -> Result<(), String> {
        self.db.apply_batch(batch).map_err(|error| error.to_string())
    }

    fn sync(&self) -> Result<(), String> {
        self.db.flush().map_err(|error| error.to_string())?;
        self.file.sync_data().map_err(|error| error.to_string())
    }
}

/// Turns a panic of sled into an error. A broken invariant of the machine is no fault of sled, and unwinds.
fn unharmed<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        if panic.is::<Broken>() {
            resume_unwind(panic);
        }
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("the row store panicked: {}", said.unwrap_or("without a word")))
    })
}

fn seal_point(point: &Point) -> Result<Vec<u8>, String> {
    let body = postcard::to_stdvec(point).map_err(|error| error.to_string())?;
    let mut sealed = Vec::new();
    frame::write(&mut sealed, POINT_KIND, POINT_VERSION, &body).map_err(|error| error.to_string())?;
    Ok(sealed)
}

/// Rows of an item; none for the point, which sorts after all of them.
fn unseal((key, sealed): &(sled::IVec, sled::IVec)) -> Result<Vec<EncodedRow>, String> {
    if key.as_ref() == POINT_KEY { Ok(Vec::new()) } else { Ok(Block::unseal(key, sealed)?.rows) }
}
