//! Threads of a member: each one is started here.
//!
//! - `ipamd-raft` runs raft, peers, proposals and reads, as tasks that never block. It is one thread, because
//!   an entry passes from task to task several times, and a wakeup of a thread costs more than the work.
//! - `ipamd-apply` applies entries, and `ipamd-rows` writes rows behind it. A thread of raft-log writes and
//!   syncs the log, and `ipamd-log-end` waits for its end. The heartbeats of `ipamd-raft` wait for none of
//!   these.
//! - `ipamd-snapshot`, `ipamd-freeing` and `ipamd-disk` do background work.
//!
//! The daemon runs everything else, such as HTTP, on its own runtime.

use std::io;
use std::thread::{Builder, JoinHandle};

use tokio::runtime::{self, Handle};
use tokio::sync::oneshot;

/// Starts a thread.
///
/// # Errors
/// If the system has no thread left.
pub(crate) fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(run)
}

/// A thread that runs tasks until it is dropped.
#[derive(Debug)]
pub(crate) struct TaskThread {
    handle: Handle,
    _running: oneshot::Sender<()>,
}

impl TaskThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system has no thread or no file descriptor left.
    pub(crate) fn start(name: &str) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (running, dropped) = oneshot::channel::<()>();
        start(name, move || {
            let _dropped = runtime.block_on(dropped);
            // Blocking work may hang at a dead disk.
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, _running: running })
    }

    /// The place where tasks are put. A dropped thread cancels them.
    pub(crate) fn tasks(&self) -> Handle {
        self.handle.clone()
    }
}
