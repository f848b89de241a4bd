//! One member, from its configuration to its last answer.

#[cfg(not(feature = "meridio"))]
use std::convert::Infallible;
use std::future::pending;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(feature = "meridio")]
use futures::future::Either;
use ipam_api::brand::PRODUCT;
use ipam_api::tls::TlsError;
use ipam_raft::StoreError;
use ipam_raft::node::{Failure, Node, NodeConfig, PeerPort, StartError};
use ipam_raft::socket::PrivateSocket;
use rustix::io::Errno;
use rustix::process::{Signal, set_parent_process_death_signal};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::access::{Access, TokensFileError};
use crate::config::{ClientTlsFiles, Config, ConfigError, Flags, PeerListen, client_url};
use crate::http::connection::server::{self, Listener};
use crate::http::connection::starting::Starting;
use crate::http::connection::{bind_port, bind_socket};
use crate::http::request::App;
use crate::http::router::router;
#[cfg(feature = "meridio")]
use crate::meridio::{FrontEnd, OpenError};
use crate::metrics::{Certificates, Metrics};
#[cfg(feature = "meridio")]
use crate::reload::LevelSignals;
use crate::reload::{self, Reloads};
use crate::supervision::Supervision;
#[cfg(feature = "kubernetes")]
use crate::watchers;
use crate::{descriptors, join, screen, tasks};

/// Time limit of transferring leadership and closing.
pub const LEAVE: Duration = Duration::from_secs(10);

/// The exit code of a member whose disk refused to read or write.
const DISK_FAILED: u8 = 3;
/// Exit code of a member with damaged data or a broken invariant: a restart won't help.
const DAMAGED: u8 = 4;
/// The exit code of a member that was removed from its cluster: starting it again won't help.
const REMOVED: u8 = 5;

/// Reason for which a member can't serve, or had to stop.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("access.tokens_file {0}")]
    Tokens(#[from] TokensFileError),
    #[error(
        "{key} {address} can't be bound: {error}; is another {PRODUCT} running, or another program on that \
         port?"
    )]
    Bind { key: &'static str, address: std::net::SocketAddr, error: std::io::Error },
    #[error("{key} {} can't be bound: {error}", path.display())]
    BindSocket { key: &'static str, path: PathBuf, error: std::io::Error },
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(
        "{0}; it doesn't come back under that id: to let this machine join anew, empty its data directory \
         and give it a token (`ipamctl token member`)"
    )]
    Removed(String),
    #[error(
        "{0}; nothing acknowledged is lost: fix the named cause (space, disk), then start the member again"
    )]
    Failed(Failure),
    #[error(
        "{0}; nothing was answered or written from that state. Starting this version again on the same data \
         ends the same way: report this line with a support bundle (`ipamctl support`)"
    )]
    Broken(String),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[cfg(feature = "meridio")]
    #[error(transparent)]
    Meridio(#[from] OpenError),
    #[cfg(feature = "meridio")]
    #[error("{0}")]
    Trench(ipam_meridio::Unprepared),
    #[error("the system refuses what every daemon needs: {0}")]
    System(#[from] std::io::Error),
}

/// Runs `ipamd serve`.
#[must_use]
pub fn main(flags: &Flags) -> ExitCode {
    match run(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            screen::err(&format!("ipamd: {error}\n"));
            error.exit_code()
        }
    }
}

impl ServeError {
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) | Self::Tls(_) | Self::Tokens(_) => ExitCode::from(2),
            #[cfg(feature = "meridio")]
            Self::Meridio(OpenError::Tls(_)) | Self::Trench(_) => ExitCode::from(2),
            Self::Removed(_) => ExitCode::from(REMOVED),
            Self::Failed(Failure::Disk(_)) => ExitCode::from(DISK_FAILED),
            Self::Start(StartError::Store(StoreError::Io { source, .. })) if is_the_disks(source) => {
                ExitCode::from(DISK_FAILED)
            }
            Self::Broken(_)
            | Self::Start(StartError::Store(StoreError::Damaged { .. } | StoreError::Broken(_))) => {
                ExitCode::from(DAMAGED)
            }
            _ => ExitCode::FAILURE,
        }
    }
}

impl From<Failure> for ServeError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Removed(why) => Self::Removed(why),
            Failure::Broken(why) => Self::Broken(why),
            failure => Self::Failed(failure),
        }
    }
}

/// True for a failure of the disk, as opposed to wrong permissions or a wrong path.
fn is_the_disks(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem)
        || error.raw_os_error() == Some(Errno::IO.raw_os_error())
}

fn run(flags: &Flags) -> Result<(), ServeError> {
    if flags.stop_with_parent {
        set_parent_process_death_signal(Some(Signal::TERM)).map_err(std::io::Error::from)?;
    }
    let config = Config::load(flags)?;
    let mut reloads = Reloads::default();
    let (filter, handle) = tracing_subscriber::reload::Layer::new(config.log_filter()?);
    reloads.add("log", reload::log_filter(handle.clone()));
    // No colours: log lines may contain foreign text, and no escape code may reach the terminal.
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(|| screen::Log);
    tracing_subscriber::registry().with(filter).with(lines).init();
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    #[cfg(feature = "testing")]
    flags.test_options.iter().for_each(|option| option.turn_on());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(workers()).enable_all().build()?;
    let served = runtime.block_on(serve(config, flags, reloads, handle));
    // An unresponsive disk, or a cancelled start, doesn't delay the exit.
    runtime.shutdown_background();
    served
}

/// Number of threads for requests. The thread of raft has a core for itself.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().saturating_sub(1).max(1))
}

async fn serve(
    config: Config,
    flags: &Flags,
    mut reloads: Reloads,
    log: reload::LogHandle,
) -> Result<(), ServeError> {
    let connections_max = descriptors::make_room();
    let tls = config.tls.as_ref().map(ClientTlsFiles::load).transpose()?;
    let access = Access::new(config.access.clone())?;
    reloads.add("access", reload::access(access.clone()));
    reloads.add("tls", reload::client_tls(tls.clone()));
    let peer_tls = config.peer_tls.as_ref().map(|files| files.load(&config.name)).transpose()?;
    reloads.add("peer_tls", reload::peer_tls(peer_tls.clone()));
    let bind = |key, address| bind_port(address).map_err(|error| ServeError::Bind { key, address, error });
    let clients = bind("client_listen", config.client_listen)?;
    let peer_port = match (config.peer_listen, &peer_tls) {
        (PeerListen::Closed, _) => PeerPort::Closed,
        (PeerListen::Network(at), Some(tls)) => PeerPort::Tls(bind("peer_listen", at)?, tls.clone()),
        (PeerListen::Network(at), None) => PeerPort::Open(bind("peer_listen", at)?),
        (PeerListen::Socket(path), _) => match PrivateSocket::bind(&path).await {
            Ok(socket) => PeerPort::Socket(socket),
            Err(error) => return Err(ServeError::BindSocket { key: "peer_listen", path, error }),
        },
    };
    let socket = match config.client_socket.as_deref() {
        Some(path) => match bind_socket(path).await {
            Ok(socket) => Some(socket),
            Err(error) => {
                return Err(ServeError::BindSocket { key: "client_socket", path: path.to_owned(), error });
            }
        },
        None => None,
    };
    #[cfg(feature = "meridio")]
    let mut meridio = match config.meridio {
        Some(settings) => {
            tokio::spawn(LevelSignals::new()?.follow(log, flags.clone()));
            let front_end = FrontEnd::open(settings, access.clone()).await?;
            reloads.add("meridio", front_end.reload());
            Some(front_end)
        }
        None => None,
    };
    #[cfg(not(feature = "meridio"))]
    drop(log);
    let url = config
        .client_url
        .clone()
        .map_or_else(|| clients.local_addr().map(|listen| client_url(listen, tls.is_some())), Ok)?;
    // SIGHUP has a receiver from here on; without one it would end the process.
    let hang_up = signal(SignalKind::hangup())?;
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut node_config = NodeConfig::new(
        config.data_dir,
        config.name.clone(),
        peer_port,
        config.peer_address,
        url.clone(),
        config.initial_members,
    );
    node_config.joins = config.join.is_some();
    node_config.timing = config.timing;
    node_config.snapshots = config.snapshots;
    node_config.disk = config.disk;
    let certificates = Certificates {
        clients: tls.clone(),
        members: peer_tls,
        #[cfg(feature = "meridio")]
        meridio: meridio.as_ref().and_then(FrontEnd::tls),
        #[cfg(not(feature = "meridio"))]
        meridio: None,
    };
    let metrics = Arc::new(Metrics::new(config.metrics_per_pool).with(certificates));
    let starting = Starting::new(node_config.progress.clone(), Arc::clone(&metrics));
    let (stop, stopping) = watch::channel(false);
    let mut servers = Vec::new();
    #[cfg(feature = "meridio")]
    let connections_max = match &mut meridio {
        Some(front_end) => {
            servers.extend(front_end.serve(connections_max, &stopping).await);
            front_end.connections_left(connections_max)
        }
        None => connections_max,
    };
    servers.push(tokio::spawn(server::serve(
        Listener::Network { listener: clients, tls },
        connections_max,
        starting.router(),
        stopping.clone(),
    )));
    if let Some(socket) = socket {
        servers.push(tokio::spawn(server::serve(
            Listener::Socket(socket),
            connections_max,
            starting.router(),
            stopping,
        )));
    }
    let node = tokio::select! {
        node = Node::start(node_config) => node?,
        // Nothing is open yet that needs a graceful close.
        _ = terminate.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
    };
    let statuses = Arc::new(tasks::Statuses::default());
    let app = App::new(node.clone(), Arc::clone(&metrics), access, (config.gc, Arc::clone(&statuses)));
    let router = router(app);
    starting.over(router.clone());
    tracing::info!(name = %config.name, %url, "answering clients");
    let supervision = Supervision::default();
    let supervised = tokio::spawn(supervision.clone().follow(node.clone()));
    let joining = config.join.map(|join| tokio::spawn(join::run(node.clone(), join)));
    #[cfg(feature = "meridio")]
    let trench = match meridio {
        Some(front_end) => Either::Left(front_end.run(&node, router.clone(), Arc::clone(&statuses))),
        None => Either::Right(pending()),
    };
    #[cfg(not(feature = "meridio"))]
    let trench = pending::<Infallible>();
    #[cfg(feature = "kubernetes")]
    let sections = watchers::Sections { kubernetes: config.kubernetes, cluster_api: config.cluster_api };
    #[cfg(feature = "kubernetes")]
    let watchers = watchers::run(node.clone(), router, sections, Arc::clone(&statuses));
    #[cfg(feature = "kubernetes")]
    let watchers = tokio::spawn(watchers);
    let tasks = tokio::spawn(tasks::run(node.clone(), (config.journal, config.gc), statuses, metrics));
    let reloading = tokio::spawn(reloads.run(hang_up, flags.clone(), supervision.clone()));
    let (failure, refused) = tokio::select! {
        _ = terminate.recv() => (None, None),
        _ = interrupt.recv() => (None, None),
        why = node.failed() => (Some(why), None),
        why = trench => (None, Some(why)),
    };
    supervised.abort();
    supervision.stopping(node.ready().err().as_deref()).await;
    tasks.abort();
    #[cfg(feature = "kubernetes")]
    watchers.abort();
    reloading.abort();
    if let Some(joining) = joining {
        joining.abort();
    }
    match failure {
        // A failed member transfers no leadership and writes nothing more: its disk or state may be damaged.
        Some(why) => Err(why.into()),
        None => {
            tracing::info!("stopping: handing over, finishing what runs");
            // Leadership goes first, so that requests find the new leader while this one still answers.
            node.shutdown(Instant::now() + LEAVE).await;
            let _ = stop.send(true);
            for server in servers {
                let _ = server.await;
            }
            match (node.failure(), refused) {
                (Some(broken @ Failure::Broken(_)), _) => Err(broken.into()),
                #[cfg(feature = "meridio")]
                (_, Some(why)) => Err(ServeError::Trench(why)),
                _ => Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_its_exit_code() {
        let exits = |failure: Failure, code: u8| {
            let text = format!("{:?}", ServeError::from(failure).exit_code());
            assert_eq!(text, format!("{:?}", ExitCode::from(code)));
        };
        exits(Failure::Disk("EIO".to_owned()), DISK_FAILED);
        exits(Failure::Broken("invariant broken: pool of an allocation".to_owned()), DAMAGED);
        exits(Failure::Removed("removed".to_owned()), REMOVED);
        exits(Failure::Other("raft".to_owned()), 1);
    }

    #[test]
    fn the_last_line_of_a_member_names_the_broken_invariant() {
        let line = ServeError::from(Failure::Broken("invariant broken: pool of an allocation".to_owned()));
        assert!(line.to_string().contains("pool of an allocation"), "{line}");
    }
}
