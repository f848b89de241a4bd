//! Runs the real program the way a container runtime does.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

/// One run to come.
#[derive(Debug, Clone)]
pub(crate) struct Plugin {
    environment: BTreeMap<String, String>,
}

/// Result of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Plugin {
    /// A run of `command` for container `c1`, interface `eth0`, with nothing else in the environment.
    pub(crate) fn new(command: &str) -> Self {
        Self::bare()
            .set("CNI_COMMAND", command)
            .set("CNI_CONTAINERID", "c1")
            .set("CNI_IFNAME", "eth0")
            .set("CNI_NETNS", "/run/netns/c1")
            .set("CNI_PATH", "/opt/cni/bin")
    }

    /// A run with an empty environment.
    pub(crate) fn bare() -> Self {
        Self { environment: BTreeMap::new() }
    }

    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn unset(mut self, name: &str) -> Self {
        self.environment.remove(name);
        self
    }

    pub(crate) fn container(self, id: &str) -> Self {
        self.set("CNI_CONTAINERID", id)
    }

    pub(crate) fn within_ms(self, milliseconds: u64) -> Self {
        self.set("IPAM_CNI_DEADLINE_MS", &milliseconds.to_string())
    }

    /// The program as a command, for tests that start it themselves.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ipam-cni"));
        command.env_clear().envs(&self.environment);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts it and feeds it, without waiting for its end.
    pub(crate) fn start(&self, input: impl AsRef<[u8]>) -> Child {
        let mut child = self.command().spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.as_ref().to_vec();
        // On its own thread, and forgiving: it may end without reading everything.
        std::thread::spawn(move || drop(stdin.write_all(&input)));
        child
    }

    pub(crate) fn run(&self, input: impl AsRef<[u8]>) -> Outcome {
        self.start(input).wait_with_output().unwrap().into()
    }
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Outcome {
    /// The result, of a run that succeeded with one.
    #[track_caller]
    pub(crate) fn result(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The addresses of a result of 0.3.0 or later, without their prefixes.
    #[track_caller]
    pub(crate) fn addresses(&self) -> Vec<String> {
        let result = self.result();
        let ips = result.get("ips").and_then(Value::as_array).unwrap();
        ips.iter()
            .map(|ip| ip.get("address").and_then(Value::as_str).unwrap())
            .map(|text| text.split('/').next().unwrap().to_owned())
            .collect()
    }

    #[track_caller]
    pub(crate) fn succeeds_in_silence(&self) {
        assert_eq!((self.code, self.stdout.as_str()), (Some(0), ""), "{self:?}");
    }

    /// Checks exit status 1 and one error object with this code. Returns its texts.
    #[track_caller]
    pub(crate) fn fails(&self, code: u64) -> String {
        assert_eq!(self.code, Some(1), "{self:?}");
        let error: Value = serde_json::from_str(&self.stdout).unwrap_or_else(|why| panic!("{why}: {self:?}"));
        assert_eq!(error.get("code"), Some(&json!(code)), "{self:?}");
        let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        assert!(!text("cniVersion").is_empty() && !text("msg").is_empty(), "{self:?}");
        format!("{}: {}", text("msg"), text("details"))
    }
}

/// Network configuration of `version` for `server`, with `changes` on top; `null` removes a key.
pub(crate) fn network(version: &str, server: &str, changes: &Value) -> String {
    let mut document = json!({
        "cniVersion": version,
        "name": "lan",
        "type": "macvlan",
        "ipam": {"type": "ipam-cni", "servers": [server], "node": "node-1", "ipv4_pools": ["p4"], "ipv6_pools": "p6"},
    });
    merge(&mut document, changes);
    document.to_string()
}

fn merge(target: &mut Value, changes: &Value) {
    match (target, changes) {
        (Value::Object(target), Value::Object(changes)) => {
            for (key, change) in changes {
                if change.is_null() {
                    target.remove(key);
                } else {
                    merge(target.entry(key.clone()).or_insert(Value::Null), change);
                }
            }
        }
        (target, changes) => *target = changes.clone(),
    }
}
