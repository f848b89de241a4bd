//! Sandboxes of pods, maintained as by the kubelet. After a failure, sandboxes of the pod that don't serve it
//! are removed, and the next attempt creates a sandbox with its own attempt number.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;

use crate::cri::{Client, PodSandbox, PodSandboxConfig, PodSandboxMetadata, READY};
use crate::order::{Created, Pod};

/// Label by which the kubelet finds the sandboxes of a pod.
const UID: &str = "io.kubernetes.pod.uid";
/// Time until an order fails.
const PATIENCE: Duration = Duration::from_secs(100);
/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(50);

/// Sandboxes of one runtime.
pub(crate) struct Sandboxes {
    client: Client,
}

impl Sandboxes {
    pub(crate) fn new(socket: PathBuf) -> Self {
        Self { client: Client::new(socket) }
    }

    pub(crate) async fn create(&self, pod: &Pod, once: bool) -> Result<Created> {
        let mut attempts = 0;
        let sandbox = repeated(once, async || {
            attempts += 1;
            match self.client.run(config(pod, attempts - 1)).await {
                Ok(id) => Ok(id),
                // The answer may have been lost, so an existing sandbox that serves the pod is used.
                Err(error) => self.remainder(pod).await?.ok_or(error),
            }
        })
        .await?;
        let (addresses, pid) = repeated(once, async || self.observed(&sandbox).await).await?;
        Ok(Created { sandbox, addresses, pid, attempts })
    }

    pub(crate) async fn delete(&self, pod: &Pod, once: bool) -> Result<Created> {
        let mut attempts = 0;
        repeated(once, async || {
            attempts += 1;
            for sandbox in self.of(pod).await? {
                self.remove(&sandbox.id).await?;
            }
            anyhow::Ok(())
        })
        .await?;
        Ok(Created { attempts, ..Created::default() })
    }

    async fn of(&self, pod: &Pod) -> Result<Vec<PodSandbox>> {
        self.client.list((UID, &pod.uid)).await
    }

    async fn remove(&self, id: &str) -> Result<()> {
        self.client.stop(id).await?;
        self.client.remove(id).await
    }

    /// Id of the newest sandbox, if it serves the pod. All others are removed.
    async fn remainder(&self, pod: &Pod) -> Result<Option<String>> {
        let mut sandboxes = self.of(pod).await?;
        sandboxes.sort_by_key(|one| one.metadata.as_ref().map(|metadata| metadata.attempt));
        let newest = sandboxes.pop_if(|newest| newest.state == READY);
        for sandbox in sandboxes {
            self.remove(&sandbox.id).await?;
        }
        Ok(newest.map(|one| one.id))
    }

    /// Addresses and process of a sandbox.
    async fn observed(&self, id: &str) -> Result<(Vec<String>, Option<u32>)> {
        let status = self.client.status(id).await?;
        let info: Value = serde_json::from_str(status.info.get("info").map_or("{}", String::as_str))?;
        let pid = info.get("pid").and_then(Value::as_u64).and_then(|pid| pid.try_into().ok());
        let network = status.status.and_then(|status| status.network).unwrap_or_default();
        let mut addresses = vec![network.ip];
        addresses.extend(network.additional_ips.into_iter().map(|one| one.ip));
        addresses.retain(|address| !address.is_empty());
        Ok((addresses, pid))
    }
}

fn config(pod: &Pod, attempt: u32) -> PodSandboxConfig {
    let Pod { namespace, name, uid, labels, annotations } = pod;
    let metadata =
        PodSandboxMetadata { name: name.clone(), uid: uid.clone(), namespace: namespace.clone(), attempt };
    let own = [(UID, uid), ("io.kubernetes.pod.name", name), ("io.kubernetes.pod.namespace", namespace)];
    let own = own.map(|(key, value)| (key.to_owned(), value.clone()));
    PodSandboxConfig {
        metadata: Some(metadata),
        hostname: name.clone(),
        labels: labels.clone().into_iter().chain(own).collect(),
        annotations: annotations.clone(),
        linux: Some(Default::default()),
    }
}

/// Retries a failed attempt until a success or the time limit; with `once`, not at all.
async fn repeated<T>(once: bool, mut attempt: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let begun = Instant::now();
    loop {
        match attempt().await {
            Err(_) if !once && begun.elapsed() < PATIENCE => tokio::time::sleep(PAUSE).await,
            result => return result,
        }
    }
}
