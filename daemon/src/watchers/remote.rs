//! `ipamd kubernetes`: the watcher of one cluster, which pushes to servers elsewhere.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use ipam_api::client::{Client, Options};
use ipam_api::limits::{KUBERNETES_SCAN_MS_DEFAULT, KUBERNETES_SCAN_MS_MAX, KUBERNETES_SCAN_MS_MIN};
use ipam_api::name::Name;
use ipam_kubernetes::{Remote, Settings, Status, watch};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch::channel;
use tracing_subscriber::EnvFilter;

use super::news::News;
use crate::config::KUBE_DIRECTIVES;
use crate::screen;

/// Flags of `ipamd kubernetes`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ipamd kubernetes --kubeconfig ~/.kube/config --server http://127.0.0.1:7440
  ipamd kubernetes --realm us --server https://ipamd.example:7440 --token-file ./token --ca-file ./ca.crt")]
pub struct Flags {
    /// Server of the cluster of `ipamd`; repeat for each.
    #[arg(long = "server", value_name = "URL", required = true)]
    servers: Vec<String>,
    /// File with a token of the realm, of the role operator.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// File with the CAs of the servers.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Realm of the Kubernetes cluster.
    #[arg(long, default_value = "default")]
    realm: Name,
    /// File with the API server and credentials [default: the service account of the pod].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of that file [default: its current context].
    #[arg(long, requires = "kubeconfig")]
    context: Option<String>,
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
    let filter = EnvFilter::new(format!("info,{KUBE_DIRECTIVES}"));
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(|| screen::Log).init();
    match run(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            screen::err(&format!("ipamd: {why}\n"));
            ExitCode::from(2)
        }
    }
}

fn run(flags: Flags) -> Result<(), String> {
    let Flags {
        servers,
        token_file,
        ca_file,
        realm,
        kubeconfig,
        context,
        scan_interval_ms,
        no_verify,
        custom_resources,
    } = flags;
    let options = Options { token_file, ca_file, ..Options::default() };
    let client = Client::with(&servers, &options);
    let client = client.map_err(|problem| format!("{}. {}", problem.detail, problem.help))?;
    let scan_interval = Duration::from_millis(scan_interval_ms);
    let settings = Settings {
        kubeconfig,
        context,
        scan_interval,
        verify: !no_verify,
        custom_resources,
        ..Settings::new(realm)
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let listen = |kind| signal(kind).map_err(|error| error.to_string());
        let (mut terminate, mut interrupt) =
            (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
        let (status, news) = channel(Status::new());
        let mut news = News::new(settings.realm.clone(), news);
        tokio::select! {
            () = watch(settings, Remote(Arc::new(client)), status) => {}
            () = async { while news.next().await.is_some() {} } => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    })
}
