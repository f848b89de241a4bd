//! Reports about pods on their way to the servers, which verify claims of nodes by them.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher as _};
use std::time::Duration;

use ipam_api::limits::{BODY_BYTES_MAX, PODS_GONE_PER_REPORT_MAX, PODS_PER_REPORT_MAX};
use ipam_api::name::ObjectName;
use ipam_api::pod::PodIdentity;
use ipam_api::resource::Controller;
use tokio::time::Instant;

use super::uids::Uid;
use crate::objects::PodReport;

/// Time for which a report waits for the controllers above the pod's owner.
const OWNER_WAIT: Duration = Duration::from_secs(2);
/// Bytes of the pods in one request. One more pod than that fits into a body.
const BATCH_BYTES: usize = BODY_BYTES_MAX / 2;

/// Reports about pods, by uid.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    changed: BTreeMap<String, Changed>,
    gone: BTreeSet<String>,
    /// True if claims are to be verified.
    verifies: bool,
    /// Hashes of the reports that the servers have.
    reported: BTreeMap<Uid, u64>,
    /// True once the servers have the reports of all listed pods.
    is_complete: bool,
    /// True if the servers refuse a report. Claims of other pods must not be verified by an incomplete view.
    pub(crate) is_refused: bool,
}

#[derive(Debug)]
struct Changed {
    report: PodReport,
    since: Instant,
}

/// Reports of one request.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) pods: Vec<PodIdentity>,
    pub(crate) gone: Vec<String>,
    /// Reports in the batch, each with its hash.
    taken: Vec<(PodReport, u64)>,
    /// True if no further report can be made at present.
    is_last: bool,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.pods.is_empty() && self.gone.is_empty()
    }
}

impl Reports {
    /// Creates an empty queue. Without verification, only earlier reports are removed from the servers.
    pub(crate) fn new(verifies: bool) -> Self {
        Self { verifies, ..Self::default() }
    }

    pub(crate) fn put(&mut self, report: PodReport, now: Instant) {
        if !self.verifies {
            return;
        }
        self.gone.remove(&report.uid);
        self.changed.insert(report.uid.clone(), Changed { report, since: now });
    }

    /// Records the deletion of a pod.
    pub(crate) fn end(&mut self, uid: &str) {
        if self.verifies {
            self.remove(uid);
        }
    }

    /// Removes a pod that the servers have.
    pub(crate) fn remove(&mut self, uid: &str) {
        self.changed.remove(uid);
        self.reported.remove(&Uid::new(uid));
        self.gone.insert(uid.to_owned());
    }

    /// Takes reports for one request. `above` has the controllers above an owner, if they are known.
    pub(crate) fn batch(
        &mut self,
        now: Instant,
        above: impl Fn(&ObjectName, &Controller) -> Option<Vec<Controller>>,
    ) -> Batch {
        let mut batch = Batch { is_last: true, ..Batch::default() };
        let (mut bytes, mut done) = (0, Vec::new());
        for (uid, Changed { report, since }) in &self.changed {
            if batch.pods.len() >= PODS_PER_REPORT_MAX || bytes >= BATCH_BYTES {
                batch.is_last = false;
                break;
            }
            let is_overdue = now.duration_since(*since) >= OWNER_WAIT;
            let controllers = report.owner.as_ref().map(|owner| {
                above(&report.endpoint.namespace, owner).or_else(|| is_overdue.then(|| vec![owner.clone()]))
            });
            let Some(controllers) = controllers.unwrap_or_else(|| Some(Vec::new())) else { continue };
            let identity = identity(report, controllers);
            let text = serde_json::to_string(&identity).unwrap_or_default();
            let hash = hash(&text);
            done.push(uid.clone());
            if self.reported.get(&Uid::new(uid)) != Some(&hash) {
                bytes += text.len();
                batch.pods.push(identity);
                batch.taken.push((report.clone(), hash));
            }
        }
        for uid in done {
            self.changed.remove(&uid);
        }
        while let Some(uid) = self.gone.pop_first() {
            batch.gone.push(uid);
            if batch.gone.len() >= PODS_GONE_PER_REPORT_MAX {
                break;
            }
        }
        batch
    }

    /// Notes that the servers have the reports of a batch, and whether these are all.
    pub(crate) fn accepted(&mut self, batch: Batch, is_complete: bool) {
        self.is_complete |= is_complete;
        for (report, hash) in batch.taken {
            // A pod that was deleted since then is not reported any more.
            if !self.gone.contains(&report.uid) {
                self.reported.insert(Uid::new(&report.uid), hash);
            }
        }
    }

    /// Puts the reports of a batch back that the servers may accept later. Newer reports take precedence.
    pub(crate) fn postponed(&mut self, batch: Batch, now: Instant) {
        for uid in batch.gone {
            if !self.changed.contains_key(&uid) {
                self.gone.insert(uid);
            }
        }
        for (report, _) in batch.taken {
            if !self.gone.contains(&report.uid) {
                self.changed.entry(report.uid.clone()).or_insert(Changed { report, since: now });
            }
        }
    }

    /// Returns true if the servers have all reports once they have those of `batch`. Pods whose owners the
    /// view lacks follow a moment later.
    pub(crate) fn is_complete_with(&self, batch: &Batch) -> bool {
        self.verifies && (self.is_complete || batch.is_last) && !self.is_refused
    }

    /// Number of reports that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.changed.len() + self.gone.len()
    }

    /// Uids of the pods that the servers have, according to their answers.
    pub(crate) fn reported(&self) -> impl Iterator<Item = &Uid> {
        self.reported.keys()
    }

    pub(crate) fn is_reported(&self, uid: &Uid) -> bool {
        self.reported.contains_key(uid)
    }
}

fn identity(report: &PodReport, controllers: Vec<Controller>) -> PodIdentity {
    let PodReport { uid, endpoint, node, labels, owner: _ } = report.clone();
    PodIdentity { uid, endpoint, node, labels, controllers }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
