//! Node: a simulated host with power, runs of the plugin, and containers on the link.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::{Context as _, Result};
use futures::future::BoxFuture;
use ipam_agent::probe::MacAddr;

use super::agent::AgentHost;
use super::lan::Lan;
use super::machines;
use super::plugin::run_process;
use crate::live::node::Power;
use crate::sync::held;
use crate::workload::{Node, Plugin, PluginEnd};

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
    /// Creates a host and writes the configuration of its agent, which sends requests to these servers.
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

    /// Ends all plugins at once. No plugin and no container starts before the next boot.
    pub(super) fn lose_power(&self) {
        self.power.lose();
    }

    /// True unless the power is lost.
    pub(super) fn has_power(&self) -> bool {
        self.power.is_on()
    }

    /// Ends all containers; returns their number.
    pub(super) fn end_containers(&self) -> Result<usize> {
        self.lan.unplug_all(&self.host.name);
        let lost = std::mem::take(&mut held(&self.containers).all);
        // Each container ends, even after a failed removal.
        let ended: Vec<Result<()>> = lost.values().map(Container::end).collect();
        ended.into_iter().collect::<Result<()>>()?;
        Ok(lost.len())
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
            let end = async { Ok(run_process(&self.host.dir, &plugin).await) };
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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use axum::Router;
    use axum::routing::post;
    use futures::future::join;
    use serde_json::json;
    use tokio::runtime::Builder;
    use tokio::time::{Instant, sleep};

    use super::super::agent_socket::AgentSocket;
    use super::super::network::Hosts;
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
