//! Published state: written by the apply thread, read by all other threads.

use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::watch;

use super::live::Live;
use crate::store::directory::{StoreFailure, fail, report};
use crate::store::rows::Notifier;
use crate::sync::held;
use ipam_machine::{Broken, RowKey};

/// Number of unwritten commands at which the rows are written at once.
const UNWRITTEN_COMMANDS_MAX: usize = 20_000;

/// The published state, and the changes that the rows lack.
pub(super) struct Board {
    pub(super) published: watch::Sender<Arc<Live>>,
    /// The newest revision that has events.
    pub(super) events: watch::Sender<u64>,
    rows: Mutex<Unwritten>,
    notifier: Notifier,
    /// The invariant that the state breaks, once one is found broken.
    broken: OnceLock<Broken>,
    /// Tells the member why the process must end.
    failed: watch::Sender<Option<StoreFailure>>,
}

/// Next work of the row writer: a published state, with the keys of all rows touched up to it.
struct Unwritten {
    live: Arc<Live>,
    touched: Vec<RowKey>,
    commands: usize,
}

impl Board {
    pub(super) fn new(first: &Live, notifier: Notifier, failed: watch::Sender<Option<StoreFailure>>) -> Self {
        let live = Arc::new(first.clone());
        Self {
            events: watch::Sender::new(live.state.newest_event().revision),
            rows: Mutex::new(Unwritten { live: Arc::clone(&live), touched: Vec::new(), commands: 0 }),
            published: watch::Sender::new(live),
            notifier,
            broken: OnceLock::new(),
            failed,
        }
    }

    /// Publishes the state after this many commands. No lock is held but for assignments.
    pub(super) fn publish(&self, live: &mut Live, commands: usize) {
        live.keep_journal();
        let touched = live.state.take_touched();
        let fresh = Arc::new(live.clone());
        let mut rows = held(&self.rows);
        rows.touched.extend(touched);
        rows.commands = rows.commands.saturating_add(commands);
        let many = rows.commands >= UNWRITTEN_COMMANDS_MAX;
        let _before = std::mem::replace(&mut rows.live, Arc::clone(&fresh));
        drop(rows);
        let newest = fresh.state.newest_event().revision;
        let _before = self.published.send_replace(fresh);
        self.events.send_if_modified(|known| std::mem::replace(known, newest) != newest);
        if many { self.notifier.soon() } else { self.notifier.changed() }
    }

    /// Calls the machine. A broken invariant stops the member, whether in the state or in a copy of it.
    pub(super) fn guard<R>(&self, call: impl FnOnce() -> R) -> Result<R, Broken> {
        Broken::catch(call).inspect_err(|broken| {
            // The invariant is recorded first, so that no reader uses the state meanwhile.
            let _known = self.broken.set(broken.clone());
            report(broken);
            self.fail(StoreFailure::Broken(broken.clone()));
        })
    }

    /// Returns the broken invariant, if any: nothing may be read or written from the state then.
    pub(super) fn broken(&self) -> Option<&Broken> {
        self.broken.get()
    }

    /// Tells the member why it must end.
    pub(super) fn fail(&self, why: StoreFailure) {
        fail(&self.failed, why);
    }

    /// Takes the changes that the rows lack.
    pub(super) fn take_for_rows(&self) -> Taken {
        let mut rows = held(&self.rows);
        rows.commands = 0;
        Taken { live: Arc::clone(&rows.live), touched: std::mem::take(&mut rows.touched) }
    }
}

/// The work that the row writer takes at one instant.
pub(super) struct Taken {
    pub(super) live: Arc<Live>,
    /// A key may be there several times.
    pub(super) touched: Vec<RowKey>,
}
