//! Common part of watchers and providers in processes of their own: servers, API server and signals.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use ipam_api::client::{Client, Options};
use ipam_api::name::Name;
use ipam_kubernetes::Remote;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch::{Sender, channel};
use tracing_subscriber::EnvFilter;

use super::news::{News, Reported};
use crate::config::KUBE_DIRECTIVES;
use crate::screen;

/// Flags for the servers of `ipamd`.
#[derive(Debug, Args)]
pub(super) struct ServerFlags {
    /// Server of the cluster of `ipamd`; repeat for each, or separate them by commas.
    #[arg(long = "server", value_name = "URL", required = true, value_delimiter = ',')]
    servers: Vec<String>,
    /// File with a token of the realm, of the role operator.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// File with the CAs of the servers.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

/// Flags for the API server of Kubernetes.
#[derive(Debug, Args)]
pub(super) struct ApiServerFlags {
    /// File with the API server and credentials [default: the service account of the pod].
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Context of that file [default: its current context].
    #[arg(long, requires = "kubeconfig")]
    pub(super) context: Option<String>,
}

/// Runs a watcher or provider and logs its status changes, until SIGTERM or Ctrl-C.
pub(super) fn main<S, F>(
    servers: ServerFlags,
    realm: Name,
    work: impl FnOnce(Remote, Sender<S>) -> F,
) -> ExitCode
where
    S: Reported,
    F: Future<Output = ()>,
{
    let filter = EnvFilter::new(format!("info,{KUBE_DIRECTIVES}"));
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(|| screen::Log).init();
    match run(servers, realm, work) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            screen::err(&format!("ipamd: {why}\n"));
            ExitCode::from(2)
        }
    }
}

fn run<S, F>(flags: ServerFlags, realm: Name, work: impl FnOnce(Remote, Sender<S>) -> F) -> Result<(), String>
where
    S: Reported,
    F: Future<Output = ()>,
{
    let ServerFlags { servers, token_file, ca_file } = flags;
    let options = Options { token_file, ca_file, ..Options::default() };
    let client = Client::with(&servers, &options);
    let client = client.map_err(|problem| format!("{}. {}", problem.detail, problem.help))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let listen = |kind| signal(kind).map_err(|error| error.to_string());
        let (mut terminate, mut interrupt) =
            (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
        let (status, news) = channel(S::default());
        let mut news = News::new(realm, news);
        tokio::select! {
            () = work(Remote(Arc::new(client)), status) => {}
            () = async { while news.next().await.is_some() {} } => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    })
}
