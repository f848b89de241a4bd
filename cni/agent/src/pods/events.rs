//! Events on pods whose ADD failed: the problem, and its remedy.
//!
//! Runtimes repeat a failing ADD every few seconds. A pod gets one event a minute and code; further failures
//! only raise its count.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ipam_api::client::push_encoded;
use ipam_api::limits::{POD_EVENT_INTERVAL_MS, POD_EVENTS_REMEMBERED_MAX, POD_EVENTS_WAITING_MAX};
use ipam_api::name::ObjectName;
use ipam_api::problem::{Code, Problem};
use ipam_api::time::Timestamp;
use serde_json::{Value, json};
use tokio::sync::{Mutex as AsyncMutex, mpsc};

use super::view::PodView;
use crate::kubernetes::ApiError;

/// Reporting component of the events.
const COMPONENT: &str = "ipam-agent";
/// Time limit of sending one event.
const SEND: Duration = Duration::from_secs(5);
/// Bytes of an event's message, the limit of Kubernetes.
const MESSAGE_BYTES_MAX: usize = 1024;
/// Bytes of the pod's name in the name of an event.
const NAME_BYTES_MAX: usize = 220;

/// Pod that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Namespace of the pod.
    pub namespace: ObjectName,
    /// Name of the pod.
    pub name: ObjectName,
    /// Uid of the object, if known.
    pub uid: Option<String>,
}

/// Identity of an event: the pod's uid, or its names without one, and the code.
type Key = (String, Code);

/// Failures of one pod with one code.
#[derive(Debug, Clone)]
struct Failures {
    /// Time of the last event.
    sent: Instant,
    /// Name of the event, once it is created.
    event: Option<String>,
    first: Timestamp,
    count: u32,
}

/// Event to send.
#[derive(Debug)]
struct Waiting {
    key: Key,
    subject: Subject,
    message: String,
}

/// Events of one node.
#[derive(Debug)]
pub(super) struct Events {
    node: String,
    failures: Mutex<BTreeMap<Key, Failures>>,
    queue: mpsc::Sender<Waiting>,
    waiting: AsyncMutex<mpsc::Receiver<Waiting>>,
}

impl Events {
    pub(super) fn new(node: &str) -> Self {
        let (queue, waiting) = mpsc::channel(POD_EVENTS_WAITING_MAX);
        let waiting = AsyncMutex::new(waiting);
        Self { node: node.to_owned(), failures: Mutex::default(), queue, waiting }
    }

    /// Counts a failure. Returns true if an event is due.
    fn count(&self, key: &Key) -> bool {
        let mut failures = self.lock();
        if !failures.contains_key(key) && failures.len() >= POD_EVENTS_REMEMBERED_MAX {
            let oldest = failures.iter().min_by_key(|(_, one)| one.sent).map(|(key, _)| key.clone());
            oldest.map(|oldest| failures.remove(&oldest));
        }
        let now = Instant::now();
        match failures.get_mut(key) {
            Some(known) => {
                known.count = known.count.saturating_add(1);
                let is_due = known.sent.elapsed() >= Duration::from_millis(POD_EVENT_INTERVAL_MS);
                if is_due {
                    known.sent = now;
                }
                is_due
            }
            None => {
                let new = Failures { sent: now, event: None, first: Timestamp::now(), count: 1 };
                failures.insert(key.clone(), new);
                true
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Failures>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Builds the Event object.
    fn object(&self, waiting: &Waiting, name: &str, failures: &Failures) -> Value {
        let Waiting { key: (_, code), subject, message } = waiting;
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": subject.namespace},
            "involvedObject": {
                "apiVersion": "v1", "kind": "Pod", "namespace": subject.namespace, "name": subject.name,
                "uid": subject.uid,
            },
            "reason": reason(*code),
            "message": message,
            "type": "Warning",
            "source": {"component": COMPONENT, "host": self.node},
            "reportingComponent": COMPONENT,
            "reportingInstance": self.node,
            "firstTimestamp": failures.first,
            "lastTimestamp": Timestamp::now(),
            "count": failures.count,
        })
    }
}

impl PodView {
    /// Reports the failed ADD of a pod. Never waits: an event beyond the capacity of the queue is dropped.
    pub fn report(&self, subject: &Subject, problem: &Problem) {
        let names = || format!("{}/{}", subject.namespace, subject.name);
        let key = (subject.uid.clone().unwrap_or_else(names), problem.code);
        if self.events.count(&key) {
            let waiting = Waiting { key, subject: subject.clone(), message: message(problem) };
            let _ = self.events.queue.try_send(waiting);
        }
    }

    /// Sends events for as long as the agent runs.
    pub(super) async fn send_events(&self) {
        let mut queue = self.events.waiting.lock().await;
        while let Some(waiting) = queue.recv().await {
            let sent = self.send(&waiting).await;
            if let Err(error) = &sent {
                tracing::debug!(%error, pod = %waiting.subject.name, "an event can't be sent");
            }
            // Only a refusal is noted: any other error has ended once the API server answers again.
            let refusal = sent.err().filter(|error| matches!(error, ApiError::Refused { .. }));
            self.note(|state| state.event_error = refusal.map(|error| error.to_string()));
        }
    }

    /// Raises the count of a known event, or creates one.
    async fn send(&self, waiting: &Waiting) -> Result<(), ApiError> {
        let Some(failures) = self.events.lock().get(&waiting.key).cloned() else { return Ok(()) };
        let mut path = "/api/v1/namespaces/".to_owned();
        push_encoded(&mut path, waiting.subject.namespace.as_str());
        path.push_str("/events");
        if let Some(name) = &failures.event {
            let mut known = format!("{path}/");
            push_encoded(&mut known, name);
            let fields = json!({
                "count": failures.count, "lastTimestamp": Timestamp::now(), "message": waiting.message,
            });
            match self.client.patch(&known, &fields, SEND).await {
                // Kubernetes deletes an event after an hour.
                Err(error) if error.is_not_found() => {}
                result => return result,
            }
        }
        let pod = waiting.subject.name.as_str();
        let pod = pod.get(..NAME_BYTES_MAX).unwrap_or(pod).trim_end_matches(['.', '-']);
        let name = format!("{pod}.{}", uuid::Uuid::new_v4().simple());
        self.client.create(&path, &self.events.object(waiting, &name, &failures), SEND).await?;
        if let Some(failures) = self.events.lock().get_mut(&waiting.key) {
            failures.event = Some(name);
        }
        Ok(())
    }
}

/// Code in the form of Kubernetes' reasons: `pool-exhausted` is `PoolExhausted`.
fn reason(code: Code) -> String {
    let capital = |word: &str| {
        let mut characters = word.chars();
        let first = characters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(characters).collect::<String>()
    };
    code.entry().code.split('-').map(capital).collect()
}

/// Code, detail and remedy. The detail is shortened, so that the remedy is complete.
fn message(problem: &Problem) -> String {
    let Problem { code, detail, help, .. } = problem;
    let room = MESSAGE_BYTES_MAX.saturating_sub(code.entry().code.len() + help.len() + 8);
    let mut end = room.min(detail.len());
    while !detail.is_char_boundary(end) {
        end -= 1;
    }
    let shortened = detail.get(..end).unwrap_or_default();
    let mark = if end < detail.len() { "…" } else { "" };
    format!("{code}: {shortened}{mark}. {help}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_codes_in_the_form_of_kubernetes() {
        assert_eq!(reason(Code::PoolExhausted), "PoolExhausted");
        for code in Code::ALL {
            let reason = reason(*code);
            assert!(reason.len() <= 128 && reason.chars().all(|c| c.is_ascii_alphanumeric()), "{reason}");
        }
    }

    #[test]
    fn a_message_has_the_whole_remedy() {
        for detail in ["short".to_owned(), "é".repeat(5000)] {
            let problem = Problem::new(Code::PoolExhausted, detail);
            let message = message(&problem);
            assert!(message.len() <= MESSAGE_BYTES_MAX, "{}", message.len());
            assert!(message.starts_with("pool-exhausted: ") && message.ends_with(&problem.help), "{message}");
        }
    }

    #[test]
    fn a_pod_has_one_event_a_minute_and_code() {
        let events = Events::new("node-1");
        let key = |uid: &str, code| (uid.to_owned(), code);
        assert!(events.count(&key("u1", Code::PoolExhausted)));
        assert!(!events.count(&key("u1", Code::PoolExhausted)));
        assert!(events.count(&key("u1", Code::NoPoolFits)));
        assert!(events.count(&key("u2", Code::PoolExhausted)));
        let minute = Duration::from_millis(POD_EVENT_INTERVAL_MS);
        events.lock().values_mut().for_each(|one| one.sent = Instant::now().checked_sub(minute).unwrap());
        assert!(events.count(&key("u1", Code::PoolExhausted)));
        assert!(!events.count(&key("u1", Code::PoolExhausted)));
        assert_eq!(events.lock()[&key("u1", Code::PoolExhausted)].count, 4);
        // The memory is bounded; the failure longest ago makes room.
        for number in 0..2 * POD_EVENTS_REMEMBERED_MAX {
            assert!(events.count(&key(&number.to_string(), Code::NoLeader)));
        }
        assert_eq!(events.lock().len(), POD_EVENTS_REMEMBERED_MAX);
    }
}
