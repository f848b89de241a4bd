//! Threads of a member: each one is started here, so that a simulation can run them all on one.
//!
//! - `ipamd-raft` runs raft, peers, proposals and reads, as tasks that never block. It is one thread, because
//!   an entry passes from task to task several times, and a wakeup of a thread costs more than the work.
//! - `ipamd-apply` applies entries, and `ipamd-rows` writes rows behind it. `ipamd-log` writes and syncs
//!   the log. The heartbeats of `ipamd-raft` wait for none of these.
//! - `ipamd-snapshot`, `ipamd-freeing` and `ipamd-disk` do background work.
//!
//! A thread runs one task. Its waits are awaits, and its clock is tokio's, so in a simulation (`simulation/`)
//! the tasks of all members share a thread and a clock that stands still while one of them works. Scoped
//! threads that share a computation are not started here: their caller waits for them, and their order does
//! not show in the result.
//!
//! The daemon runs everything else, such as HTTP, on its own runtime.

use std::io;
use std::thread::Builder;
use std::time::Duration;

use tokio::runtime::{self, Handle};
use tokio::sync::mpsc;
use tokio::sync::oneshot::{self, error::RecvError};
use tokio::task::JoinError;

use crate::simulation::{self, pausable};

/// Capacity of a channel from blocking work in a simulation; no response has as many pieces.
const SIMULATED_VALUES_MAX: usize = 1 << 16;

/// A thread that was started.
#[derive(Debug)]
pub(crate) struct Thread(oneshot::Receiver<()>);

impl Thread {
    /// Waits for the thread's end.
    ///
    /// # Errors
    /// If the thread panicked.
    pub(crate) async fn ended(self) -> Result<(), RecvError> {
        self.0.await
    }
}

/// Starts a thread that runs a task. The task may block, but must not use sockets.
///
/// # Errors
/// If the system has no thread left.
pub(crate) fn start(name: &str, task: impl Future<Output = ()> + Send + 'static) -> io::Result<Thread> {
    let (ending, ended) = oneshot::channel();
    let run = async move {
        task.await;
        // Usually no caller waits.
        let _unawaited = ending.send(());
    };
    if simulation::present().is_some() {
        tokio::spawn(pausable(run));
        return Ok(Thread(ended));
    }
    let runtime = runtime::Builder::new_current_thread().enable_time().build()?;
    Builder::new().name(name.to_owned()).spawn(move || runtime.block_on(run))?;
    Ok(Thread(ended))
}

/// Runs work that blocks beside the tasks of the caller's thread.
///
/// # Errors
/// If the work panics, or the runtime ends before it begins.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    if simulation::present().is_some() {
        return tokio::spawn(pausable(async { work() })).await;
    }
    tokio::task::spawn_blocking(work).await
}

/// Creates a channel from blocking work that holds this many values. In a simulation it holds more, because
/// the work runs on the thread of the receiver.
#[must_use]
pub fn channel_from_blocking<T>(values: usize) -> (BlockingSender<T>, mpsc::Receiver<T>) {
    let values = if simulation::present().is_some() { SIMULATED_VALUES_MAX } else { values };
    let (to, from) = mpsc::channel(values);
    (BlockingSender(to), from)
}

/// Sender for blocking work.
#[derive(Debug)]
pub struct BlockingSender<T>(mpsc::Sender<T>);

impl<T> Clone for BlockingSender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> BlockingSender<T> {
    /// Waits for a place, and sends the value.
    ///
    /// # Errors
    /// If the receiver is gone; in a simulation also if the channel is full.
    pub fn send(&self, value: T) -> Result<(), Unreceived> {
        if simulation::present().is_some() {
            return self.0.try_send(value).map_err(|_| Unreceived);
        }
        self.0.blocking_send(value).map_err(|_| Unreceived)
    }
}

/// The receiver is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the receiver is gone")]
pub struct Unreceived;

/// Pauses the thread of blocking work.
pub(crate) fn pause(duration: Duration) {
    if simulation::present().is_none() {
        std::thread::sleep(duration);
    }
}

/// A thread that runs tasks until it is dropped. In a simulation they end with its runtime.
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
        let (running, dropped) = oneshot::channel::<()>();
        if simulation::present().is_some() {
            return Ok(Self { handle: Handle::current(), _running: running });
        }
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        Builder::new().name(name.to_owned()).spawn(move || {
            let _dropped = runtime.block_on(dropped);
            // Blocking work may hang at a dead disk.
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, _running: running })
    }

    /// Returns the handle that spawns tasks on the thread. Dropping the thread cancels them.
    pub(crate) fn tasks(&self) -> Handle {
        self.handle.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::NOWHERE;

    #[tokio::test]
    async fn a_thread_that_panics_is_told_from_one_that_ends() {
        start("ipamd-ends", async {}).unwrap().ended().await.unwrap();
        start("ipamd-panics", async { panic!("on purpose") }).unwrap().ended().await.unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn a_simulated_thread_is_a_task_of_the_same_thread_and_its_pauses_take_no_time() {
        simulation::enter(NOWHERE);
        let here = std::thread::current().id();
        let begun = std::time::Instant::now();
        let task = async move {
            pause(Duration::from_secs(3600));
            assert_eq!(std::thread::current().id(), here);
        };
        start("ipamd-task", task).unwrap().ended().await.unwrap();
        assert_eq!(blocking(|| std::thread::current().id()).await.unwrap(), here);
        let (to, mut from) = channel_from_blocking(1);
        blocking(move || (0..9).for_each(|number| to.send(number).unwrap())).await.unwrap();
        assert_eq!(from.recv().await, Some(0), "the work did not wait for its receiver");
        let tasks = TaskThread::start("ipamd-tasks").unwrap().tasks();
        assert_eq!(tasks.spawn(async { std::thread::current().id() }).await.unwrap(), here);
        assert!(begun.elapsed() < Duration::from_secs(3600));
    }
}
