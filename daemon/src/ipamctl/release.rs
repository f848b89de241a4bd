//! `ipamctl release`: giving an address back.
//!
//! What is released is always an allocation by its id, also when an address was named: if another endpoint
//! gets the address in between, its allocation has another id and nothing happens to it.

use std::net::IpAddr;

use clap::Args;
use ipam_api::address::parse_address;
use ipam_api::client::Call;
use ipam_api::request::Released;
use ipam_api::resource::{Address, Allocation, Lifecycle};

use crate::confirm;
use crate::context::Context;
use crate::endpoint;
use crate::exchange::Again;
use crate::fail::Failure;
use crate::output::text;
use crate::who_has;

/// What to release.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ipamctl release 10.10.0.77
  ipamctl release 48190233
  ipamctl release --endpoint host/db-07
  ipamctl release 10.10.0.77 --yes")]
pub(crate) struct ReleaseArguments {
    /// An address, or the number of an allocation
    #[arg(value_name = "ADDRESS|ALLOCATION", required_unless_present = "endpoint", value_parser = parse_target)]
    target: Option<Target>,
    /// All that this endpoint holds: kind/name, kind/namespace/name or kind/realm/namespace/name
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
    parse_address(text).map(Target::Address).map_err(|problem| {
        format!(
            "{}, and not the number of an allocation either; endpoints go with --endpoint",
            problem.detail
        )
    })
}

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &ReleaseArguments) -> Result<(), Failure> {
    match (&arguments.endpoint, arguments.target) {
        (Some(text), _) => endpoint::delete(context, &context.endpoint_key(text)?).await,
        (None, Some(Target::Allocation(id))) => allocation(context, id).await,
        (None, Some(Target::Address(at))) => address(context, at).await,
        (None, None) => {
            Err(Failure::usage("nothing is named", "Name an address, an allocation or --endpoint."))
        }
    }
}

async fn address(context: &Context, at: IpAddr) -> Result<(), Failure> {
    let answer = context.read(&who_has::path(context, at)).await?;
    let found: Address = answer.read()?;
    match found.allocation {
        Some(allocation) => release(context, &allocation).await,
        None => {
            let nothing = serde_json::json!({"addresses": [], "revision": found.revision}).to_string();
            if !context.data(nothing.as_bytes())? {
                context.say(&format!(
                    "nothing to release: {at} is {} in network {}",
                    found.state, found.network
                ));
            }
            Ok(())
        }
    }
}

/// Releases an allocation by its number.
pub(crate) async fn allocation(context: &Context, id: u64) -> Result<(), Failure> {
    let found: Allocation = context.read(&format!("/v1/allocations/{id}")).await?.read()?;
    release(context, &found).await
}

async fn release(context: &Context, allocation: &Allocation) -> Result<(), Failure> {
    context.check_network(&format!("allocation {}", allocation.id), &allocation.network)?;
    let (id, address, holder) = (allocation.id, allocation.address.addr(), &allocation.endpoint);
    if allocation.lifecycle == Lifecycle::Attached {
        let node = allocation.node.as_ref().map(|node| format!(" on node {node}")).unwrap_or_default();
        let summary = [
            format!("{address} is held by {holder}, attached as {}{node}.", allocation.interface),
            format!(
                "Releasing does not take the address off that {}; it could then be given to another.",
                holder.kind
            ),
        ];
        confirm::moderate(context, &summary, &format!("Release allocation {id} all the same?")).await?;
    }
    let call = Call::delete(format!("/v1/allocations/{id}"));
    let answer = context.write(call, Again::ByKey).await?;
    let released: Released = answer.read()?;
    let sentence = format!(
        "{} of {holder} {}   back again: ipamctl allocate --endpoint {holder} --interface {} --pool {} --address {address}",
        text::joined(&released.addresses),
        context.tense("released"),
        allocation.interface,
        allocation.pool,
    );
    context.done(&answer, &address.to_string(), &sentence)
}
