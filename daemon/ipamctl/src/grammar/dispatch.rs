//! Dispatch of commands to their implementations.

use std::io::Write;

use super::arguments::{Arguments, Command};
use super::{completion, manual};
use crate::client::session::Session;
use crate::command::{
    allocate, allocation, apply, cluster, context, endpoint, events, explain, fsck, gc, host_policy,
    kubernetes, namespace, network, node, pool, prefix, quarantine, release, renew, reservation, status,
    subnet, support, task, token, version, who_has,
};
use crate::output::error::Failure;
use crate::output::format::Format;
use crate::settings::connection::Settings;
use crate::settings::environment::Environment;
use crate::settings::flags::ConnectionArguments;

/// Executes a command; `output` receives the data.
pub(crate) async fn carry_out(
    arguments: Arguments,
    environment: &Environment,
    output: Box<dyn Write>,
) -> Result<(), Failure> {
    let global = &arguments.global;
    // This precedes all requests: a write with an unsupported output format must change nothing.
    if let Format::Host(format) = &global.output.format
        && !matches!(arguments.command, Command::Endpoint(endpoint::Verb::Show(_)))
    {
        let help = format!("Use it with: ipamctl endpoint show KIND/NAME -o {format}");
        return Err(Failure::usage(format!("{format} is a format of `endpoint show` only"), &help));
    }
    let settings = if arguments.command.is_offline() {
        // The command must work even if the connection settings are invalid.
        Settings::resolve(&ConnectionArguments::default(), &Environment::default())?
    } else {
        Settings::resolve(&global.connection, environment)?
    };
    let session = &Session::new(global, settings, environment, output)?;
    match arguments.command {
        Command::Status(arguments) => status::run(session, &arguments).await,
        Command::WhoHas(arguments) => who_has::run(session, &arguments).await,
        Command::Events(arguments) => events::run(session, &arguments).await,
        Command::Allocate(arguments) => allocate::run(session, &arguments).await,
        Command::Release(arguments) => release::run(session, &arguments).await,
        Command::Renew(arguments) => renew::run(session, &arguments).await,
        Command::Gc(arguments) => gc::run(session, &arguments).await,
        Command::Fsck(arguments) => fsck::run(session, &arguments).await,
        Command::Apply(arguments) => apply::run(session, &arguments).await,
        Command::Explain(arguments) => explain::run(session, &arguments).await,
        Command::Diff(arguments) => apply::diff(session, &arguments).await,
        Command::Version => version::run(session).await,
        Command::Context(verb) => context::run(session, verb, &global.connection, environment),
        Command::Completion(arguments) => completion::run(session, &arguments),
        Command::Man { folder } => manual::run(session, &folder),
        Command::Kubernetes(verb) => kubernetes::run(session, verb).await,
        Command::Cluster(verb) => cluster::run(session, verb).await,
        Command::Network(verb) => network::run(session, verb).await,
        Command::Subnet(verb) => subnet::run(session, verb).await,
        Command::Pool(verb) => pool::run(session, verb).await,
        Command::Reservation(verb) => reservation::run(session, verb).await,
        Command::HostPolicy(verb) => host_policy::run(session, verb).await,
        Command::Node(verb) => node::run(session, verb).await,
        Command::Quarantine(verb) => quarantine::run(session, verb).await,
        Command::Task(verb) => task::run(session, verb).await,
        Command::Namespace(verb) => namespace::run(session, verb).await,
        Command::Endpoint(verb) => endpoint::run(session, verb).await,
        Command::Support(verb) => support::run(session, verb).await,
        Command::Token(verb) => token::run(session, verb).await,
        Command::Allocation(verb) => allocation::run(session, verb).await,
        Command::Prefix(verb) => prefix::run(session, verb).await,
    }
}
