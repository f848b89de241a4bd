//! `ipam-agent serve`: the order in which everything starts and stops.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ipam_api::brand::AGENT_LOG_ENV;
use ipam_api::screen::clean;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::cluster::Cluster;
use crate::config::{Config, Flags};
use crate::journal::{Journal, JournalFile};
use crate::node::Node;
use crate::pods::PodView;
use crate::probing::wire::{HostWire, Wire};
use crate::socket::{PermittedListener, router};
use crate::{boot, heartbeat, host, identity, inventory, probing, release};

/// Time that running requests have to finish once the agent stops.
const FINISH: Duration = Duration::from_secs(5);

/// Reason why the agent can't start or continue.
type Failure = Box<dyn std::error::Error>;

/// Runs the command.
#[must_use]
pub fn main(flags: &Flags, take_over: bool) -> ExitCode {
    let filter = EnvFilter::try_from_env(AGENT_LOG_ENV).unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_ansi(false).with_env_filter(filter).with_writer(std::io::stderr).init();
    match start(flags, take_over) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("ipam-agent: {}", clean(&failure.to_string()));
            ExitCode::FAILURE
        }
    }
}

fn start(flags: &Flags, take_over: bool) -> Result<(), Failure> {
    let mut config = Config::of(flags)?;
    if let Some(host) = &mut config.host {
        host.take_over |= take_over;
    }
    let (file, attachments) = JournalFile::open(&config.state_dir)?;
    let journal = Journal::start(file, attachments)?;
    // One thread: the agent waits for servers and for the disk, and the journal has a thread of its own.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(2).build()?;
    let served = runtime.block_on(serve(config, journal));
    runtime.shutdown_timeout(FINISH);
    served
}

async fn serve(config: Config, journal: Journal) -> Result<(), Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let boot_id = boot::id()?;
    // The host is configured first: without its addresses, it may reach no server.
    let mut session = host_session(&config, &boot_id)?;
    let view = |access| PodView::new(access, config.node.name.clone()).map(Arc::new);
    let pods = config.kubernetes.as_ref().map(view).transpose()?;
    let cluster = {
        let mut connected = std::pin::pin!(identity::connect(&config));
        loop {
            // This call is not cancelled, so that the journal and the kernel agree at its end.
            let pause = hold(&mut session).await;
            let cluster: Cluster = tokio::select! {
                cluster = &mut connected => cluster?,
                () = tokio::time::sleep(pause) => continue,
                _ = terminate.recv() => return Ok(()),
                _ = interrupt.recv() => return Ok(()),
            };
            break cluster;
        }
    };
    let listener = PermittedListener::bind(&config.socket, &config.uids)
        .map_err(|error| format!("{}: {error}", config.socket.display()))?;
    let node = Arc::new(Node::new(config, boot_id, cluster, journal, pods));
    tracing::info!(
        node = %node.config.node,
        socket = %node.config.socket.display(),
        attachments = node.journal.attachments().len(),
        "serving"
    );
    start_tasks(&node, &HostWire::for_jobs());
    if let Some(session) = session {
        tokio::spawn(host::follow(node.clone(), session, HostWire::for_add()));
    }
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut stopping = stopped.clone();
    let stopping = async move {
        let _ = stopping.wait_for(|stop| *stop).await;
    };
    let router = router(node.clone(), HostWire::for_add());
    let server = axum::serve(listener, router).with_graceful_shutdown(stopping).into_future();
    let server = tokio::spawn(server);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    let _ = stop.send(true);
    // An ADD that still waits for the servers is repeated by its plugin.
    let _ = tokio::time::timeout(FINISH, server).await;
    let _ = std::fs::remove_file(&node.config.socket);
    Ok(())
}

/// Starts the tasks of the agent that need no request. They end with the runtime.
pub fn start_tasks(node: &Arc<Node>, wire: &(impl Wire + Clone + 'static)) {
    tokio::spawn(heartbeat::beat(node.clone(), wire.clone()));
    tokio::spawn(release::deliver_all(node.clone()));
    tokio::spawn(inventory::observe(node.clone()));
    tokio::spawn(identity::renew(node.clone()));
    if let Some(pods) = node.pods.clone() {
        let node = node.clone();
        tokio::spawn(async move { pods.run(&node.journal).await });
    }
    tokio::spawn(probing::jobs::run(node.clone(), wire.clone()));
}

/// Reads the journal of the host's interfaces, where the configuration has some.
fn host_session(config: &Config, boot_id: &str) -> Result<Option<host::Session<host::Netlink>>, Failure> {
    let Some(host) = config.host.clone() else { return Ok(None) };
    let kernel = host::Netlink::open().map_err(|error| format!("can't open a netlink socket: {error}"))?;
    let root = Path::new("/");
    let opened = host::Session::open(host, kernel, &config.state_dir, boot_id, root, &config.node);
    Ok(Some(opened.map_err(|error| format!("{}: {error}", config.state_dir.display()))?))
}

/// Configures the addresses of the host once, while the agent has no servers. Returns the pause until the
/// next call.
async fn hold(session: &mut Option<host::Session<host::Netlink>>) -> Duration {
    match session {
        Some(session) => host::hold(session, &HostWire::for_jobs()).await,
        None => FINISH,
    }
}
