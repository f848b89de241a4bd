//! Pods without sandboxes: one CNI plugin, run with the environment and the input that containerd gives it.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::order::{Created, Pod};

/// Capability by which containerd passes the annotations of a pod.
const POD_ANNOTATIONS: &str = "io.kubernetes.cri.pod-annotations";

/// Plugin with its configuration.
pub(crate) struct Plugins {
    plugin: PathBuf,
    configuration: Value,
}

impl Plugins {
    pub(crate) fn read(configuration: &Path, plugin: PathBuf) -> Result<Self> {
        let text = std::fs::read(configuration).with_context(|| configuration.display().to_string())?;
        Ok(Self { plugin, configuration: serde_json::from_slice(&text)? })
    }

    pub(crate) async fn create(&self, pod: &Pod) -> Result<Created> {
        let result = self.run("ADD", pod).await?;
        let ips = result.get("ips").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let address = |ip: &Value| Some(ip.get("address")?.as_str()?.split('/').next()?.to_owned());
        let addresses = ips.iter().filter_map(address).collect();
        Ok(Created { sandbox: container_id(pod), addresses, pid: None, attempts: 1 })
    }

    pub(crate) async fn delete(&self, pod: &Pod) -> Result<Created> {
        self.run("DEL", pod).await?;
        Ok(Created { attempts: 1, ..Created::default() })
    }

    async fn run(&self, verb: &str, pod: &Pod) -> Result<Value> {
        let id = container_id(pod);
        let mut configuration = self.configuration.clone();
        let annotations = Some(&pod.annotations).filter(|annotations| !annotations.is_empty());
        if let Some(members) = configuration.as_object_mut() {
            members.insert("runtimeConfig".to_owned(), json!({POD_ANNOTATIONS: annotations}));
        }
        let mut command = Command::new(&self.plugin);
        command.env_clear().env("CNI_COMMAND", verb).env("CNI_CONTAINERID", &id).env("CNI_IFNAME", "eth0");
        command.env("CNI_NETNS", format!("/var/run/netns/cni-{id}")).env("CNI_PATH", "/opt/cni/bin");
        command.env("CNI_ARGS", arguments(pod, &id)).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn()?;
        let mut input = child.stdin.take().context("the plugin has no input")?;
        // A plugin that ends early reports that by its exit code.
        let _ = input.write_all(&serde_json::to_vec(&configuration)?).await;
        drop(input);
        let output = child.wait_with_output().await?;
        if !output.status.success() {
            bail!("{verb}: {}", String::from_utf8_lossy(&output.stdout));
        }
        if output.stdout.is_empty() { Ok(Value::Null) } else { Ok(serde_json::from_slice(&output.stdout)?) }
    }
}

/// Container id of a pod's only sandbox.
fn container_id(pod: &Pod) -> String {
    format!("{}-{}", pod.name, pod.uid)
}

/// `CNI_ARGS` in random order, because containerd fills it from a map.
fn arguments(pod: &Pod, id: &str) -> String {
    let mut pairs = [
        ("IgnoreUnknown", "1"),
        ("K8S_POD_NAMESPACE", &pod.namespace),
        ("K8S_POD_NAME", &pod.name),
        ("K8S_POD_INFRA_CONTAINER_ID", id),
        ("K8S_POD_UID", &pod.uid),
    ]
    .map(|(key, value)| format!("{key}={value}"));
    // Each state has new random keys.
    let order = RandomState::new();
    pairs.sort_by_cached_key(|pair| {
        let mut hasher = order.build_hasher();
        hasher.write(pair.as_bytes());
        hasher.finish()
    });
    pairs.join(";")
}
