//! `ipamctl host-policy`: templates of the network configuration of hosts.

use clap::{Args, Subcommand};
use ipam_api::client::Call;
use ipam_api::host_policy::{
    HostPolicy, HostPolicyReset, RenderHostPolicy, RenderedHostPolicy, ResetHostPolicy,
};
use ipam_api::time::Timestamp;
use ipam_api::{Code, Name, ObjectName, Problem};

use crate::client::requests::Again;
use crate::client::resource_type::Read;
use crate::client::scope::Part;
use crate::client::session::Session;
use crate::client::{confirm, resource};
use crate::command::apply::{self, ApplyArguments, CreateArguments};
use crate::command::arguments::Named;
use crate::command::watch::{self, WatchArguments, Watched};
use crate::output::data::Data;
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::{text, yaml};

pub(crate) const EXAMPLES: &str = "Examples:
  ipamctl host-policy list
  ipamctl host-policy create -f static-ip.yaml
  ipamctl host-policy render static-ip --node worker-3";

/// Verbs of host policies.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List host policies, optionally of one --realm
    #[command(
        alias = "ls",
        after_help = "Examples:
  ipamctl host-policy list
  ipamctl host-policy list -o json"
    )]
    List,
    /// Show a host policy
    #[command(
        alias = "describe",
        after_help = "Examples:
  ipamctl host-policy show static-ip
  ipamctl host-policy show static-ip -o yaml"
    )]
    Show(Named),
    /// Follow changes of host policies until Ctrl-C
    #[command(after_help = "Examples:
  ipamctl host-policy watch
  ipamctl host-policy watch static-ip -o json")]
    Watch(WatchArguments),
    /// Create host policies from files
    #[command(
        after_help = "A file is a document of `kind: host-policy`, or a NodeNetworkConfigurationPolicy.

  kind: host-policy
  name: static-ip
  interfaces:
  - {name: eth1, ipv4_pools: [traffic-1]}
  capture: {a: ippool.traffic-1.allocate}
  desired_state:
    interfaces:
    - name: eth1
      ipv4:
        enabled: true
        address:
        - {ip: \"{{ capture.a.ip }}\", prefix-length: \"{{ capture.a.prefix-length }}\"}

Examples:
  ipamctl host-policy create -f static-ip.yaml"
    )]
    Create(CreateArguments),
    /// Apply host policies and other resources from files in one transaction
    #[command(after_help = "Examples:
  ipamctl host-policy apply -f static-ip.yaml")]
    Apply(ApplyArguments),
    /// Delete a host policy; its hosts keep their addresses unless --release is given
    #[command(
        alias = "rm",
        after_help = "Examples:
  ipamctl host-policy delete static-ip
  ipamctl host-policy delete static-ip --release --yes"
    )]
    Delete(DeleteArguments),
    /// Allocate the addresses of a node, and print its desired state
    #[command(after_help = "Examples:
  ipamctl host-policy render static-ip --node worker-3
  ipamctl host-policy render static-ip --node worker-3 -o json --dry-run")]
    Render(RenderArguments),
    /// Release the addresses of one node or of all nodes
    #[command(after_help = "Examples:
  ipamctl host-policy reset static-ip --node worker-3
  ipamctl host-policy reset static-ip --yes")]
    Reset(ResetArguments),
}

/// Arguments of `delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteArguments {
    /// Name
    name: Name,
    /// Release the addresses of its hosts first
    #[arg(long)]
    release: bool,
}

/// Arguments of `render`.
#[derive(Debug, Args)]
pub(crate) struct RenderArguments {
    /// Name
    name: Name,
    /// Node, in the realm of the policy
    #[arg(long, value_name = "NODE")]
    node: ObjectName,
}

/// Arguments of `reset`.
#[derive(Debug, Args)]
pub(crate) struct ResetArguments {
    /// Name
    name: Name,
    /// Node that loses its addresses; all by default
    #[arg(long, value_name = "NODE")]
    node: Option<ObjectName>,
}

/// Runs a verb.
pub(crate) async fn run(session: &Session, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Watch(arguments) => watch::run(session, Watched::Named("host-policy"), &arguments).await,
        Verb::List => {
            let filters = session.narrowed("host policies", &[Part::Realm])?;
            let keep = |found: &Read<HostPolicy>| session.said.fits_realm(&found.spec.realm);
            resource::show_list(session, filters, keep, table).await
        }
        Verb::Show(Named { name }) => resource::show(session, &name, shown).await,
        Verb::Create(arguments) => apply::create(session, &arguments).await,
        Verb::Apply(arguments) => apply::run(session, &arguments).await,
        Verb::Delete(DeleteArguments { name, release }) => {
            if release {
                reset(session, ResetArguments { name: name.clone(), node: None }).await?;
            }
            resource::delete::<HostPolicy>(session, &name, false).await
        }
        Verb::Render(arguments) => render(session, arguments).await,
        Verb::Reset(arguments) => reset(session, arguments).await,
    }
}

async fn render(session: &Session, arguments: RenderArguments) -> Result<(), Failure> {
    let RenderArguments { name, node } = arguments;
    let call = Call::post(format!("/v1/host-policies/{name}/render"));
    let call = call.json(&RenderHostPolicy { node: node.clone() })?;
    let again = Again::Same("run the same command again; it gets the same addresses".to_owned());
    let answer = session.write(call, again).await?;
    let rendered: RenderedHostPolicy = answer.read()?;
    session.show(&answer.body, node.as_str(), || {
        let json = rendered.desired_state.to_string();
        let state = Data::of(json.as_bytes()).map_err(|error| unreadable(&error.to_string()))?;
        yaml::text(&state).map_err(|error| unreadable(&error))
    })
}

fn unreadable(error: &str) -> Failure {
    Problem::new(Code::Internal, format!("the desired state can't be shown: {error}")).into()
}

async fn reset(session: &Session, arguments: ResetArguments) -> Result<(), Failure> {
    let ResetArguments { name, node } = arguments;
    let (policy, _) = resource::fetch::<HostPolicy>(session, &name).await?;
    let hosts = match &node {
        Some(node) => format!("node {node}"),
        None => text::plural(policy.status.holding, "host", "hosts"),
    };
    let summary = [format!("{hosts} of host policy {name} will lose the addresses of the policy")];
    confirm::moderate(session, &summary, "Release them?").await?;
    let path = format!("/v1/host-policies/{name}/reset");
    let mut released = 0;
    loop {
        let call = Call::post(path.clone()).json(&ResetHostPolicy { node: node.clone() })?;
        let answer = session.write(call, Again::ByKey).await;
        let answer = resource::suggest(session, answer, "host-policies", name.as_str()).await?;
        let done: HostPolicyReset = answer.read()?;
        released += done.addresses.len() as u64;
        if done.more == 0 || session.writing.dry_run {
            let addresses = text::plural(released, "address", "addresses");
            let more = match done.more {
                0 => String::new(),
                more => format!("; {} more", text::plural(more, "host", "hosts")),
            };
            let sentence = format!("host policy {name}: {addresses} {}{more}", session.tense("released"));
            return session.done(&answer, name.as_str(), &sentence);
        }
    }
}

fn table(policies: &[Read<HostPolicy>], _wide: bool, _now: Timestamp) -> Table {
    Table::of(policies)
        .text("NAME", |found| &found.spec.name)
        .spare("REALM", 1, |found| &found.spec.realm)
        .text("SELECTOR", |found| text::dash(&found.spec.node_selector.to_string()))
        .number("NODES", |found| text::count(found.status.nodes))
        .number("HOLDING", |found| text::count(found.status.holding))
        .spare("INTERFACES", 2, |found| text::joined(found.spec.interfaces.iter().map(|one| &one.name)))
        .spare("LABELS", 4, |found| text::labels(&found.spec.labels))
        .spare("DESCRIPTION", 3, |found| text::dash(&found.spec.description))
        .table()
}

fn shown(policy: &Read<HostPolicy>) -> String {
    let (spec, status) = (&policy.spec, &policy.status);
    let mut fields = resource::heading(policy, None);
    fields.line("realm", spec.realm.to_string());
    fields.line_if("nodes with", &spec.node_selector.to_string());
    for interface in &spec.interfaces {
        let pools = text::joined(interface.ipv4_pools.iter().chain(&interface.ipv6_pools));
        fields.line("interface", format!("{}   pools {pools}", interface.name));
    }
    for (name, expression) in &spec.capture {
        fields.line("capture", format!("{name}   {expression}"));
    }
    fields.line("roll-out", format!("{} at a time", spec.max_unavailable));
    let nodes = text::plural(status.nodes, "node matches", "nodes match");
    fields.line(
        "nodes",
        format!("{nodes}; {} addresses", text::plural(status.holding, "host holds", "hosts hold")),
    );
    resource::metadata_lines(&mut fields, policy);
    fields.text()
}
