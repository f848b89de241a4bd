//! State of the pod view: the client, the last contact, and the parts that its tasks share.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ipam_api::name::ObjectName;
use ipam_api::problem::Problem;
use tokio::sync::{Notify, Semaphore};

use super::events::Events;
use super::owners::Owners;
use crate::journal::{Journal, Record, Unwritable};
use crate::kubernetes::{Access, ApiError, Client};

/// ADDs that read their pod at once; others wait for them.
const READS_AT_ONCE: usize = 2;
/// Time limit of reading an application in the background.
const APPLICATION: Duration = Duration::from_secs(5);
/// Pause before unread applications are tried again.
const RETRY: Duration = Duration::from_secs(10);

/// View of the pods of one node. The pods themselves are in the journal.
#[derive(Debug)]
pub struct PodView {
    pub(super) client: Client,
    pub(super) node: ObjectName,
    pub(super) owners: Owners,
    pub(super) reads: Semaphore,
    pub(super) events: Events,
    /// Wakes ADDs that wait for their pod.
    pub(super) changed: Notify,
    /// Wakes the reader of applications.
    pub(super) unread: Notify,
    /// Ends a pause of the watch: the API server has answered.
    pub(super) answered: Notify,
    state: Mutex<State>,
}

/// Contact with the API server so far.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Time of the last complete list.
    pub listed: Option<Instant>,
    /// Time of the last list, event or bookmark.
    pub heard: Option<Instant>,
    /// Current error of list or watch.
    pub error: Option<String>,
    /// Error of the last attempt to read a controller.
    pub owner_error: Option<String>,
    /// Refusal of the last event.
    pub event_error: Option<String>,
    /// Pods of the last list that exceed the limits of the view.
    pub surplus: usize,
}

impl PodView {
    /// View of the pods of a node, without a connection.
    ///
    /// # Errors
    /// `invalid-field` for a CA file that can't be used.
    pub fn new(access: &Access, node: ObjectName) -> Result<Self, Problem> {
        Ok(Self {
            client: Client::new(access)?,
            events: Events::new(node.as_str()),
            node,
            owners: Owners::default(),
            reads: Semaphore::new(READS_AT_ONCE),
            changed: Notify::new(),
            unread: Notify::new(),
            answered: Notify::new(),
            state: Mutex::default(),
        })
    }

    /// Contact with the API server so far.
    #[must_use]
    pub fn state(&self) -> State {
        self.lock().clone()
    }

    /// Runs all tasks of the view, for as long as the agent runs.
    pub async fn run(&self, journal: &Journal) {
        tokio::join!(self.follow(journal), self.read_applications(journal), self.send_events());
    }

    /// Writes pods to the journal, and wakes the tasks that wait for them.
    pub(super) async fn write(&self, journal: &Journal, record: Record) -> Result<(), Unwritable> {
        journal.write(record).await?;
        self.changed.notify_waiters();
        self.unread.notify_one();
        Ok(())
    }

    pub(super) fn note(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
    }

    /// Reads the applications of pods whose controllers may have controllers.
    async fn read_applications(&self, journal: &Journal) {
        loop {
            self.unread.notified().await;
            let unread: Vec<_> = {
                let attachments = journal.attachments();
                let pods = attachments.pods().iter();
                pods.filter(|pod| pod.owner.is_some() && pod.application.is_none()).cloned().collect()
            };
            let mut error = None;
            for pod in unread {
                match self.owners.application(&self.client, &pod, APPLICATION).await {
                    Ok(Some(application)) => {
                        let record = Record::PodApplication { uid: pod.uid, application };
                        // An unwritable journal is reported by its thread.
                        let _ = journal.write(record).await;
                    }
                    Ok(None) => {}
                    // Requests for the other pods would wait as long.
                    Err(problem @ ApiError::Unreachable(_)) => {
                        error = Some(problem);
                        break;
                    }
                    Err(problem) => error = Some(problem),
                }
            }
            let has_failed = error.is_some();
            self.note(|state| state.owner_error = error.map(|error| error.to_string()));
            if has_failed {
                tokio::time::sleep(RETRY).await;
                self.unread.notify_one();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
