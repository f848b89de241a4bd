//! `ipamd kubernetes`: the watcher of one cluster, in a process of its own.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ipam_api::limits::{KUBERNETES_SCAN_MS_DEFAULT, KUBERNETES_SCAN_MS_MAX, KUBERNETES_SCAN_MS_MIN};
use ipam_api::name::Name;
use ipam_kubernetes::{Settings, watch};

use super::process::{self, ApiServerFlags, ServerFlags};

/// Flags of `ipamd kubernetes`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ipamd kubernetes --kubeconfig ~/.kube/config --server http://127.0.0.1:7440
  ipamd kubernetes --realm us --server https://ipamd.example:7440 --token-file ./token --ca-file ./ca.crt")]
pub struct Flags {
    #[command(flatten)]
    servers: ServerFlags,
    /// Realm of the Kubernetes cluster.
    #[arg(long, default_value = "default")]
    realm: Name,
    #[command(flatten)]
    api_server: ApiServerFlags,
    /// Interval of the scans in milliseconds.
    #[arg(
        long, value_name = "MS", default_value_t = KUBERNETES_SCAN_MS_DEFAULT,
        value_parser = clap::value_parser!(u64).range(KUBERNETES_SCAN_MS_MIN..=KUBERNETES_SCAN_MS_MAX)
    )]
    scan_interval_ms: u64,
    /// Believe what the agents of the realm's nodes claim about their pods.
    #[arg(long)]
    no_verify: bool,
    /// Apply the custom resources of the cluster; the token then needs --allow-shared.
    #[arg(long)]
    custom_resources: bool,
}

/// Runs the command until SIGTERM or Ctrl-C.
#[must_use]
pub fn main(flags: Flags) -> ExitCode {
    let Flags { servers, realm, api_server, scan_interval_ms, no_verify, custom_resources } = flags;
    let ApiServerFlags { kubeconfig, context } = api_server;
    let settings = Settings {
        kubeconfig,
        context,
        scan_interval: Duration::from_millis(scan_interval_ms),
        verify: !no_verify,
        custom_resources,
        ..Settings::new(realm.clone())
    };
    process::main(servers, realm, |remote, status| watch(settings, remote, status))
}
