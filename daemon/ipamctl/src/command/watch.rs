//! `ipamctl NOUN watch`: events of all resources of a kind, or of one resource, as they happen.

use clap::Args;
use ipam_api::Name;
use ipam_api::event::Event;

use crate::client::requests::with_all;
use crate::client::session::Session;
use crate::command::events::{self, Followed};
use crate::output::error::Failure;

/// Arguments of `watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchArguments {
    /// Name; all by default
    name: Option<String>,
    /// Start after this position: a revision, or REVISION.NUMBER of an event
    #[arg(long, value_name = "PLACE")]
    after: Option<String>,
}

/// Watched kind, as events name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watched {
    /// Resource with a name, whose events have its kind.
    Named(&'static str),
    /// Pool, with its addresses.
    Pool,
    /// Endpoint, which exists as long as it holds addresses.
    Endpoint,
    /// Single allocation.
    Allocation,
}

impl Watched {
    fn word(self) -> &'static str {
        match self {
            Self::Named(word) => word,
            Self::Pool => "pool",
            Self::Endpoint => "endpoint",
            Self::Allocation => "allocation",
        }
    }
}

/// Prints events as they happen, until Ctrl-C.
pub(crate) async fn run(
    session: &Session,
    resource_type: Watched,
    arguments: &WatchArguments,
) -> Result<(), Failure> {
    let name = arguments.name.as_deref().map(|name| named(session, resource_type, name)).transpose()?;
    let path = path(session, resource_type, name.as_deref());
    let again = [Some("ipamctl"), Some(resource_type.word()), Some("watch"), arguments.name.as_deref()];
    let again: Vec<&str> = again.into_iter().flatten().collect();
    let followed = Followed { path, after: arguments.after.clone(), again: again.join(" ") };
    events::follow(session, followed, |event| wanted(resource_type, name.as_deref(), event)).await
}

/// Path of the events, with the narrowest filter of the API.
fn path(session: &Session, resource_type: Watched, name: Option<&str>) -> String {
    let (filter, value) = match (resource_type, name) {
        (Watched::Pool, Some(name)) => ("pool", name),
        (Watched::Endpoint, Some(name)) => ("endpoint", name),
        (Watched::Endpoint | Watched::Allocation, _) => ("kind", "address"),
        (Watched::Pool | Watched::Named(_), _) => ("kind", resource_type.word()),
    };
    // Only events of addresses have a network.
    let has_network = matches!(resource_type, Watched::Endpoint | Watched::Allocation);
    let network = session.settings.network.as_ref().filter(|_| has_network).map(ToString::to_string);
    with_all("/v1/events", [(filter, Some(value.to_owned())), ("network", network)])
}

/// Normalizes a name for comparison with events. An invalid name is refused, because it would never match.
fn named(session: &Session, resource_type: Watched, name: &str) -> Result<String, Failure> {
    match resource_type {
        Watched::Endpoint => Ok(session.endpoint_key(name)?.to_string()),
        Watched::Named("node" | "namespace") => Ok(session.in_realm(name)?.to_string()),
        Watched::Pool | Watched::Named(_) => Ok(Name::new(name)?.to_string()),
        Watched::Allocation => name.parse::<u64>().map(|id| id.to_string()).map_err(|_| {
            let name = ipam_api::name::shown(name);
            let help = "List the IDs: ipamctl allocation list";
            Failure::usage(format!("{name} is not an allocation ID"), help)
        }),
    }
}

/// True if an event of that path concerns the watched resource.
fn wanted(resource_type: Watched, name: Option<&str>, event: &Event) -> bool {
    match (resource_type, name) {
        (Watched::Named(_), Some(name)) => event.object == name,
        (Watched::Allocation, Some(name)) => event.allocation.is_some_and(|id| id.to_string() == name),
        _ => true,
    }
}
