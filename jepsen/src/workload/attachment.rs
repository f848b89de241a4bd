//! Attachment: one interface of one container, and the runs of the real plugin that concern it.
//!
//! A result of CNI has no allocation ids: the grants of `add`, `del`, `check` and `farm` have the id 0, and a
//! checker resolves it by the key of the attachment, `config/container/interface@node`, and the journal.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::cni_end::{Ended, interpret};
use super::resources::NETWORK;
use super::{Node, Plugin, Session, add_detail};
use crate::history::{Function, Grant, Value};

/// Name of the runtime in network configurations: GC ends attachments of this runtime only.
const RUNTIME: &str = "jepsen";
/// Time limit for the start of a held process.
const STARTING: Duration = Duration::from_secs(10);
/// Time by which one start precedes another for certain.
const TICKS: Duration = Duration::from_millis(50);
/// Interface of all containers.
const INTERFACE: &str = "eth0";

/// Attachment with the request of its ADD.
#[derive(Debug, Clone)]
pub(super) struct Attachment {
    /// Name of the network configuration.
    pub(super) config: String,
    /// Container id.
    pub(super) container: String,
    /// Namespace, name and uid of its pod; without one, the container is the endpoint.
    pub(super) pod: Option<[String; 3]>,
    /// Pools of IPv4 and IPv6.
    pub(super) pools: [Vec<String>; 2],
}

/// Conditions of one run of the plugin.
#[derive(Debug, Clone, Default)]
pub(super) struct Run {
    /// Time after which the plugin is killed.
    pub(super) kill_after: Option<Duration>,
    /// Time for which the plugin is stopped before its first instruction.
    pub(super) hold: Option<Duration>,
    /// Other operation that overtakes this one.
    pub(super) overtaking: Option<Arc<Overtaking>>,
}

/// Order of a held process and an operation that overtakes it.
#[derive(Debug, Default)]
pub(super) struct Overtaking {
    started: Notify,
    answered: OnceLock<Instant>,
}

impl Overtaking {
    /// Waits until the held process has started some time ago: the kernel counts starts in ticks of 10 ms.
    pub(super) async fn started(&self) {
        if timeout(STARTING, self.started.notified()).await.is_ok() {
            sleep(TICKS).await;
        }
    }

    /// Records that the other operation, which began after [`Self::started`], was answered.
    pub(super) fn answered(&self) {
        let _first = self.answered.set(Instant::now());
    }
}

impl Attachment {
    /// Identity of the attachment in a history.
    pub(super) fn key(&self, node: &dyn Node) -> String {
        format!("{}/{}/{INTERFACE}@{}", self.config, self.container, node.name())
    }

    /// Endpoint that the plugin derives.
    pub(super) fn endpoint(&self, node: &dyn Node) -> String {
        match &self.pod {
            Some([namespace, name, _uid]) => format!("pod/default/{namespace}/{name}"),
            None => format!("container/default/{}/{}", node.name(), self.container),
        }
    }

    /// Grants with addresses of this attachment.
    pub(super) fn grants(addresses: &[IpAddr]) -> Vec<Grant> {
        let grant = |address: &IpAddr| Grant {
            id: 0,
            network: NETWORK.to_owned(),
            address: address.to_string(),
            pool: None,
            endpoint: None,
        };
        addresses.iter().map(grant).collect()
    }

    /// ADD. Ends as `info` unless it surely took no effect or its result is known.
    pub(super) async fn add(&self, session: &mut Session, run: Run) -> Ended {
        self.run(session, "ADD", &[], run).await
    }

    /// DEL, with the addresses that it should release. The agent may deliver it after its success.
    pub(super) async fn del(&self, session: &mut Session, held: &[IpAddr], run: Run) -> Ended {
        self.run(session, "DEL", held, run).await
    }

    /// CHECK of the addresses of an earlier ADD.
    pub(super) async fn check(&self, session: &mut Session, held: &[IpAddr]) -> Ended {
        self.run(session, "CHECK", held, Run::default()).await
    }

    /// GC with a list of containers that lacks this one, recorded as a DEL of this attachment with
    /// `detail.gc`.
    pub(super) async fn collect(&self, session: &mut Session, held: &[IpAddr], valid: &[&Self]) -> Ended {
        let entry = |one: &&Self| json!({"containerID": one.container, "ifname": INTERFACE});
        let list: Vec<Json> = valid.iter().map(entry).collect();
        self.run_with(session, "GC", held, Run::default(), json!({"cni.dev/valid-attachments": list})).await
    }

    async fn run(&self, session: &mut Session, verb: &'static str, held: &[IpAddr], run: Run) -> Ended {
        let more = match verb {
            "CHECK" => json!({"prevResult": previous(held)}),
            _ => json!({}),
        };
        self.run_with(session, verb, held, run, more).await
    }

    async fn run_with(
        &self,
        session: &mut Session,
        verb: &'static str,
        held: &[IpAddr],
        run: Run,
        more: Json,
    ) -> Ended {
        let Some(node) = session.node.clone() else { return Ended::Lost };
        // A DEL needs no namespace: the container may have ended.
        let netns = match verb {
            "ADD" | "CHECK" => node.namespace(&self.container).await,
            _ => Ok(String::new()),
        };
        let Ok(netns) = netns else { return Ended::Lost };
        let function = match verb {
            "ADD" => Function::Add,
            "CHECK" => Function::Check,
            _ => Function::Del,
        };
        let plugin = Plugin {
            verb,
            container: self.container.clone(),
            interface: INTERFACE.to_owned(),
            netns,
            arguments: self.arguments(),
            config: self.network(node.as_ref(), more),
            kill_after: run.kill_after,
            hold_before_start: run.hold,
        };
        let value = Value {
            key: Some(self.key(node.as_ref())),
            endpoint: Some(self.endpoint(node.as_ref())),
            pools: self.pools.concat(),
            grants: Self::grants(held),
            detail: detail(verb, &run),
            ..Value::default()
        };
        let act = async |value: &mut Value| {
            let begun = Instant::now();
            // A waiter in the same task continues after the process was forked.
            if let Some(overtaking) = &run.overtaking {
                overtaking.started.notify_one();
            }
            let (kind, ended) = interpret(verb, &node.run_plugin(plugin).await);
            note(value, verb, &ended, run.is_late(begun));
            (kind, ended)
        };
        session.record(function, value, act).await
    }

    fn arguments(&self) -> String {
        match &self.pod {
            Some([namespace, name, uid]) => {
                format!("IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name};K8S_POD_UID={uid}")
            }
            None => String::new(),
        }
    }

    /// Network configuration with further members.
    fn network(&self, node: &dyn Node, more: Json) -> Json {
        let [four, six] = &self.pools;
        let mut network = json!({
            "cniVersion": "1.1.0", "name": self.config, "type": "macvlan", "master": "eth0",
            "ipam": {
                "type": "ipam-cni", "socket": node.agent_socket(), "runtime": RUNTIME,
                "ipv4_pools": four, "ipv6_pools": six,
            },
        });
        if let (Json::Object(network), Json::Object(more)) = (&mut network, more) {
            network.extend(more);
        }
        network
    }
}

impl Run {
    /// Run that is held while another operation overtakes it. If the other operation was answered in time,
    /// `detail.late` marks the held operation: its process started first, and sent its request last.
    pub(super) fn held(hold: Duration, overtaking: &Arc<Overtaking>) -> Self {
        Self { hold: Some(hold), overtaking: Some(Arc::clone(overtaking)), kill_after: None }
    }

    /// Run that is killed after a time.
    pub(super) fn killed(after: Duration) -> Self {
        Self { kill_after: Some(after), ..Self::default() }
    }

    fn is_late(&self, begun: Instant) -> bool {
        let answered = self.overtaking.as_ref().and_then(|overtaking| overtaking.answered.get());
        answered.is_some_and(|at| *at < begun + self.hold.unwrap_or_default())
    }
}

fn detail(verb: &str, run: &Run) -> Json {
    let mut detail = serde_json::Map::new();
    for (name, time) in [("kill_after_us", run.kill_after), ("hold_us", run.hold)] {
        if let Some(time) = time {
            detail.insert(name.to_owned(), json!(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)));
        }
    }
    if verb == "GC" {
        detail.insert("gc".to_owned(), json!(true));
    }
    if detail.is_empty() { Json::Null } else { Json::Object(detail) }
}

/// Writes the end of a run into the value.
fn note(value: &mut Value, verb: &str, ended: &Ended, is_late: bool) {
    match ended {
        Ended::Done(addresses) if verb == "ADD" => value.grants = Attachment::grants(addresses),
        // The result of a DEL is empty.
        Ended::Done(_) => {}
        Ended::Refused(code) => value.error = Some(code.clone()),
        Ended::Killed => value.error = Some("killed".to_owned()),
        Ended::Lost => value.error = Some("host-lost".to_owned()),
    }
    if is_late {
        add_detail(value, "late", true.into());
    }
}

/// Result that a runtime remembers of an ADD.
fn previous(held: &[IpAddr]) -> Json {
    let length = |address: &IpAddr| if address.is_ipv4() { 16 } else { 64 };
    let ip = |address: &IpAddr| json!({"address": format!("{address}/{}", length(address))});
    json!({"cniVersion": "1.1.0", "ips": held.iter().map(ip).collect::<Vec<_>>()})
}
