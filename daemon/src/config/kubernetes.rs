//! `[[kubernetes]]`: the clusters whose watchers run on the leader.

use std::path::PathBuf;

use ipam_api::limits::{KUBERNETES_SCAN_MS_DEFAULT, KUBERNETES_SCAN_MS_MAX, KUBERNETES_SCAN_MS_MIN};
use ipam_api::name::Name;
use serde::{Deserialize, Serialize};

use super::api_server::Sections;
use super::error::{ConfigError, wrong};

const SECTIONS: Sections = Sections("kubernetes");

/// One section of the file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileKubernetes {
    /// Realm of the cluster's endpoints, nodes and namespaces.
    pub(super) realm: Option<String>,
    /// File with the address of the API server and credentials; absent: those of the pod's service account.
    pub(super) kubeconfig: Option<PathBuf>,
    /// Context of that file; absent: its current one.
    pub(super) context: Option<String>,
    /// Interval of the scans that look for pods without a watched deletion.
    pub(super) scan_interval_ms: Option<u64>,
    /// False to accept claims of the realm's nodes about their pods unverified; absent: true.
    pub(super) verify: Option<bool>,
    /// True if the watcher applies the custom resources of the cluster; by default it does not.
    pub(super) custom_resources: Option<bool>,
}

/// Watcher of one Kubernetes cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubernetesSettings {
    /// Realm of the cluster.
    pub realm: Name,
    /// File with the API server; none for the service account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// Context of that file; none for its current one.
    pub context: Option<String>,
    /// Interval of the scans in milliseconds.
    pub scan_interval_ms: u64,
    /// True to verify claims of the realm's nodes about their pods.
    pub verify: bool,
    /// True if the watcher applies the custom resources of the cluster.
    pub custom_resources: bool,
}

impl KubernetesSettings {
    /// Refuses a file that can't be opened.
    pub(super) fn open(&self) -> Result<(), ConfigError> {
        SECTIONS.open(self.kubeconfig.as_deref())
    }
}

/// Completes and checks all sections.
pub(super) fn complete(sections: Vec<FileKubernetes>) -> Result<Vec<KubernetesSettings>, ConfigError> {
    SECTIONS.check_count(sections.len())?;
    let mut all: Vec<KubernetesSettings> = Vec::new();
    for section in sections {
        let one = section.complete()?;
        if all.iter().any(|other| other.realm == one.realm) {
            let why = format!("two sections have {}; each cluster needs a realm of its own", one.realm);
            return Err(wrong("kubernetes.realm", &why));
        }
        all.push(one);
    }
    Ok(all)
}

impl FileKubernetes {
    fn complete(self) -> Result<KubernetesSettings, ConfigError> {
        let Self { realm, kubeconfig, context, scan_interval_ms, verify, custom_resources } = self;
        let realm = SECTIONS.realm(realm)?;
        SECTIONS.check_context(context.as_deref(), kubeconfig.as_deref())?;
        let scan_interval_ms = scan_interval_ms.unwrap_or(KUBERNETES_SCAN_MS_DEFAULT);
        if !(KUBERNETES_SCAN_MS_MIN..=KUBERNETES_SCAN_MS_MAX).contains(&scan_interval_ms) {
            let why = format!("it must be between {KUBERNETES_SCAN_MS_MIN} and {KUBERNETES_SCAN_MS_MAX}");
            return Err(wrong("kubernetes.scan_interval_ms", &why));
        }
        let (verify, custom_resources) = (verify.unwrap_or(true), custom_resources.unwrap_or_default());
        Ok(KubernetesSettings { realm, kubeconfig, context, scan_interval_ms, verify, custom_resources })
    }
}
