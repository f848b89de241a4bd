//! Background work: large, and not urgent.
//!
//! A snapshot is as large as the state, and so are rebuilt rows; allocations must not be delayed by either.
//! So each is written by a separate thread with a low priority. A snapshot also has a limited rate, and is
//! synced in small steps: one sync of all of it at the end would delay the log, which shares the disk.

use std::fs::File;
use std::io::{self, Write};

use rustix::process::setpriority_process;
use tokio::sync::oneshot;

use super::failure::unwind;
use crate::rate_limit::RateLimit;
use crate::{simulation, threads};
use ipam_machine::Broken;

/// Niceness of this work; 19 would be the lowest priority.
const NICENESS: i32 = 10;
/// Bytes of one sync; few, because the log may have to wait for it.
pub(in crate::store) const SYNC_BYTES: u64 = 1 << 20;

/// Error of background work that has panicked.
#[derive(Debug, thiserror::Error)]
#[error("the thread of the snapshots has panicked")]
pub(in crate::store) struct Panicked;

/// Runs work on a separate thread of low priority, and waits for it. A broken invariant unwinds to the
/// caller.
pub(in crate::store) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (done, wait) = oneshot::channel();
    threads::start("ipamd-snapshot", async move {
        step_back();
        // A missing receiver means that the member stops.
        let _gone = done.send(Broken::catch(work));
    })?;
    wait.await.map_err(|_| io::Error::other(Panicked))?.unwrap_or_else(unwind)
}

/// Lowers the priority of the calling thread.
pub(in crate::store) fn step_back() {
    if simulation::present().is_some() {
        return;
    }
    // On Linux this affects the calling thread only. If it is refused, only the rate limit protects other
    // work.
    let _refused = setpriority_process(None, NICENESS);
}

/// A file that is written at a set pace and synced as it grows.
pub(in crate::store) struct PacedFile {
    file: File,
    rate_limit: RateLimit,
    unsynced: u64,
}

impl PacedFile {
    pub(in crate::store) fn new(file: File, bytes_per_second: u64) -> Self {
        Self { file, rate_limit: RateLimit::new(bytes_per_second), unsynced: 0 }
    }

    /// Syncs the rest of the file.
    pub(in crate::store) fn finish(self) -> io::Result<()> {
        self.file.sync_all()
    }
}

impl Write for PacedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.unsynced += written as u64;
        if self.unsynced >= SYNC_BYTES {
            self.file.sync_data()?;
            self.unsynced = 0;
        }
        threads::pause(self.rate_limit.rest(written as u64));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
