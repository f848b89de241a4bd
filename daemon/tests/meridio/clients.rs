//! Foreign gRPC clients: over Python's grpcio and over grpc-go. `clients/operation.md` has their protocol.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child as Process, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::support::LONG;
use crate::support::tls::Holder;

/// Numbers of the families in the protocol.
pub(crate) const IPV4: i32 = 0;
pub(crate) const IPV6: i32 = 1;

/// Sources of the Go client, in the order in which `deploy/xtask/src/clients.rs` records them.
const GO_SOURCES: [&str; 4] = [
    include_str!("clients/client.go"),
    include_str!("clients/connection.go"),
    include_str!("../../meridio/proto/ipam/v1/ipam.proto"),
    include_str!("../../meridio/proto/nsp/v1/conduit.proto"),
];
/// Packages of the Python client.
const PYTHON_PACKAGES: &str = include_str!("../../../deploy/xtask/contract/meridio.txt");

/// Running client. It ends with this value.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) name: &'static str,
    input: tokio::sync::Mutex<ChildStdin>,
    waiting: Waiting,
    next: AtomicU64,
    _process: Process,
}

/// Channels of operations without a last answer. None once the client has ended.
type Waiting = Arc<Mutex<Option<BTreeMap<u64, UnboundedSender<Answer>>>>>;

/// Address of a server, and the files with which a client connects to it.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) target: String,
    pub(crate) tls: Option<Holder>,
    /// SPIFFE id that the Go client expects instead of a host name.
    pub(crate) spiffe: Option<String>,
}

/// Names of a child and of all above it.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    pub(crate) trench: String,
    pub(crate) conduit: String,
    pub(crate) node: String,
    pub(crate) name: String,
    pub(crate) family: i32,
}

/// Answer of a client, as `clients/operation.md` describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Answer {
    id: u64,
    pub(crate) address: String,
    pub(crate) prefix_length: i32,
    pub(crate) status: String,
    pub(crate) dropped: Vec<String>,
    pub(crate) code: String,
    pub(crate) text: String,
    more: bool,
}

/// Operation that was sent.
#[derive(Debug)]
pub(crate) struct Running<'a> {
    client: &'a Client,
    id: u64,
    answers: UnboundedReceiver<Answer>,
}

impl Client {
    /// Starts the client over grpcio.
    pub(crate) fn python() -> Self {
        let home = tools().join("meridio");
        made(&home.join("installed.txt"), PYTHON_PACKAGES);
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new(home.join("bin/python"));
        command.arg("-B").arg(tests.join("tests/meridio/clients/client.py"));
        Self::start("grpcio", command.arg(tests.join("meridio/proto")))
    }

    /// Starts the client over grpc-go.
    pub(crate) fn go() -> Self {
        let home = tools().join("meridio-go");
        made(&home.join("built.txt"), &GO_SOURCES.concat());
        Self::start("grpc-go", &mut Command::new(home.join("client")))
    }

    /// Starts both.
    pub(crate) fn all() -> [Self; 2] {
        [Self::python(), Self::go()]
    }

    fn start(name: &'static str, command: &mut Command) -> Self {
        command.env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap_or_else(|error| panic!("{name} can't be started: {error}"));
        let waiting = Waiting::new(Mutex::new(Some(BTreeMap::new())));
        let output = process.stdout.take().unwrap();
        tokio::spawn(read(output, waiting.clone()));
        let input = tokio::sync::Mutex::new(process.stdin.take().unwrap());
        Self { name, input, waiting, next: AtomicU64::new(1), _process: process }
    }

    /// Allocates, with a long deadline.
    pub(crate) async fn allocate(&self, server: &Server, child: &Child) -> Answer {
        self.ask(server, child.operation("allocate")).await
    }

    /// Releases, with a long deadline.
    pub(crate) async fn release(&self, server: &Server, child: &Child) -> Answer {
        self.ask(server, child.operation("release")).await
    }

    /// Status of a health service; the empty name is the whole server.
    pub(crate) async fn health(&self, server: &Server, service: &str) -> Answer {
        self.ask(server, json!({"op": "health", "service": service})).await
    }

    /// Sends an operation and waits for its answer. A call without a deadline gets a long one.
    pub(crate) async fn ask(&self, server: &Server, mut operation: Value) -> Answer {
        let fields = operation.as_object_mut().unwrap();
        fields.entry("deadline_ms").or_insert_with(|| json!(u64::try_from(LONG.as_millis()).unwrap()));
        self.send(server, operation).await.last().await
    }

    /// Sends an operation to a server.
    pub(crate) async fn send(&self, server: &Server, mut operation: Value) -> Running<'_> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        operation["id"] = id.into();
        operation["target"] = server.target.clone().into();
        if let Some(Holder { ca, certificate, key }) = &server.tls {
            operation["tls"] =
                json!({"ca": ca, "certificate": certificate, "key": key, "spiffe": server.spiffe});
        }
        self.write(id, &operation).await
    }

    async fn write(&self, id: u64, operation: &Value) -> Running<'_> {
        let (sender, answers) = unbounded_channel();
        match self.waiting.lock().unwrap().as_mut() {
            Some(waiting) => waiting.insert(id, sender),
            None => panic!("the client over {} has ended", self.name),
        };
        let line = format!("{operation}\n");
        self.input.lock().await.write_all(line.as_bytes()).await.unwrap();
        Running { client: self, id, answers }
    }
}

impl Running<'_> {
    /// Waits for the next answer.
    pub(crate) async fn next(&mut self) -> Answer {
        self.within(LONG).await.unwrap_or_else(|| panic!("{} gave no answer", self.client.name))
    }

    /// Waits for the next answer, at most this long.
    pub(crate) async fn within(&mut self, time: Duration) -> Option<Answer> {
        let answer = tokio::time::timeout(time, self.answers.recv()).await.ok()?;
        Some(answer.unwrap_or_else(|| panic!("the client over {} has ended", self.client.name)))
    }

    /// Waits for the last answer.
    pub(crate) async fn last(mut self) -> Answer {
        loop {
            let answer = self.next().await;
            if !answer.more {
                return answer;
            }
        }
    }

    /// Cancels the call; its last answer has the code `CANCELLED`, unless it ended before.
    pub(crate) async fn cancel(&self) {
        let id = self.client.next.fetch_add(1, Ordering::Relaxed);
        self.client.write(id, &json!({"id": id, "op": "cancel", "call": self.id})).await.last().await;
    }
}

impl Child {
    /// The names, in the trench `default`.
    pub(crate) fn new(conduit: &str, node: &str, name: &str, family: i32) -> Self {
        let [conduit, node, name] = [conduit, node, name].map(str::to_owned);
        Self { trench: "default".to_owned(), conduit, node, name, family }
    }

    /// An operation about it.
    pub(crate) fn operation(&self, op: &str) -> Value {
        let Self { trench, conduit, node, name, family } = self;
        json!({"op": op, "trench": trench, "conduit": conduit, "node": node, "child": name, "family": family})
    }
}

impl Answer {
    /// Address with the length of the prefix; fails on an error.
    #[track_caller]
    pub(crate) fn prefix(&self) -> String {
        assert_eq!(self.code, "", "{}", self.text);
        format!("{}/{}", self.address, self.prefix_length)
    }
}

/// Passes answers on until the client ends.
async fn read(output: ChildStdout, waiting: Waiting) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let answer: Answer = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let mut waiting = waiting.lock().unwrap();
        let Some(waiting) = waiting.as_mut() else { return };
        let sender = match answer.more {
            true => waiting.get(&answer.id).cloned(),
            false => waiting.remove(&answer.id),
        };
        // A test that has enough answers no longer listens.
        let _ = sender.unwrap_or_else(|| panic!("no operation has the id of {line}")).send(answer);
    }
    *waiting.lock().unwrap() = None;
}

/// Folder of the tools that xtask makes.
fn tools() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    target.map_or_else(|| root.join("target"), PathBuf::from).join("tools")
}

/// Fails if a client is missing, or was made of something else.
fn made(record: &Path, of: &str) {
    let found = std::fs::read_to_string(record).unwrap_or_default();
    assert!(found == of, "{} is missing or old; first: cargo xtask test --only packages", record.display());
}
