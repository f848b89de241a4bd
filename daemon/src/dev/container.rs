//! Lab of network namespaces: a node, and containers configured by a main plugin and `ipam-cni`.
//!
//! The main plugin is `bridge` by default. A child process holds each namespace and waits for the end of its
//! input. So a namespace ends with this process, even after a kill, and leaves no name behind.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use ipam_api::brand::CNI_DEADLINE_ENV;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use super::console::DevError;

/// Usual directories of main plugins.
const PLUGIN_DIRS: [&str; 2] = ["/usr/lib/cni", "/opt/cni/bin"];

/// Network namespace that lives as long as this value.
#[derive(Debug)]
struct Namespace {
    holder: Child,
    path: PathBuf,
}

impl Namespace {
    async fn make() -> Result<Self, DevError> {
        let why = |error| DevError::new("a network namespace can't be made (are you root?)", error);
        let mut holder = Command::new("unshare")
            .args(["--net", "--", "sh", "-c", "echo ready; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C must reach this process only: it runs DEL for all containers before the namespaces end.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(why)?;
        let pid = holder.id().unwrap_or_default();
        let mut ready = [0_u8; 6];
        let Some(output) = holder.stdout.as_mut() else { return Err(DevError("no pipe".to_owned())) };
        if tokio::io::AsyncReadExt::read_exact(output, &mut ready).await.is_err() {
            let output = holder.wait_with_output().await.map_err(why)?;
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(DevError(format!(
                "a network namespace can't be made (are you root?): {}",
                said.trim()
            )));
        }
        Ok(Self { holder, path: PathBuf::from(format!("/proc/{pid}/ns/net")) })
    }

    /// Returns a command that runs in the namespace.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.path.display())).arg("--").arg(program);
        command.process_group(0).kill_on_drop(true);
        command
    }

    async fn end(mut self) {
        // The holder exits at the end of its input.
        drop(self.holder.stdin.take());
        let _ = self.holder.wait().await;
    }
}

/// A node: the namespace in which main plugins work.
#[derive(Debug)]
pub struct Lab {
    node: Option<Namespace>,
    plugin: PathBuf,
    /// Path of the main plugin.
    main_plugin: Option<PathBuf>,
    /// Common part of all network configurations.
    config: Value,
    containers: Vec<Container>,
    made: u32,
    deadline_ms: Option<u64>,
}

/// A container: a namespace with an interface that the plugins gave addresses.
#[derive(Debug)]
pub struct Container {
    id: String,
    namespace: Option<Namespace>,
    /// Result of ADD.
    pub result: Value,
    /// Duration of ADD, from exec to exit.
    pub took: Duration,
}

impl Container {
    /// Addresses in the result of ADD, with prefix lengths.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        let ips = self.result.get("ips").and_then(Value::as_array).cloned().unwrap_or_default();
        ips.iter().filter_map(|ip| ip.get("address")?.as_str().map(ToOwned::to_owned)).collect()
    }
}

impl Lab {
    /// Creates a node with `plugin`, this `ipam` section, and a bridge. Without permission for namespaces, or
    /// without `bridge`, the plugin is run alone, and the second value is the reason.
    ///
    /// # Errors
    /// If there is no plugin.
    pub async fn make(plugin: PathBuf, ipam: Value) -> Result<(Self, Option<String>), DevError> {
        let bridge = serde_json::json!({
            "cniVersion": "1.0.0", "name": "demo", "type": "bridge", "bridge": "ipamd0",
            "isGateway": true, "ipMasq": false,
        });
        Self::make_with(plugin, bridge, ipam).await
    }

    /// Like `make`, with the main plugin of `config`, a network configuration without `ipam` section.
    ///
    /// # Errors
    /// If there is no plugin.
    pub async fn make_with(
        plugin: PathBuf,
        mut config: Value,
        ipam: Value,
    ) -> Result<(Self, Option<String>), DevError> {
        if !plugin.exists() {
            return Err(DevError(format!(
                "{} is missing: build it with `cargo xtask build`",
                plugin.display()
            )));
        }
        let kind = config.get("type").and_then(Value::as_str).unwrap_or("bridge").to_owned();
        if let Some(config) = config.as_object_mut() {
            config.insert("ipam".to_owned(), ipam);
        }
        let found = PLUGIN_DIRS.iter().map(|dir| Path::new(dir).join(&kind)).find(|path| path.exists());
        let (node, why) = match &found {
            None => (
                None,
                Some(format!(
                    "no `{kind}` plugin in {} (apt-get install containernetworking-plugins)",
                    PLUGIN_DIRS.join(" or ")
                )),
            ),
            Some(_) => match Namespace::make().await {
                Ok(node) => (Some(node), None),
                Err(error) => (None, Some(error.to_string())),
            },
        };
        let main_plugin = found.filter(|_| node.is_some());
        Ok((
            Self { node, plugin, main_plugin, config, containers: Vec::new(), made: 0, deadline_ms: None },
            why,
        ))
    }

    /// Sets the time limit of later runs of the plugin.
    #[cfg(feature = "testing")]
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.deadline_ms = u64::try_from(deadline.as_millis()).ok();
    }

    /// True if containers get real interfaces.
    #[must_use]
    pub fn is_real(&self) -> bool {
        self.main_plugin.is_some()
    }

    async fn run(&self, verb: &str, id: &str, namespace: &Path, config: &Value) -> Result<Output, DevError> {
        let plugin_dir = self.plugin.parent().unwrap_or(Path::new("/")).display();
        let mut command = match (&self.node, &self.main_plugin) {
            (Some(node), Some(bridge)) => node.command(bridge),
            _ => Command::new(&self.plugin),
        };
        command.env_clear();
        if let Some(deadline_ms) = self.deadline_ms {
            command.env(CNI_DEADLINE_ENV, deadline_ms.to_string());
        }
        let mut process = command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("CNI_COMMAND", verb)
            .env("CNI_CONTAINERID", id)
            .env("CNI_NETNS", namespace)
            .env("CNI_IFNAME", "eth0")
            .env("CNI_PATH", format!("{plugin_dir}:{}", PLUGIN_DIRS.join(":")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| DevError::new("the plugin can't be started", error))?;
        if let Some(mut input) = process.stdin.take() {
            // A plugin that doesn't read its input reports that by its exit code.
            let _ = input.write_all(config.to_string().as_bytes()).await;
        }
        let output = process.wait_with_output().await;
        output.map_err(|error| DevError::new("the plugin can't be waited for", error))
    }

    /// Creates a container whose interface the plugins configure.
    ///
    /// # Errors
    /// The output of the plugins.
    pub async fn add(&mut self) -> Result<&Container, DevError> {
        self.made += 1;
        let id = format!("demo-{}-{}", std::process::id(), self.made);
        let namespace = if self.is_real() { Some(Namespace::make().await?) } else { None };
        let path = namespace.as_ref().map_or_else(|| "/proc/self/ns/net".into(), |held| held.path.clone());
        let begun = Instant::now();
        let output = self.run("ADD", &id, &path, &self.config).await?;
        let took = begun.elapsed();
        if !output.status.success() {
            return Err(DevError(format!("ADD failed: {}", said(&output))));
        }
        let result = serde_json::from_slice(&output.stdout)
            .map_err(|error| DevError::new("the plugin's answer can't be read", error))?;
        self.containers.push(Container { id, namespace, result, took });
        self.containers.last().ok_or_else(|| DevError("no container".to_owned()))
    }

    /// Containers that were added and not deleted, the oldest first.
    #[must_use]
    pub fn containers(&self) -> &[Container] {
        &self.containers
    }

    /// Removes the oldest container like a runtime: DEL, then the end of its namespace.
    ///
    /// # Errors
    /// The output of the plugins, or that there is no container.
    pub async fn delete(&mut self) -> Result<Container, DevError> {
        if self.containers.is_empty() {
            return Err(DevError("there is no container".to_owned()));
        }
        let mut container = self.containers.remove(0);
        let path = container.namespace.as_ref().map_or_else(PathBuf::new, |held| held.path.clone());
        let output = self.run("DEL", &container.id, &path, &self.config).await?;
        if let Some(namespace) = container.namespace.take() {
            namespace.end().await;
        }
        if !output.status.success() {
            return Err(DevError(format!("DEL failed: {}", said(&output))));
        }
        Ok(container)
    }

    /// Runs the plugins again for an existing container, such as CHECK or a repeated DEL.
    ///
    /// # Errors
    /// If the container doesn't exist, or the plugins can't be run.
    pub async fn tell(&self, container: usize, verb: &str) -> Result<Output, DevError> {
        let Some(held) = self.containers.get(container) else {
            return Err(DevError("there is no such container".to_owned()));
        };
        let mut config = self.config.clone();
        if let Some(config) = config.as_object_mut() {
            config.insert("prevResult".to_owned(), held.result.clone());
        }
        self.run(verb, &held.id, self.namespace(container)?, &config).await
    }

    /// Path of the network namespace of the container with this number.
    ///
    /// # Errors
    /// If the container doesn't exist, or has no namespace of its own.
    pub fn namespace(&self, container: usize) -> Result<&Path, DevError> {
        let namespace = self.containers.get(container).and_then(|held| held.namespace.as_ref());
        let namespace = namespace.ok_or_else(|| DevError("there is no such container".to_owned()))?;
        Ok(&namespace.path)
    }

    /// Runs a program on the node.
    ///
    /// # Errors
    /// If there is no node, or the program fails.
    #[cfg(feature = "testing")]
    pub async fn on_node(&self, program: &[&str]) -> Result<(), DevError> {
        let (Some(node), Some((name, arguments))) = (&self.node, program.split_first()) else {
            return Err(DevError("there is no node".to_owned()));
        };
        let output = node.command(Path::new(name)).args(arguments).output().await;
        let output = output.map_err(|error| DevError::new(name, error))?;
        if output.status.success() { Ok(()) } else { Err(DevError::new(program.join(" "), said(&output))) }
    }

    /// Runs a program inside the container with this number, counted from 0.
    ///
    /// # Errors
    /// If the container doesn't exist, or the program can't be run.
    pub async fn inside(&self, container: usize, program: &[&str]) -> Result<Output, DevError> {
        let namespace = self.containers.get(container).and_then(|held| held.namespace.as_ref());
        let (Some(namespace), Some((program, arguments))) = (namespace, program.split_first()) else {
            return Err(DevError("there is no such container".to_owned()));
        };
        let output = namespace.command(Path::new(program)).args(arguments).output().await;
        output.map_err(|error| DevError::new(program, error))
    }

    /// Removes everything: DEL for every container, then the namespaces.
    ///
    /// # Errors
    /// The last failure; all steps are carried out in any case.
    pub async fn end(mut self) -> Result<(), DevError> {
        let mut outcome = Ok(());
        while !self.containers.is_empty() {
            outcome = self.delete().await.map(drop).and(outcome);
        }
        if let Some(node) = self.node.take() {
            node.end().await;
        }
        outcome
    }
}

/// Output of a plugin on both streams.
fn said(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{} {}", out.trim(), err.trim()).trim().to_owned()
}
