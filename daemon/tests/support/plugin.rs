//! Runs the real plugin the way a container runtime does.

use std::net::IpAddr;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use super::programs;

/// One run to come.
#[derive(Debug, Clone)]
pub(crate) struct Plugin {
    verb: &'static str,
    container: String,
    interface: &'static str,
    arguments: String,
    netns: String,
    /// Time limit of the run, unless it is the plugin's own.
    deadline_ms: Option<u64>,
    /// User of the run, unless it is the test's own.
    uid: Option<u32>,
    conf: Value,
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Plugin {
    /// A run for one container's `eth0`, by the configuration `conf`.
    pub(crate) fn new(verb: &'static str, container: &str, conf: &Value) -> Self {
        let (container, conf) = (container.to_owned(), conf.clone());
        let (arguments, netns) = (String::new(), "/run/netns/none".to_owned());
        Self { verb, container, interface: "eth0", arguments, netns, deadline_ms: None, uid: None, conf }
    }

    /// The same with a time limit.
    pub(crate) fn deadline_ms(self, deadline_ms: u64) -> Self {
        Self { deadline_ms: Some(deadline_ms), ..self }
    }

    /// The same as another user.
    pub(crate) fn with_uid(self, uid: u32) -> Self {
        Self { uid: Some(uid), ..self }
    }

    /// The same with a network namespace.
    pub(crate) fn netns(self, path: &str) -> Self {
        Self { netns: path.to_owned(), ..self }
    }

    /// The same for another interface.
    pub(crate) fn interface(mut self, interface: &'static str) -> Self {
        self.interface = interface;
        self
    }

    pub(crate) fn arguments(mut self, arguments: &str) -> Self {
        arguments.clone_into(&mut self.arguments);
        self
    }

    /// Starts it and writes its input. Dropping the child kills it.
    pub(crate) async fn start(&self) -> Child {
        self.start_as(Command::new(programs::ipam_cni())).await
    }

    /// Process that the kernel has started for the plugin, stopped before the plugin's first instruction.
    pub(crate) async fn start_held(&self) -> Child {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "kill -STOP $$; exec \"$0\""]).arg(programs::ipam_cni());
        self.start_as(command).await
    }

    async fn start_as(&self, mut command: Command) -> Child {
        command
            .env_clear()
            .env("CNI_COMMAND", self.verb)
            .env("CNI_CONTAINERID", &self.container)
            .env("CNI_NETNS", &self.netns)
            .env("CNI_IFNAME", self.interface)
            .env("CNI_PATH", "/opt/cni/bin")
            .env("CNI_ARGS", &self.arguments);
        if let Some(deadline_ms) = self.deadline_ms {
            command.env("IPAM_CNI_DEADLINE_MS", deadline_ms.to_string());
        }
        if let Some(uid) = self.uid {
            command.uid(uid).gid(uid);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A run that ends early reports that by its exit code.
        let _ = stdin.write_all(self.conf.to_string().as_bytes()).await;
        child
    }

    pub(crate) async fn run(&self) -> Outcome {
        ended(self.start().await).await
    }
}

/// The end of a run that was started.
pub(crate) async fn ended(run: Child) -> Outcome {
    let output = run.wait_with_output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Outcome { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

impl Outcome {
    pub(crate) fn is_success(&self) -> bool {
        self.code == Some(0)
    }

    #[track_caller]
    pub(crate) fn succeeds(&self) -> &Self {
        assert!(self.is_success(), "{self:?}");
        self
    }

    /// The addresses of an ADD that succeeded.
    #[track_caller]
    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        let result: Value = serde_json::from_str(&self.succeeds().stdout).unwrap();
        let address = |ip: &Value| ip["address"].as_str()?.split('/').next()?.parse().ok();
        result["ips"].as_array().unwrap().iter().map(|ip| address(ip).unwrap()).collect()
    }

    /// A failure with this code; its texts.
    #[track_caller]
    pub(crate) fn fails(&self, code: u64) -> String {
        assert_eq!(self.code, Some(1), "{self:?}");
        let error: Value = serde_json::from_str(&self.stdout).unwrap();
        assert_eq!(error["code"], code, "{self:?}");
        format!("{}: {}", error["msg"].as_str().unwrap(), error["details"].as_str().unwrap_or_default())
    }
}

/// Network configuration that requests from `servers` an address of `pools` (those of IPv6 end with 6).
pub(crate) fn network(servers: &[String], node: &str, pools: &[&str]) -> Value {
    let (six, four): (Vec<&str>, Vec<&str>) = pools.iter().partition(|pool| pool.ends_with('6'));
    json!({
        "cniVersion": "1.0.0", "name": "lan", "type": "bridge",
        "ipam": {
            "type": "ipam-cni", "servers": servers, "node": node, "ipv4_pools": four, "ipv6_pools": six,
        },
    })
}
