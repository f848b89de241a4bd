//! `ipamctl renew`: extends leases.

use std::net::IpAddr;
use std::time::Duration;

use clap::{ArgGroup, Args};
use ipam_api::Code;
use ipam_api::client::Call;
use ipam_api::request::{RenewRequest, Renewed, RenewedLease};
use ipam_api::resource::Address;

use crate::client::requests::Again;
use crate::client::scope::Part;
use crate::client::session::Session;
use crate::command::release::{Target, parse_target};
use crate::command::{endpoint, who_has};
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text;

/// Arguments of `renew`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").args(["target", "endpoint"]).required(true)))]
#[command(after_help = "Examples:
  ipamctl renew --endpoint host/lab/tmp-3
  ipamctl renew --endpoint host/lab/tmp-3 --ttl 24h
  ipamctl renew 10.30.0.5
  ipamctl renew 46999000 -o json")]
pub(crate) struct RenewArguments {
    /// Address, or ID of an allocation
    #[arg(value_name = "ADDRESS|ALLOCATION", value_parser = parse_target)]
    target: Option<Target>,
    /// Renew all leases of this endpoint: kind/name, kind/namespace/name or kind/realm/namespace/name
    #[arg(long, conflicts_with = "target")]
    endpoint: Option<String>,
    /// Lease duration from now, such as 8h or 30d [default: the previous duration]
    #[arg(long, value_name = "DURATION", value_parser = text::parse_duration)]
    ttl: Option<Duration>,
}

/// Runs the command.
pub(crate) async fn run(session: &Session, arguments: &RenewArguments) -> Result<(), Failure> {
    let path = match (&arguments.endpoint, arguments.target) {
        (Some(text), _) => {
            session.without("endpoints", &[Part::Network])?;
            format!("{}/renew", endpoint::path(&session.endpoint_key(text)?))
        }
        (None, Some(Target::Allocation(id))) => of_allocation(id),
        (None, Some(Target::Address(at))) => of_address(session, at).await?,
        (None, None) => {
            return Err(Failure::usage(
                "no address, allocation or endpoint given",
                "Give an address, an allocation ID or --endpoint.",
            ));
        }
    };
    let request = RenewRequest { ttl_ms: arguments.ttl.map(text::milliseconds) };
    // A renewal is idempotent.
    let call = Call::post(path).json(&request)?.repeatable();
    let answer = session.write(call, Again::Same("run the same command again".to_owned())).await?;
    let renewed: Renewed = answer.read()?;
    let names: Vec<String> = renewed.leases.iter().map(|one| one.address.to_string()).collect();
    session.show(&answer.body, &names.join("\n"), || Ok(shown(&renewed)))?;
    if session.writing.dry_run {
        session.tell("a dry run: nothing was renewed");
    }
    Ok(())
}

fn of_allocation(id: u64) -> String {
    format!("/v1/allocations/{id}/renew")
}

async fn of_address(session: &Session, at: IpAddr) -> Result<String, Failure> {
    let found: Address = session.read(&who_has::path(session, at)).await?.read()?;
    match found.allocation {
        Some(allocation) => Ok(of_allocation(allocation.id)),
        None => {
            let detail = format!("{at} is {} in network {}, and not leased", found.state, found.network);
            Err(ipam_api::Problem::new(Code::NotLeased, detail)
                .help("The lease has expired. Allocate again: ipamctl allocate")
                .into())
        }
    }
}

/// One line for each lease, without titles: the values explain themselves.
fn shown(renewed: &Renewed) -> String {
    let line = |one: &RenewedLease| {
        [
            one.address.to_string(),
            format!("until {} ({})", text::moment(one.lease.ends_at), text::roughly(one.lease.ttl_ms)),
            format!("allocation {}", one.allocation),
        ]
    };
    let leases = Table::untitled(renewed.leases.iter().map(line)).render(false, None);
    text::and_more(renewed.more).map(|more| format!("{}\n{more}", leases.trim_end())).unwrap_or(leases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_beyond_those_listed_are_counted() {
        let lease = serde_json::json!({
            "allocation": 7,
            "address": "10.1.0.9",
            "lease": {"ttl_ms": 60_000, "ends_at": "2026-11-20T00:00:00.000Z"},
        });
        let lines = |more: u64| {
            let body = serde_json::json!({"leases": [lease], "more": more, "revision": 9});
            shown(&serde_json::from_value(body).unwrap()).trim_end().to_owned()
        };
        assert_eq!(lines(1234), format!("{}\nand 1234 more", lines(0)));
    }
}
