//! Messages of `runtime.v1` in CRI's `api.proto`, with the fields that are used here. Others are skipped.

use std::collections::BTreeMap;

/// State of a sandbox that serves its pod (`SANDBOX_READY`).
pub(crate) const READY: i32 = 0;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodSandboxMetadata {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) uid: String,
    #[prost(string, tag = "3")]
    pub(crate) namespace: String,
    #[prost(uint32, tag = "4")]
    pub(crate) attempt: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodSandboxConfig {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<PodSandboxMetadata>,
    #[prost(string, tag = "2")]
    pub(crate) hostname: String,
    #[prost(btree_map = "string, string", tag = "6")]
    pub(crate) labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "7")]
    pub(crate) annotations: BTreeMap<String, String>,
    #[prost(message, optional, tag = "8")]
    pub(crate) linux: Option<LinuxPodSandboxConfig>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct LinuxPodSandboxConfig {
    #[prost(string, tag = "1")]
    pub(crate) cgroup_parent: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RunPodSandboxRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) config: Option<PodSandboxConfig>,
}

/// Id of a sandbox: the answer to its creation, and the request to stop or remove it.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SandboxId {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Empty {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListPodSandboxRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) filter: Option<PodSandboxFilter>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodSandboxFilter {
    #[prost(btree_map = "string, string", tag = "3")]
    pub(crate) label_selector: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListPodSandboxResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) items: Vec<PodSandbox>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodSandbox {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) metadata: Option<PodSandboxMetadata>,
    #[prost(int32, tag = "3")]
    pub(crate) state: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodSandboxStatusRequest {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(bool, tag = "2")]
    pub(crate) verbose: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodSandboxStatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<PodSandboxStatus>,
    #[prost(btree_map = "string, string", tag = "2")]
    pub(crate) info: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodSandboxStatus {
    #[prost(message, optional, tag = "5")]
    pub(crate) network: Option<PodSandboxNetworkStatus>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodSandboxNetworkStatus {
    #[prost(string, tag = "1")]
    pub(crate) ip: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) additional_ips: Vec<PodIp>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodIp {
    #[prost(string, tag = "1")]
    pub(crate) ip: String,
}
