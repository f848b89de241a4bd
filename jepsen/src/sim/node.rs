//! Node: a simulated host with power, runs of the plugin, and containers on the link.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context as _, Result};
use futures::future::BoxFuture;
use ipam_agent::probe::MacAddr;
use ipam_api::request::Started;
use ipam_cni::config::Network;
use ipam_cni::environment::Environment;
use ipam_cni::fail::Failure;
use ipam_cni::verbs;
use ipam_cni::version::CniVersion;
use serde_json::Value as Json;
use tokio::time::{sleep, timeout};

use super::agent::AgentHost;
use super::lan::Lan;
use super::machines;
use crate::live::node::Power;
use crate::sync::held;
use crate::workload::{Node, Plugin, PluginEnd};

/// Microseconds of a tick of the kernel, which counts the starts of processes.
const TICK_US: u64 = 10_000;

/// Host of an agent. Workloads and faults share it.
#[derive(Debug)]
pub(super) struct SimNode {
    host: AgentHost,
    socket: String,
    lan: Lan,
    power: Power,
    containers: Mutex<Containers>,
}

/// Containers of a host.
#[derive(Debug, Default)]
struct Containers {
    /// Number of the newest container.
    newest: u32,
    /// Containers by id.
    all: BTreeMap<String, Container>,
}

/// Container with its network namespace, a file that no other container has had.
#[derive(Debug, Clone)]
struct Container {
    netns: PathBuf,
    mac: MacAddr,
}

impl SimNode {
    /// Host whose agent asks these servers. Writes the agent's configuration.
    pub(super) fn new(host: AgentHost, servers: &[String], lan: Lan) -> Result<Self> {
        let files = host.files();
        files.write(&host.name, servers, "")?;
        Ok(Self {
            socket: files.socket().display().to_string(),
            host,
            lan,
            power: Power::default(),
            containers: Mutex::default(),
        })
    }

    /// Ends the plugins at once. Until the boot, no other starts, and no container.
    pub(super) fn lose_power(&self) {
        self.power.lose();
    }

    /// Ends all containers; returns their number.
    pub(super) fn end_containers(&self) -> Result<usize> {
        self.lan.lose(&self.host.name);
        let ended = std::mem::take(&mut held(&self.containers).all);
        ended.values().try_for_each(Container::end)?;
        Ok(ended.len())
    }

    /// Boots the host after a loss of power. Returns the boot id.
    pub(super) fn boot(&self) -> String {
        machines::boot(&self.host.dir);
        self.power.restore();
        machines::boot_id(&self.host.dir)
    }

    /// Container with an id, made on the first call.
    fn container(&self, id: &str) -> Result<Container> {
        self.power.check(&self.host.name)?;
        let mut containers = held(&self.containers);
        if let Some(container) = containers.all.get(id) {
            return Ok(container.clone());
        }
        containers.newest += 1;
        let [_, high, middle, low] = containers.newest.to_be_bytes();
        let mac = MacAddr(0x02, 0xc0, self.host.number, high, middle, low);
        let dir = self.host.dir.join("netns");
        let container = Container { netns: dir.join(format!("{id}-{}", containers.newest)), mac };
        fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
        fs::write(&container.netns, "").with_context(|| container.netns.display().to_string())?;
        containers.all.insert(id.to_owned(), container.clone());
        Ok(container)
    }
}

impl Container {
    /// Deletes the network namespace.
    fn end(&self) -> Result<()> {
        fs::remove_file(&self.netns).with_context(|| self.netns.display().to_string())
    }
}

impl Node for SimNode {
    fn name(&self) -> &str {
        &self.host.name
    }

    fn agent_socket(&self) -> &str {
        &self.socket
    }

    fn run_plugin(&self, plugin: Plugin) -> BoxFuture<'_, Result<PluginEnd>> {
        Box::pin(async move {
            let end = async { Ok(process(&self.host.dir, &plugin).await) };
            self.power.run(&self.host.name, end).await
        })
    }

    fn plug_in<'a>(&'a self, container: &'a str, addresses: &'a [IpAddr]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let mac = self.container(container)?.mac;
            self.lan.answer(&self.host.name, container, mac, addresses);
            Ok(())
        })
    }

    fn unplug<'a>(&'a self, container: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.lan.unplug(&self.host.name, container);
            let ended = held(&self.containers).all.remove(container);
            ended.as_ref().map_or(Ok(()), Container::end)
        })
    }

    fn namespace<'a>(&'a self, container: &'a str) -> BoxFuture<'a, Result<String>> {
        Box::pin(async move { Ok(self.container(container)?.netns.display().to_string()) })
    }

    fn losses(&self) -> u64 {
        self.power.losses()
    }
}

/// Runs the plugin on the host with this directory. Dropping the future kills the plugin.
async fn process(dir: &Path, plugin: &Plugin) -> PluginEnd {
    // The kernel counts the start of the process, not that of its first instruction.
    let start_ticks = machines::boot_us() / TICK_US;
    let killed = PluginEnd { code: None, output: Json::Null, stderr: String::new() };
    let life = async {
        if let Some(hold) = plugin.hold_before_start {
            sleep(hold).await;
        }
        operate(dir, plugin, start_ticks).await
    };
    match (plugin.kill_after, plugin.hold_before_start) {
        (None, _) => life.await,
        // Killed while it is held, the process executes no instruction.
        (Some(limit), Some(hold)) if limit <= hold => {
            sleep(limit).await;
            killed
        }
        (Some(limit), _) => timeout(limit, life).await.unwrap_or(killed),
    }
}

/// Runs the operation to its end, as the program of the plugin does.
async fn operate(dir: &Path, plugin: &Plugin, start_ticks: u64) -> PluginEnd {
    let boot_id = machines::boot_id(dir);
    let started = Started { boot_id, at_us: machines::boot_us(), start_ticks: Some(start_ticks) };
    let mut version = CniVersion::LATEST;
    let done = match operation(plugin, &mut version) {
        Ok((environment, network)) => verbs::serve(&environment, &network, Some(started)).await,
        Err(failure) => Err(failure),
    };
    let (code, output) = match done {
        Ok(output) => (0, output),
        Err(failure) => (1, failure.to_json(version)),
    };
    let output = serde_json::from_slice(&output).unwrap_or(Json::Null);
    PluginEnd { code: Some(code), output, stderr: String::new() }
}

/// Reads the operation with its configuration, and the version of its result.
fn operation(plugin: &Plugin, version: &mut CniVersion) -> Result<(Environment, Network), Failure> {
    let variables = plugin.environment();
    let value = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.clone())
    };
    let environment = Environment::read(&value)?;
    let network = ipam_cni::read(&environment, plugin.config.to_string().as_bytes(), version)?;
    Ok((environment, network))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use axum::Router;
    use axum::routing::post;
    use futures::future::join;
    use serde_json::json;
    use tokio::runtime::Builder;
    use tokio::time::Instant;

    use super::super::network::{AgentSocket, Hosts};
    use super::*;

    /// Runs a test in a simulation without hosts, which ends with its thread.
    fn simulated<T: Future<Output = ()>>(test: impl FnOnce(SimNode) -> T + Send + 'static) {
        let thread = std::thread::spawn(|| {
            ipam_api::client::simulate(Arc::new(Hosts));
            let dir = tempfile::tempdir().unwrap();
            let host = AgentHost { name: "c1".to_owned(), number: 11, dir: dir.path().to_owned() };
            let node = SimNode::new(host, &["http://n1:7440".to_owned()], Lan::default()).unwrap();
            let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
            runtime.block_on(test(node));
        });
        thread.join().unwrap();
    }

    /// DEL of an attachment.
    fn del(node: &SimNode) -> Plugin {
        Plugin {
            verb: "DEL",
            container: "a".to_owned(),
            interface: "eth0".to_owned(),
            netns: String::new(),
            arguments: String::new(),
            config: json!({
                "cniVersion": "1.1.0", "name": "net", "type": "macvlan", "master": "eth0",
                "ipam": {"type": "ipam-cni", "socket": node.agent_socket(), "runtime": "jepsen"},
            }),
            kill_after: None,
            hold_before_start: None,
        }
    }

    #[test]
    fn a_plugin_without_an_agent_is_refused_at_its_deadline() {
        simulated(|node| async move {
            let begun = Instant::now();
            let end = node.run_plugin(del(&node)).await.unwrap();
            assert!((7..9).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
            assert_eq!(end.code, Some(1));
            let details = end.output["details"].as_str().unwrap();
            assert!(details.starts_with("agent-unreachable: "), "{details}");
        });
    }

    #[test]
    fn a_plugin_ends_with_its_answer_or_its_kill_or_the_power() {
        simulated(|node| async move {
            let answer = || async {
                sleep(Duration::from_millis(100)).await;
                r#"{"addresses": [], "revision": 1}"#
            };
            let router = Router::new().route("/v1/attachments/release", post(answer));
            let _served = AgentSocket::begin(node.agent_socket().into(), router);
            let run = async |kill_ms: Option<u64>, hold_ms: Option<u64>| {
                let kill_after = kill_ms.map(Duration::from_millis);
                let hold_before_start = hold_ms.map(Duration::from_millis);
                let begun = Instant::now();
                let end = node.run_plugin(Plugin { kill_after, hold_before_start, ..del(&node) }).await;
                // Timers may be late by a millisecond.
                (end.unwrap().code, begun.elapsed().as_millis() / 10 * 10)
            };
            assert_eq!(run(None, None).await, (Some(0), 100));
            assert_eq!(run(None, Some(50)).await, (Some(0), 150));
            assert_eq!(run(Some(50), None).await, (None, 50));
            assert_eq!(run(Some(50), Some(50)).await, (None, 50));
            assert_eq!(run(Some(120), Some(50)).await, (None, 120));
            let lost = async {
                sleep(Duration::from_millis(10)).await;
                node.lose_power();
            };
            let (end, ()) = join(node.run_plugin(del(&node)), lost).await;
            assert!(end.is_err() && node.run_plugin(del(&node)).await.is_err());
            assert_eq!((node.losses(), node.boot()), (1, "boot-1".to_owned()));
            assert_eq!(run(None, None).await, (Some(0), 100));
        });
    }

    #[test]
    fn each_container_has_a_namespace_of_its_own_until_its_end() {
        simulated(|node| async move {
            let first = node.namespace("a").await.unwrap();
            assert_eq!(node.namespace("a").await.unwrap(), first);
            assert_ne!(node.namespace("b").await.unwrap(), first);
            assert!(Path::new(&first).exists());
            node.unplug("a").await.unwrap();
            node.unplug("a").await.unwrap();
            assert!(!Path::new(&first).exists());
            let second = node.namespace("a").await.unwrap();
            assert_ne!(second, first);
            node.lose_power();
            assert!(node.namespace("c").await.is_err());
            assert_eq!(node.end_containers().unwrap(), 2);
            assert!(!Path::new(&second).exists());
        });
    }
}
