//! `ipam-agent doctor`: checks of the node, each with a remedy.
//!
//! A running agent makes the report, since it knows the journal and the last answers. Without an agent, the
//! command checks the files and the servers.

mod capabilities;
mod clock;
mod host;
mod pods;
mod probes;

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use ipam_api::agent::{DOCTOR_PATH, DoctorCheck, DoctorReport, Verdict};
use ipam_api::brand::{CNI_TYPE, HEADER_LEADER};
use ipam_api::client::{Call, Client};
use ipam_api::problem::exit;
use ipam_api::time::Timestamp;
use tokio::task::JoinSet;

use crate::cluster::Cluster;
use crate::config::{Config, Flags};
use crate::identity::TOKEN;
use crate::journal::{Entry, Phase};
use crate::node::Node;
use crate::output::{Output, run_with_config};
use crate::probing::wire::HostWire;
use crate::release::path;
use crate::status;

use self::clock::Offset;

/// Time limit of one check of a server. All servers are checked at once.
const SERVER: Duration = Duration::from_secs(1);
/// Maximum number of attachments that a check names.
const SHOWN: usize = 5;
/// Default directory of CNI plugins.
const PLUGINS: &str = "/opt/cni/bin";
/// Default directory of network configurations.
const NETWORKS: &str = "/etc/cni/net.d";
/// Largest network configuration that is read, in bytes.
const NETWORK_BYTES_MAX: u64 = 1 << 20;
/// Header of an answer: the server's time.
const DATE: &str = "date";

/// Flags of the command.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
#[must_use]
pub fn main(arguments: &Arguments) -> ExitCode {
    run_with_config(&arguments.flags, async |config| {
        let report = collect(config).await;
        arguments.output.print(&report, table);
        let has_failed = report.checks.iter().any(|check| check.verdict == Verdict::Failed);
        Ok(if has_failed { exit::FOUND } else { exit::DONE })
    })
}

fn table(report: &DoctorReport) -> String {
    let mut text = String::new();
    for DoctorCheck { name, verdict, detail, help } in &report.checks {
        let verdict = match verdict {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Failed => "FAILED",
        };
        let _ = writeln!(text, "{verdict:<8} {name:<14} {detail}");
        if !help.is_empty() {
            let _ = writeln!(text, "{:<23} {help}", "");
        }
    }
    text
}

/// Returns the report of the running agent, or else a report of this process.
async fn collect(config: &Config) -> DoctorReport {
    let asked = match Client::over_socket(&config.socket) {
        Ok(client) => client.call(Call::get(DOCTOR_PATH).within(4 * SERVER)).await,
        Err(problem) => Err(problem),
    };
    match asked {
        Ok(report) => report,
        Err(problem) => {
            let mut report = report(config, None).await;
            let detail = format!("no agent answers at {}: {}", config.socket.display(), problem.detail);
            report.checks.insert(0, failed("socket", detail, "Start it: systemctl start ipam-agent."));
            report
        }
    }
}

/// Makes the report, with the state of a running agent.
pub async fn report(config: &Config, node: Option<&Node>) -> DoctorReport {
    let mut checks = Vec::new();
    let wire = HostWire::for_jobs();
    if let Some(node) = node {
        checks.push(ok("socket", format!("{} serves the plugin", config.socket.display())));
        checks.push(status(node));
        checks.push(journal(node));
        checks.push(containers(node));
        checks.extend(pods::check(node));
        // Capabilities and permissions are those of the serving process, not of the process that runs the
        // command.
        checks.push(capabilities::check(config.host.as_ref().is_some_and(|host| host.mode.applies())));
        checks.push(probes::permission(config, &wire));
        checks.extend(host::check(config));
    }
    checks.extend(probes::links(config, &wire).await);
    let identity = async {
        match node {
            Some(node) => Some(identity(node).await),
            None => None,
        }
    };
    let (identity, (servers, offsets)) = tokio::join!(identity, servers(config));
    checks.extend(identity);
    checks.extend(servers);
    checks.extend(clock::check(&offsets));
    checks.push(token(config));
    checks.push(plugin(Path::new(PLUGINS)));
    checks.push(networks(Path::new(NETWORKS), config));
    DoctorReport { checks }
}

fn status(node: &Node) -> DoctorCheck {
    match status::status(node) {
        Ok(()) => ok("status", format!("node {} can serve ADD", node.config.node)),
        Err(problem) => failed("status", problem.detail, &problem.help),
    }
}

fn journal(node: &Node) -> DoctorCheck {
    let attachments = node.journal.attachments();
    let waiting = attachments.iter().filter(|entry| entry.is_deleting()).count();
    let missing = attachments.iter().filter(|entry| entry.phase == Phase::Missing).count();
    let detail = format!(
        "{} attachments, {waiting} releases to deliver, {missing} unknown to the cluster",
        attachments.len()
    );
    match (node.journal.is_writable(), waiting + missing) {
        (false, _) => failed("journal", detail, "Free disk space below the state directory."),
        (true, 0) => ok("journal", detail),
        (true, _) => warning("journal", detail, "Releases are delivered once a server answers."),
    }
}

/// Reports attachments that neither the inventory nor a GC can release.
fn containers(node: &Node) -> DoctorCheck {
    let attachments = node.journal.attachments();
    let is_unknown =
        |entry: &&Entry| entry.phase == Phase::Attached && entry.netns.is_none() && entry.runtime.is_empty();
    let unknown: Vec<&Entry> = attachments.iter().filter(is_unknown).collect();
    if unknown.is_empty() {
        return ok("containers", "the containers of all attachments are known".to_owned());
    }
    let shown: Vec<String> = unknown.iter().take(SHOWN).map(|entry| entry.key.to_string()).collect();
    let ids = unknown.iter().take(SHOWN).flat_map(|entry| &entry.allocations);
    let ids: Vec<String> = ids.map(u64::to_string).collect();
    warning(
        "containers",
        format!("{} attachments without a known container: {}", unknown.len(), shown.join(", ")),
        &format!(
            "A DEL, GC or boot releases them. If the container is gone: ipamctl release {}.",
            ids.join("; ")
        ),
    )
}

/// Checks the node's identity with a request that the cluster permits to this node only.
async fn identity(node: &Node) -> DoctorCheck {
    let call = Call::get(path(node, "attachments")).query("limit", "1").within(SERVER);
    match node.cluster.send(call).await {
        Ok(_) => ok("identity", format!("the cluster accepts this agent for node {}", node.config.node)),
        Err(problem) => failed("identity", problem.detail, &problem.help),
    }
}

/// Checks all servers, in their order; returns also the offsets of their clocks.
async fn servers(config: &Config) -> (Vec<DoctorCheck>, Vec<(String, Offset)>) {
    let mut checks = JoinSet::new();
    for (place, server) in config.servers.iter().enumerate() {
        let (server, ca_file) = (server.clone(), config.ca_file.clone());
        checks.spawn(async move { (place, self::server(&server, ca_file.as_deref()).await) });
    }
    let mut checks = checks.join_all().await;
    checks.sort_by_key(|(place, _)| *place);
    let (checks, offsets): (Vec<_>, Vec<_>) = checks.into_iter().map(|(_, check)| check).unzip();
    let offsets = config.servers.iter().zip(offsets);
    (checks, offsets.filter_map(|(server, offset)| Some((server.clone(), offset?))).collect())
}

async fn server(server: &str, ca_file: Option<&Path>) -> (DoctorCheck, Option<Offset>) {
    let name = "server";
    let cluster = Cluster::new(&[server.to_owned()], ca_file, None);
    let (began, before) = (Instant::now(), Timestamp::now());
    let answer = match cluster {
        Ok(cluster) => cluster.send(Call::get("/readyz").within(SERVER)).await,
        Err(problem) => Err(problem),
    };
    match answer {
        Ok(answer) => {
            let leader =
                answer.header(HEADER_LEADER).map(|url| format!(", leader {url}")).unwrap_or_default();
            let date = answer.header(DATE).and_then(Timestamp::from_http_date);
            let offset = date.map(|date| Offset::of(date, before, Timestamp::now()));
            let took_ms = began.elapsed().as_millis().max(1);
            (ok(name, format!("{server} answers within {took_ms} ms{leader}")), offset)
        }
        Err(problem) => (failed(name, format!("{server}: {}", problem.detail), &problem.help), None),
    }
}

fn token(config: &Config) -> DoctorCheck {
    let own = config.state_dir.join(TOKEN);
    let file = config.token_file.clone().or_else(|| config.join_token_file.is_some().then_some(own));
    match file {
        None => warning(
            "token",
            "the agent has no token; the cluster must serve anonymous callers".to_owned(),
            "Join the node: ipamctl token node --node REALM/NODE, and join_token_file.",
        ),
        Some(file) => match std::fs::File::open(&file) {
            Ok(_) => ok("token", file.display().to_string()),
            Err(error) => failed(
                "token",
                format!("{}: {error}", file.display()),
                "Start the agent so that it joins, or correct token_file.",
            ),
        },
    }
}

fn plugin(dir: &Path) -> DoctorCheck {
    let path = dir.join(CNI_TYPE);
    match std::fs::metadata(&path) {
        Ok(file) if file.is_file() => ok("plugin", path.display().to_string()),
        Ok(_) => failed("plugin", format!("{} is no file", path.display()), "Install the plugin there."),
        Err(error) => warning(
            "plugin",
            format!("{}: {error}", path.display()),
            "Install the plugin there, or in the plugin directory that the runtime is configured with.",
        ),
    }
}

/// Looks for network configurations that use the plugin, and the socket that they name.
fn networks(dir: &Path, config: &Config) -> DoctorCheck {
    let help = format!("Write a network configuration with ipam.type \"{CNI_TYPE}\" and ipam.socket.");
    let Ok(entries) = std::fs::read_dir(dir) else {
        return warning("networks", format!("{} can't be read", dir.display()), &help);
    };
    let small = |path: &Path| std::fs::metadata(path).is_ok_and(|file| file.len() <= NETWORK_BYTES_MAX);
    let paths = entries.flatten().map(|entry| entry.path()).filter(|path| small(path));
    let texts = paths.filter_map(|path| Some((path.clone(), std::fs::read_to_string(path).ok()?)));
    let ours: Vec<_> = texts.filter(|(_, text)| text.contains(CNI_TYPE)).collect();
    let without: Vec<String> = ours
        .iter()
        .filter(|(_, text)| !text.contains(&*config.socket.to_string_lossy()))
        .map(|(path, _)| path.display().to_string())
        .collect();
    match (ours.len(), without.as_slice()) {
        (0, _) => {
            warning("networks", format!("no configuration in {} uses {CNI_TYPE}", dir.display()), &help)
        }
        (count, []) => ok("networks", format!("{count} configurations use the agent")),
        (_, without) => warning(
            "networks",
            format!("without the agent's socket: {}", without.join(", ")),
            &format!("Add \"socket\": \"{}\" to their section ipam.", config.socket.display()),
        ),
    }
}

fn ok(name: &str, detail: String) -> DoctorCheck {
    DoctorCheck { name: name.to_owned(), verdict: Verdict::Ok, detail, help: String::new() }
}

fn warning(name: &str, detail: String, help: &str) -> DoctorCheck {
    DoctorCheck { verdict: Verdict::Warning, help: help.to_owned(), ..ok(name, detail) }
}

fn failed(name: &str, detail: String, help: &str) -> DoctorCheck {
    DoctorCheck { verdict: Verdict::Failed, help: help.to_owned(), ..ok(name, detail) }
}
