//! Pod of an ADD: from the journal, after a short wait for the watch, or from the API server.

use std::time::Duration;

use ipam_api::client::push_encoded;
use ipam_api::name::ObjectName;
use tokio::time::{Instant, timeout, timeout_at};

use super::object::Object;
use super::view::PodView;
use crate::journal::{Attachments, Journal, Pod, Record};
use crate::kubernetes::ApiError;

/// Longest wait for the watch. Usually the watch reports a pod before the runtime starts it.
const WATCH: Duration = Duration::from_millis(250);
/// Time limit of reading a pod, or its application.
const READ: Duration = Duration::from_secs(2);

/// Pod as a runtime identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Namespace of the pod.
    pub namespace: ObjectName,
    /// Name of the pod.
    pub name: ObjectName,
    /// Uid of the pod, if the runtime reports it.
    pub uid: Option<String>,
}

impl Wanted {
    fn is(&self, pod: &Pod) -> bool {
        let is_named = pod.namespace == self.namespace && pod.name == self.name;
        is_named && self.uid.as_deref().is_none_or(|uid| pod.has_uid(uid))
    }

    /// Returns the pod, if exactly one known pod matches.
    fn among(&self, attachments: &Attachments) -> Option<Pod> {
        let mut found = attachments.pods().iter().filter(|pod| self.is(pod));
        found.next().filter(|_| found.next().is_none()).cloned()
    }
}

impl PodView {
    /// Finds the pod of an ADD, with its application if that can be read.
    ///
    /// # Errors
    /// The reason why the pod is unknown.
    pub async fn find(&self, journal: &Journal, wanted: &Wanted, within: Duration) -> Result<Pod, String> {
        let until = Instant::now() + within;
        let pod = match self.wait(journal, wanted, until.min(Instant::now() + WATCH)).await {
            Some(pod) => pod,
            None => self.read(journal, wanted, until.min(Instant::now() + READ)).await?,
        };
        if pod.owner.is_none() || pod.application.is_some() {
            return Ok(pod);
        }
        let limit = READ.min(until.saturating_duration_since(Instant::now()));
        let read = self.owners.application(&self.client, &pod, limit);
        // A failure is tolerated: a StatefulSet keeps its addresses by its name, without the fields of its
        // object.
        let application = timeout(limit, read).await.ok().and_then(Result::ok).flatten();
        Ok(Pod { application, ..pod })
    }

    /// Waits until the watch has the pod.
    async fn wait(&self, journal: &Journal, wanted: &Wanted, until: Instant) -> Option<Pod> {
        loop {
            let changed = self.changed.notified();
            let found = wanted.among(&journal.attachments());
            if found.is_some() || timeout_at(until, changed).await.is_err() {
                return found;
            }
        }
    }

    /// Reads the pod from the API server.
    async fn read(&self, journal: &Journal, wanted: &Wanted, until: Instant) -> Result<Pod, String> {
        let Wanted { namespace, name, uid } = wanted;
        let late = || "the API server doesn't answer in time".to_owned();
        let _turn = timeout_at(until, self.reads.acquire()).await.map_err(|_| late())?;
        let mut path = "/api/v1/namespaces/".to_owned();
        push_encoded(&mut path, namespace.as_str());
        path.push_str("/pods/");
        push_encoded(&mut path, name.as_str());
        let left = until.saturating_duration_since(Instant::now());
        let object: Object = match self.client.metadata(&path, left).await {
            Ok(object) => object,
            Err(error @ ApiError::Unreachable(_)) => return Err(error.to_string()),
            Err(error) => {
                self.answered.notify_one();
                return Err(if error.is_not_found() {
                    "the API server has no such pod".to_owned()
                } else {
                    error.to_string()
                });
            }
        };
        self.answered.notify_one();
        let pod = object.into_pod().ok_or("the API server's answer is no pod")?;
        if !wanted.is(&pod) {
            let uid = uid.as_deref().unwrap_or_default();
            return Err(format!("the API server has another pod of this name, {}, and not {uid}", pod.uid));
        }
        let record = Record::Pods { put: vec![pod.clone()], gone: Vec::new() };
        // The pod serves this ADD even if it can't be recorded in the journal.
        let _ = self.write(journal, record).await;
        Ok(pod)
    }
}
