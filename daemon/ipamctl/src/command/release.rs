//! `ipamctl release`: releases addresses.
//!
//! A release names the allocation by its id, even if the user specified an address. If another endpoint gets
//! the address meanwhile, its allocation has another id and is unaffected.

use std::net::IpAddr;

use clap::{ArgGroup, Args};
use ipam_api::address::parse_address;
use ipam_api::client::Call;
use ipam_api::request::{Allocated, Released};
use ipam_api::resource::{Address, Allocation, EndpointKey, Lifecycle};
use ipam_api::{Family, Name, ObjectName};

use crate::client::confirm;
use crate::client::requests::Again;
use crate::client::session::Session;
use crate::command::{endpoint, who_has};
use crate::output::error::Failure;
use crate::output::text;

/// Arguments of `release`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").args(["target", "endpoint"]).required(true)))]
#[command(after_help = "Examples:
  ipamctl release 10.10.0.77
  ipamctl release 48190233
  ipamctl release --endpoint host/db-07
  ipamctl release 10.10.0.77 --yes")]
pub(crate) struct ReleaseArguments {
    /// Address, or ID of an allocation
    #[arg(value_name = "ADDRESS|ALLOCATION", value_parser = parse_target)]
    target: Option<Target>,
    /// Release all addresses of this endpoint: kind/name, kind/namespace/name or kind/realm/namespace/name
    #[arg(long, conflicts_with = "target")]
    endpoint: Option<String>,
}

/// One address or one allocation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    Address(IpAddr),
    Allocation(u64),
}

/// Reads an address or the number of an allocation.
pub(crate) fn parse_target(text: &str) -> Result<Target, String> {
    if let Ok(id) = text.parse() {
        return Ok(Target::Allocation(id));
    }
    parse_address(text)
        .map(Target::Address)
        .map_err(|problem| format!("{}, nor an allocation ID; for endpoints use --endpoint", problem.detail))
}

/// Runs the command.
pub(crate) async fn run(session: &Session, arguments: &ReleaseArguments) -> Result<(), Failure> {
    match (&arguments.endpoint, arguments.target) {
        (Some(text), _) => endpoint::delete(session, &session.endpoint_key(text)?).await,
        (None, Some(Target::Allocation(id))) => allocation(session, id).await,
        (None, Some(Target::Address(at))) => address(session, at).await,
        (None, None) => Err(Failure::usage(
            "no address, allocation or endpoint given",
            "Give an address, an allocation ID or --endpoint.",
        )),
    }
}

async fn address(session: &Session, at: IpAddr) -> Result<(), Failure> {
    let answer = session.read(&who_has::path(session, at)).await?;
    let found: Address = answer.read()?;
    match found.allocation {
        Some(allocation) => release(session, &allocation).await,
        None => {
            let nothing = serde_json::json!({"addresses": [], "revision": found.revision}).to_string();
            if !session.data(nothing.as_bytes())? {
                session.say(&format!(
                    "nothing to release: {at} is {} in network {}",
                    found.state, found.network
                ));
            }
            Ok(())
        }
    }
}

/// Releases an allocation by its number.
pub(crate) async fn allocation(session: &Session, id: u64) -> Result<(), Failure> {
    let found: Allocation = session.read(&format!("/v1/allocations/{id}")).await?.read()?;
    release(session, &found).await
}

async fn release(session: &Session, allocation: &Allocation) -> Result<(), Failure> {
    session.check_network(&format!("allocation {}", allocation.id), &allocation.network)?;
    let (id, address, holder) = (allocation.id, allocation.address.addr(), &allocation.endpoint);
    if allocation.lifecycle == Lifecycle::Attached {
        let node = allocation.node.as_ref().map(|node| format!(" on node {node}")).unwrap_or_default();
        let summary = [
            format!("{address} is held by {holder}, attached as {}{node}.", allocation.interface),
            format!(
                "Releasing does not remove the address from that {}; it may then be allocated twice.",
                holder.kind
            ),
        ];
        confirm::moderate(session, &summary, &format!("Release allocation {id} anyway?")).await?;
    }
    let call = Call::delete(format!("/v1/allocations/{id}"));
    let answer = session.write(call, Again::ByKey).await?;
    let released: Released = answer.read()?;
    let sentence = format!("{} of {holder} {}", text::released(&released), session.tense("released"));
    let wanted = session.format.is_for_people() && !session.writing.dry_run;
    let again = if wanted { back_again(session, allocation).await } else { None };
    let again = again.map(|command| format!("   back again: {command}")).unwrap_or_default();
    session.done(&answer, &address.to_string(), &(sentence + &again))
}

/// Command that undoes a release, if there is one. A dry run tests the command first, because other addresses
/// of the interface or the selectors of the pool may prevent the allocation.
async fn back_again(session: &Session, allocation: &Allocation) -> Option<String> {
    // The next ADD of the attachment allocates an attached address again.
    if allocation.lifecycle == Lifecycle::Attached {
        return None;
    }
    for adopt in [false, true] {
        let address = allocation.address.addr();
        let call = Call::post("/v1/allocations").json(&allocate_request(allocation, adopt)).ok()?;
        let Ok(answer) = session.preview(call).await else { continue };
        let Ok(allocated) = answer.read::<Allocated>() else { continue };
        let mut given = allocated.interfaces.iter().flat_map(|interface| &interface.addresses);
        if given.any(|given| given.address.addr() == address) {
            return Some(typed(session, allocation, adopt));
        }
    }
    None
}

/// The request that the command sends.
fn allocate_request(allocation: &Allocation, adopt: bool) -> serde_json::Value {
    let pools = match Family::of(allocation.address.addr()) {
        Family::V4 => "ipv4_pools",
        Family::V6 => "ipv6_pools",
    };
    let mut allocate_request = serde_json::json!({
        "endpoint": allocation.endpoint,
        "interfaces": [{"name": allocation.interface, pools: [allocation.pool],
                        "addresses": [allocation.address.addr()]}],
    });
    if let Some(fields) = allocate_request.as_object_mut() {
        fields.extend(adopt.then(|| ("adopt".to_owned(), true.into())));
        fields.extend(allocation.node.as_ref().map(|node| ("node".to_owned(), node.to_string().into())));
        let ttl_ms = allocation.lease.as_ref().map(|lease| lease.ttl_ms);
        fields.extend(ttl_ms.map(|ttl_ms| ("ttl_ms".to_owned(), ttl_ms.into())));
    }
    allocate_request
}

/// Formats the command. The endpoint's name is complete if the context has other defaults.
fn typed(session: &Session, allocation: &Allocation, adopt: bool) -> String {
    let EndpointKey { kind, realm, namespace, name } = &allocation.endpoint;
    let (own_realm, own_namespace) = session.home();
    let holder = if own_realm == Name::default_name() && own_namespace == ObjectName::default_name() {
        allocation.endpoint.to_string()
    } else {
        format!("{kind}/{realm}/{namespace}/{name}")
    };
    let mut command = format!(
        "ipamctl allocate --endpoint {holder} --interface {} --pool {} --address {}",
        allocation.interface,
        allocation.pool,
        allocation.address.addr()
    );
    if let Some(node) = &allocation.node {
        command.push_str(&format!(" --node {node}"));
    }
    if let Some(lease) = &allocation.lease {
        command.push_str(&format!(" --ttl {}", text::duration(lease.ttl_ms)));
    }
    if adopt {
        command.push_str(" --adopt");
    }
    command
}
