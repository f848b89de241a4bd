//! Turns of the log's thread.
//!
//! raft-log writes and syncs on a thread of its own, and calls back. The callback forms the next group and
//! hands it over on the same thread, so that no group passes from one thread to another.

use std::io;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};

use raft_log::Callback;

use super::thread::{Answer, Group, LogThread};
use crate::sync::held;

/// The continuation after a write.
pub(in crate::store) struct Turn {
    place: Arc<Place>,
    group: Group,
}

/// Place of the thread's state while a group is written.
struct Place {
    thread: Mutex<Option<LogThread>>,
    /// Receiver of the state in the end. raft-log's thread can't drop the log, since that waits for the
    /// thread.
    ended: Sender<End>,
}

/// The thread's state in the end, with the callers that wait for it.
pub(super) type End = (LogThread, Vec<Answer<()>>);

/// The thread's state during a turn. It goes to its end also in a panic.
struct Running<'a> {
    place: &'a Place,
    thread: Option<LogThread>,
    closing: Vec<Answer<()>>,
}

/// Starts the turns on raft-log's thread.
///
/// # Errors
/// If raft-log's thread has ended.
pub(super) fn begin(mut thread: LogThread, ended: Sender<End>) -> io::Result<()> {
    let place = Arc::new(Place { thread: Mutex::default(), ended });
    // The first turn waits for the lock.
    let mut empty = held(&place.thread);
    thread.write(false, Turn { place: Arc::clone(&place), group: Group::default() })?;
    *empty = Some(thread);
    Ok(())
}

/// Waits for the end of the turns, and drops the log.
pub(super) fn end(end: &Receiver<End>) {
    let Ok((thread, closing)) = end.recv() else { return };
    drop(thread);
    for done in closing {
        // The closer has given up.
        let _gone = done.send(Ok(()));
    }
}

impl Callback for Turn {
    fn send(self, written: io::Result<()>) {
        let Self { place, group } = self;
        let thread = held(&place.thread).take();
        let mut running = Running { place: &place, thread, closing: Vec::new() };
        let Some(thread) = &mut running.thread else { return group.refuse("the log is closed") };
        match thread.written(group, written) {
            Ok(closing) if closing.is_empty() => {}
            Ok(closing) => return running.closing = closing,
            Err(_) => return thread.refuse_all(),
        }
        let group = match thread.next_group() {
            Ok(Some(group)) => group,
            Ok(None) => return,
            Err(_) => return thread.refuse_all(),
        };
        let sync = group.sync;
        let turn = Self { place: Arc::clone(&place), group };
        if let Err(error) = thread.write(sync, turn) {
            // The callers of the group see that it is dropped.
            let _reported = thread.fail(Group::default(), error);
            return thread.refuse_all();
        }
        *held(&place.thread) = running.thread.take();
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if std::thread::panicking() {
            thread.panicked();
        }
        // Its receiver ends only after it has got the state.
        let _ended = self.place.ended.send((thread, std::mem::take(&mut self.closing)));
    }
}
