//! Output for a person who runs the plugin by hand.

use std::fmt::Write as _;
use std::process::ExitCode;

use ipam_api::brand::{AGENT_SOCKET, CNI_DEADLINE_ENV, CNI_TYPE, SERVERS_ENV};
use ipam_api::limits::CNI_DEADLINE_MS;
use ipam_api::strict::nearest;
use serde_json::{Map, Value};

use crate::ask::clients;
use crate::config::{IPV4_POOLS, IPV6_POOLS, NODE, Network, REALM, RUNTIME, SERVERS, SOCKET, TOKEN_FILE};
use crate::fail::Failure;
use crate::install;
use crate::json;
use crate::version::CniVersion;

/// Exit code of a usage error.
const USAGE: u8 = 2;

/// Answers one invocation without `CNI_COMMAND`.
#[must_use]
pub fn answer(arguments: &[String], environment: &dyn Fn(&str) -> Option<String>) -> ExitCode {
    let mut words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [word] = words.as_slice()
        && let Some(path) = word.strip_prefix("--check-config=")
    {
        words = vec!["--check-config", path];
    }
    match words.as_slice() {
        [] => {
            crate::warn(&about());
            ExitCode::SUCCESS
        }
        ["--version" | "-V"] => print(&format!("{CNI_TYPE} {}\n", env!("CARGO_PKG_VERSION"))),
        ["--help" | "-h"] => print(&help()),
        [command @ ("install" | "uninstall" | "ready"), flags @ ..] => install::answer(command, flags),
        ["--check-config", path] => match check_file(path, &environment(SERVERS_ENV).unwrap_or_default()) {
            Ok(report) => print(&report),
            Err(failure) => {
                crate::warn(&format!("{path}: {failure}"));
                ExitCode::FAILURE
            }
        },
        _ => {
            crate::warn(&format!("{:?} is not understood; see {CNI_TYPE} --help", words.join(" ")));
            ExitCode::from(USAGE)
        }
    }
}

fn print(text: &str) -> ExitCode {
    if crate::write_all(text.as_bytes()).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn about() -> String {
    let versions: Vec<&str> = CniVersion::ALL.iter().map(|version| version.as_str()).collect();
    format!(
        "the CNI address plugin of ipamd, version {}; a container runtime runs it (see --help)\n\
         CNI protocol versions supported: {}",
        env!("CARGO_PKG_VERSION"),
        versions.join(", ")
    )
}

fn help() -> String {
    format!(
        r#"{CNI_TYPE}: {about}

Usage:
  {CNI_TYPE} --check-config FILE    check a network configuration (.conf or .conflist)
{commands}  {CNI_TYPE} --version | --help

Examples:
  {CNI_TYPE} --check-config /etc/cni/net.d/10-lan.conflist
  {CNI_TYPE} install --dir /opt/cni/bin
  {CNI_TYPE} uninstall --dir /opt/cni/bin --agent {AGENT_SOCKET}

A runtime runs it with CNI_COMMAND and its companions in the environment and the network
configuration on standard input. The section "ipam" of the configuration:
  type         "{CNI_TYPE}"
  {SERVERS}      the servers by IP address, for example ["http://127.0.0.1:7440"]; else {SERVERS_ENV}
  {TOKEN_FILE}   the file with the token that the servers are shown
  {SOCKET}       the socket of the node's agent, which is asked first
  {REALM}        the system that names come from; else "default"
  {NODE}         the node's name; else the host's name
  {RUNTIME}      the runtime's name, for GC; else that of the process that runs the main plugin
  ipv4_pools   pools to take the IPv4 address from, in this order, unless the container's
               request or its namespace names others
  ipv6_pools   pools to take the IPv6 address from, in the same way
Spiderpool's default_ipv4_ippool, defaultv4ippool, default_ipv6_ippool and defaultv6ippool
mean the same as the last two; names may have wildcards. What else is there is ignored.
A container's own request is in the section "args", "cni": subnets, ipv4_pools, ipv6_pools, ips, labels.

Environment of its own:
  {SERVERS_ENV}          the servers, separated by commas
  {CNI_DEADLINE_ENV}  milliseconds that one operation may take; else {CNI_DEADLINE_MS}
"#,
        about = about(),
        commands = install::HELP,
    )
}

/// Checks a file with a network configuration, and reports what the plugin would do with it.
///
/// # Errors
/// The mistake.
pub(crate) fn check_file(path: &str, servers: &str) -> Result<String, Failure> {
    let file = std::fs::File::open(path)
        .map_err(|error| Failure::new(crate::fail::IO, "the file can't be read", error.to_string()))?;
    let document = json::parse(&crate::read_bounded(file)?)?;
    let mut report = String::new();
    for part in parts(document)? {
        let version = CniVersion::of(&part)?;
        check(&Network::new(part, version)?, servers, &mut report)?;
    }
    Ok(report)
}

/// Network configurations in a file: the file itself, or the plugins of its list that use `ipam-cni`. Each
/// gets the list's name and version, as from a runtime.
fn parts(document: Map<String, Value>) -> Result<Vec<Map<String, Value>>, Failure> {
    let Some(Value::Array(plugins)) = document.get("plugins") else { return Ok(vec![document]) };
    let takes_from_here = |plugin: &Map<String, Value>| {
        plugin.get("ipam").and_then(|ipam| ipam.get("type")).and_then(Value::as_str) == Some(CNI_TYPE)
    };
    let mut parts = Vec::new();
    for plugin in plugins.iter().filter_map(Value::as_object).filter(|plugin| takes_from_here(plugin)) {
        let mut part = plugin.clone();
        for key in ["name", "cniVersion"] {
            if let Some(value) = document.get(key) {
                part.insert(key.to_owned(), value.clone());
            }
        }
        parts.push(part);
    }
    if parts.is_empty() {
        return Err(Failure::configuration(format!("none of its plugins has ipam.type \"{CNI_TYPE}\"")));
    }
    Ok(parts)
}

fn check(network: &Network, servers: &str, report: &mut String) -> Result<(), Failure> {
    let ipam = network.ipam()?;
    let home = network.home()?;
    let reach = network.reach(servers)?;
    clients(&reach)?;
    network.runtime()?;
    let pools: Vec<String> = [network.pools(IPV4_POOLS)?, network.pools(IPV6_POOLS)?]
        .iter()
        .flatten()
        .map(ToString::to_string)
        .collect();
    network.addresses()?;
    network.mac()?;
    network.dns()?;
    let mut asked: Vec<String> = reach.socket.iter().map(|path| path.display().to_string()).collect();
    asked.extend(reach.servers);
    let _ = writeln!(report, "network {}, CNI {}", network.name, network.version);
    let _ = writeln!(report, "  realm {}, node {}", home.realm, home.node);
    let _ = writeln!(report, "  asks  {}", asked.join(", "));
    let from =
        if pools.is_empty() { "whatever the namespace or the defaults name" } else { &pools.join(", ") };
    let _ = writeln!(report, "  pools {from}");
    let known: Vec<&str> = ["type", REALM, NODE, SERVERS, TOKEN_FILE, SOCKET, RUNTIME]
        .into_iter()
        .chain(IPV4_POOLS)
        .chain(IPV6_POOLS)
        .collect();
    for key in ipam.keys().filter(|key| !known.contains(key)) {
        let meant = nearest(key, known.iter().copied());
        let hint = meant.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
        let _ = writeln!(report, "  {} is not known and ignored{hint}", ipam.path(key));
    }
    Ok(())
}
