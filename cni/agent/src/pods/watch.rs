//! List and watch of the node's pods.
//!
//! A watch continues from the version of the last event or bookmark. Once that version has expired, the pods
//! are listed again and compared with the known ones, since deletions in between have no event.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use ipam_api::client::with_query;
use ipam_api::limits::PODS_PER_NODE_MAX;

use super::object::Object;
use super::view::PodView;
use crate::backoff::{Backoff, jittered};
use crate::journal::{Attachments, Journal, Pod, Record};
use crate::kubernetes::{ApiError, List, WatchEvent};

/// Pods of one page. Their metadata is a few KiB each.
const PAGE: usize = 64;
/// Pages of one list.
const PAGES_MAX: usize = 2 * PODS_PER_NODE_MAX;
/// Time limit of one page, and of the head of a watch.
const ANSWER: Duration = Duration::from_secs(30);
/// Time after which the API server ends a watch, with a random part.
const WATCH: Duration = Duration::from_secs(600);
/// Additional time for the server to end the watch; after that, the connection counts as dead.
const END: Duration = Duration::from_secs(30);
/// Shortest time between two requests of a watch that ends without an error.
const REST: Duration = Duration::from_millis(100);
/// Duration below which a watch counts as refused.
const SHORT: Duration = Duration::from_secs(1);
/// Bytes of a version or a continuation.
const TOKEN_BYTES_MAX: usize = 4096;

/// Failure of list or watch.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Journal(#[from] crate::journal::Unwritable),
}

impl Failure {
    /// Returns true if a watch may continue from its version. Other failures would recur there.
    fn is_passing(&self) -> bool {
        match self {
            Self::Api(ApiError::Refused { status, .. }) => *status == 429 || *status >= 500,
            Self::Api(ApiError::Unreachable(_) | ApiError::Token(_)) => true,
            Self::Api(ApiError::TooLong(_) | ApiError::Unreadable(_)) | Self::Journal(_) => false,
        }
    }

    fn retry_after(&self) -> Duration {
        match self {
            Self::Api(error) => error.retry_after().unwrap_or_default(),
            Self::Journal(_) => Duration::ZERO,
        }
    }
}

impl PodView {
    /// Follows the pods for as long as the agent runs.
    pub(super) async fn follow(&self, journal: &Journal) {
        let (mut version, mut backoff) = (None, Backoff::default());
        // The first list may come from the server's cache; later lists must be newer than the known state.
        let mut is_cached = true;
        let mut has_failed = false;
        loop {
            let is_watch = version.is_some();
            let result = match &mut version {
                None => self.list(journal, is_cached).await.map(|listed| version = Some(listed)),
                Some(at) => self.watch(journal, at, &mut backoff).await,
            };
            let pause = match result {
                Ok(()) => {
                    // A list alone is no success: its watch may be refused each time.
                    if is_watch && std::mem::replace(&mut has_failed, false) {
                        tracing::info!("the pods of the node are watched again");
                    }
                    REST
                }
                Err(failure) => {
                    if !std::mem::replace(&mut has_failed, true) {
                        tracing::warn!(%failure, "the pods of the node can't be watched");
                    }
                    if !failure.is_passing() {
                        (version, is_cached) = (None, false);
                    }
                    self.note(|state| state.error = Some(failure.to_string()));
                    backoff.next().max(failure.retry_after())
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.answered.notified(), if has_failed => {}
            }
        }
    }

    /// Lists all pods of the node, and writes the differences. Returns the version of the list.
    async fn list(&self, journal: &Journal, mut is_cached: bool) -> Result<String, Failure> {
        let mut pods: Vec<Pod> = Vec::new();
        let (mut limit, mut next) = (PAGE, String::new());
        for _ in 0..PAGES_MAX {
            let mut path = with_query(&self.path(), "limit", &limit.to_string());
            if !next.is_empty() {
                path = with_query(&path, "continue", &next);
            } else if is_cached {
                path = with_query(&path, "resourceVersion", "0");
            }
            let list: List<Object, PODS_PER_NODE_MAX> = match self.client.list(&path, ANSWER).await {
                // A cached list may come as a whole.
                Err(ApiError::TooLong(_)) if is_cached => {
                    is_cached = false;
                    continue;
                }
                Err(ApiError::TooLong(_)) if limit > 1 => {
                    limit /= 4;
                    continue;
                }
                answer => answer?,
            };
            self.note(|state| state.heard = Some(Instant::now()));
            let room = PODS_PER_NODE_MAX.saturating_sub(pods.len());
            pods.extend(list.items.0.into_iter().filter_map(Object::into_pod).take(room));
            if list.metadata.next.is_empty() {
                let version = list.metadata.resource_version;
                check(&version)?;
                self.write_list(journal, pods).await?;
                return Ok(version);
            }
            check(&list.metadata.next)?;
            next = list.metadata.next;
        }
        Err(ApiError::Unreadable(format!("a list has more than {PAGES_MAX} pages")).into())
    }

    async fn write_list(&self, journal: &Journal, pods: Vec<Pod>) -> Result<(), Failure> {
        let listed: BTreeSet<String> = pods.iter().map(|pod| pod.uid.clone()).collect();
        let (put, gone) = {
            let attachments = journal.attachments();
            (changed(&attachments, pods), missing(&attachments, &listed))
        };
        if !put.is_empty() || !gone.is_empty() {
            self.write(journal, Record::Pods { put, gone }).await?;
        }
        let surplus = {
            let attachments = journal.attachments();
            listed.iter().filter(|uid| attachments.pods().get(uid).is_none()).count()
        };
        self.note(|state| {
            state.listed = Some(Instant::now());
            state.surplus = surplus;
        });
        Ok(())
    }

    /// Watches the pods from a version on, which advances with each event.
    async fn watch(
        &self,
        journal: &Journal,
        version: &mut String,
        backoff: &mut Backoff,
    ) -> Result<(), Failure> {
        let within = jittered(WATCH);
        let path = with_query(&self.path(), "watch", "1");
        let path = with_query(&path, "resourceVersion", version);
        let path = with_query(&path, "allowWatchBookmarks", "true");
        let path = with_query(&path, "timeoutSeconds", &within.as_secs().to_string());
        let began = Instant::now();
        let mut lines = self.client.watch(&path, ANSWER, within + END).await?;
        self.note(|state| {
            state.heard = Some(Instant::now());
            state.error = None;
        });
        while let Some(line) = lines.next().await? {
            let event = WatchEvent::read(line)?;
            let object: Object = event.object()?;
            let at = object.metadata.resource_version.clone();
            check(&at)?;
            self.write_event(journal, &event.kind, object).await?;
            *version = at;
            backoff.reset();
            self.note(|state| state.heard = Some(Instant::now()));
        }
        if began.elapsed() < SHORT {
            // A server that ends watches at once gets requests at increasing intervals.
            tokio::time::sleep(backoff.next()).await;
        }
        Ok(())
    }

    async fn write_event(&self, journal: &Journal, kind: &str, object: Object) -> Result<(), Failure> {
        let record = match kind {
            "ADDED" | "MODIFIED" => {
                let pods = object.into_pod().into_iter().collect();
                let put = changed(&journal.attachments(), pods);
                Record::Pods { put, gone: Vec::new() }
            }
            "DELETED" => {
                let uid = object.metadata.uid;
                let is_known = journal.attachments().pods().get(&uid).is_some();
                Record::Pods { put: Vec::new(), gone: is_known.then_some(uid).into_iter().collect() }
            }
            // Bookmarks contain only a version. Unknown kinds of events are ignored.
            _ => return Ok(()),
        };
        if matches!(&record, Record::Pods { put, gone } if put.is_empty() && gone.is_empty()) {
            return Ok(());
        }
        Ok(self.write(journal, record).await?)
    }

    /// Path of the node's pods.
    fn path(&self) -> String {
        with_query("/api/v1/pods", "fieldSelector", &format!("spec.nodeName={}", self.node))
    }
}

/// Refuses versions and continuations that no request can carry.
fn check(token: &str) -> Result<(), ApiError> {
    if (1..=TOKEN_BYTES_MAX).contains(&token.len()) {
        return Ok(());
    }
    Err(ApiError::Unreadable(format!("a version has {} bytes", token.len())))
}

/// Pods that differ from the known ones, with their known applications.
fn changed(attachments: &Attachments, pods: Vec<Pod>) -> Vec<Pod> {
    let merged = pods.into_iter().filter_map(|mut pod| {
        let known = attachments.pods().get(&pod.uid);
        let read = known.filter(|known| known.owner == pod.owner).and_then(|known| known.application.clone());
        pod.application = read.or(pod.application.take());
        (known != Some(&pod)).then_some(pod)
    });
    merged.collect()
}

/// Known pods that a list lacks. Those with an attachment stay: a list may be stale.
fn missing(attachments: &Attachments, listed: &BTreeSet<String>) -> Vec<String> {
    let attached: BTreeSet<&str> = attachments.iter().filter_map(|entry| entry.uid.as_deref()).collect();
    let is_gone = |pod: &&Pod| {
        let is_attached = attached.iter().any(|uid| pod.has_uid(uid));
        !listed.contains(&pod.uid) && !is_attached
    };
    attachments.pods().iter().filter(is_gone).map(|pod| pod.uid.clone()).collect()
}
