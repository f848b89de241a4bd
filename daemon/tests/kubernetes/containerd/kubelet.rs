//! A mini kubelet under a test's orders.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::oneshot;

/// Part of a pod that a runtime is told.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Pod {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) annotations: BTreeMap<String, String>,
}

impl Pod {
    /// A pod of the namespace `shop`.
    pub(super) fn new(name: &str, annotations: &[(&str, &str)]) -> Self {
        let (namespace, uid) = ("shop".to_owned(), format!("uid-of-{name}"));
        let annotations = annotations.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
        Self { namespace, name: name.to_owned(), uid, annotations: annotations.collect() }
    }
}

/// Result of an order.
#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    id: u64,
    pub(super) milliseconds: f64,
    pub(super) error: Option<String>,
    /// Id of the sandbox that was made.
    #[serde(default)]
    pub(super) sandbox: String,
    #[serde(default)]
    pub(super) addresses: Vec<IpAddr>,
    /// Process of the sandbox, as its node numbers it.
    pub(super) pid: Option<u32>,
    #[serde(default)]
    pub(super) attempts: u32,
}

impl Answer {
    #[track_caller]
    pub(super) fn succeeds(self) -> Self {
        assert!(self.error.is_none(), "{self:?}");
        self
    }
}

type Waiting = Arc<Mutex<BTreeMap<u64, oneshot::Sender<Answer>>>>;

/// The program, and the orders that it has not answered.
pub(super) struct Kubelet {
    _program: Child,
    input: tokio::sync::Mutex<ChildStdin>,
    waiting: Waiting,
    next: AtomicU64,
}

impl Kubelet {
    pub(super) fn start(command: std::process::Command) -> Self {
        let mut command = Command::from(command);
        let mut program =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let input = tokio::sync::Mutex::new(program.stdin.take().unwrap());
        let mut answers = BufReader::new(program.stdout.take().unwrap()).lines();
        let waiting = Waiting::default();
        let unanswered = Arc::clone(&waiting);
        tokio::spawn(async move {
            while let Some(line) = answers.next_line().await.unwrap() {
                let answer: Answer = serde_json::from_str(&line).unwrap();
                let waits = unanswered.lock().unwrap().remove(&answer.id).unwrap();
                // A test that has failed waits for nothing.
                let _ = waits.send(answer);
            }
        });
        Self { _program: program, input, waiting, next: AtomicU64::new(1) }
    }

    /// Makes a pod's sandbox, however often it takes.
    pub(super) async fn create(&self, pod: &Pod) -> Answer {
        self.order("create", pod, false).await.succeeds()
    }

    /// Makes a pod's sandbox, or fails.
    pub(super) async fn create_once(&self, pod: &Pod) -> Answer {
        self.order("create", pod, true).await
    }

    /// Stops and removes all sandboxes of a pod, however often it takes.
    pub(super) async fn delete(&self, pod: &Pod) -> Answer {
        self.order("delete", pod, false).await.succeeds()
    }

    async fn order(&self, verb: &str, pod: &Pod, once: bool) -> Answer {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answers, answered) = oneshot::channel();
        self.waiting.lock().unwrap().insert(id, answers);
        let order = format!("{}\n", json!({"id": id, "once": once, verb: pod}));
        self.input.lock().await.write_all(order.as_bytes()).await.unwrap();
        answered.await.expect("the mini kubelet has ended")
    }
}
