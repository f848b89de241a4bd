//! `ipamctl who-has`: any address, and who holds it or why nobody does.

use std::net::IpAddr;

use clap::Args;
use ipam_api::address::parse_address;
use ipam_api::client::with_query;
use ipam_api::resource::{Address, Allocation};
use ipam_api::time::Timestamp;

use crate::context::Context;
use crate::fail::Failure;
use crate::output::format::Format;
use crate::output::text::{self, Fields};

/// Which address.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ipamctl who-has 10.10.0.77
  ipamctl who-has 2001:db8:1::4e --network lab
  ipamctl who-has 10.10.0.77 -o json")]
pub(crate) struct WhoHasArguments {
    /// The address, in any of its forms
    #[arg(value_parser = parse_address)]
    address: IpAddr,
}

/// Where an address is asked for.
pub(crate) fn path(context: &Context, address: IpAddr) -> String {
    let path = format!("/v1/addresses/{address}");
    match &context.network {
        Some(network) => with_query(&path, "network", network.as_str()),
        None => path,
    }
}

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &WhoHasArguments) -> Result<(), Failure> {
    let answer = context.read(&path(context, arguments.address)).await?;
    if context.data(&answer.body)? {
        return Ok(());
    }
    let address: Address = answer.read()?;
    if matches!(context.format, Format::Name) {
        return match &address.allocation {
            Some(allocation) => context.print(&allocation.endpoint.to_string()),
            None => Ok(()),
        };
    }
    context.print(&shown(&address, context.now(), context.width))
}

/// The text, in lines that fit.
fn shown(address: &Address, now: Timestamp, width: Option<usize>) -> String {
    let mut fields = Fields::default();
    let mut places = vec![format!("network {}", address.network)];
    places.extend(address.subnet.as_ref().map(|subnet| format!("subnet {subnet}")));
    places.extend(address.pool.as_ref().map(|pool| format!("pool {pool}")));
    let state = if address.state == "unmanaged" { "in no pool" } else { &address.state };
    fields.line(&address.address.to_string(), format!("{state:<12} {}", places.join(" · ")));
    if let Some(allocation) = &address.allocation {
        held(&mut fields, allocation, now, width);
    }
    if let Some(reservation) = &address.reservation {
        fields.line("reservation", format!("{reservation}   ipamctl reservation show {reservation}"));
    }
    if let Some(left) = address.cooling_ms {
        fields.line("cooling", format!("for {} more; then it is free again", text::roughly(left)));
    }
    match address.state.as_str() {
        "excluded" => {
            fields.line("excluded", "gateway, first or last address of the subnet, or excluded by the pool")
        }
        "quarantined" => fields.line("quarantined", "seen in use on the wire by a stranger"),
        "unmanaged" if address.subnet.is_none() => {
            fields.line("", "no subnet has it; nothing is known about it")
        }
        "unmanaged" => fields.line("", "between the subnet's pools; no pool gives it out"),
        _ => {}
    }
    fields.text()
}

fn held(fields: &mut Fields, allocation: &Allocation, now: Timestamp, width: Option<usize>) {
    let mut facts = vec![format!("{}   interface {}", allocation.endpoint, allocation.interface)];
    facts.extend(allocation.node.as_ref().map(|node| format!("node {node}")));
    facts.push(format!("allocation {}", allocation.id));
    facts.push(allocation.lifecycle.to_string());
    facts.push(format!(
        "since {} ({})",
        text::moment(allocation.created_at),
        text::age(allocation.created_at, now)
    ));
    if !allocation.created_by.is_empty() {
        facts.push(format!("by {}", allocation.created_by));
    }
    // The holder has the first line; the rest fills lines of the terminal's width.
    let width = width.unwrap_or(120).saturating_sub(13).max(20);
    let mut label = "holder";
    let mut line = String::new();
    for (index, fact) in facts.iter().enumerate() {
        let fits = line.chars().count() + 3 + fact.chars().count() <= width;
        if !line.is_empty() && (index == 1 || !fits) {
            fields.line(label, &line);
            (label, line) = ("", String::new());
        }
        if !line.is_empty() {
            line.push_str(" · ");
        }
        line.push_str(fact);
    }
    fields.line(label, line);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-20 11:14:07 UTC.
    const NOW: Timestamp = Timestamp(1_795_173_247_000);

    fn address(rest: serde_json::Value) -> Address {
        let mut value = serde_json::json!({"address": "10.10.0.77", "network": "default", "revision": 9});
        value.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        serde_json::from_value(value).unwrap()
    }

    fn allocated() -> Address {
        address(serde_json::json!({
            "subnet": "lan-10", "pool": "web", "state": "allocated",
            "allocation": {
                "id": 48190233, "address": "10.10.0.77/24", "network": "default", "subnet": "lan-10",
                "pool": "web", "interface": "eth0", "node": "worker-3", "lifecycle": "attached",
                "endpoint": {"kind": "pod", "realm": "prod-eu", "namespace": "web", "name": "frontend-6c9f4"},
                "checked": true, "created_at": "2026-11-19T22:14:07.000Z", "created_by": "cni"
            }
        }))
    }

    #[test]
    fn the_holder_at_120_columns() {
        assert_eq!(
            shown(&allocated(), NOW, Some(120)),
            "10.10.0.77   allocated    network default · subnet lan-10 · pool web\n\
             holder       pod/prod-eu/web/frontend-6c9f4   interface eth0\n             \
             node worker-3 · allocation 48190233 · attached · since 2026-11-19T22:14:07Z (13h) · by cni\n"
        );
    }

    #[test]
    fn the_holder_at_80_columns() {
        let text = shown(&allocated(), NOW, Some(80));
        assert_eq!(
            text,
            "10.10.0.77   allocated    network default · subnet lan-10 · pool web\n\
             holder       pod/prod-eu/web/frontend-6c9f4   interface eth0\n             \
             node worker-3 · allocation 48190233 · attached\n             \
             since 2026-11-19T22:14:07Z (13h) · by cni\n"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn nobody_has_it() {
        let cooling = address(serde_json::json!({"state": "cooling", "pool": "web", "cooling_ms": 9_400}));
        assert_eq!(
            shown(&cooling, NOW, None),
            "10.10.0.77   cooling      network default · pool web\n\
             cooling      for 9s more; then it is free again\n"
        );
        let reserved = address(serde_json::json!({"state": "reserved", "reservation": "printers"}));
        assert_eq!(
            shown(&reserved, NOW, None),
            "10.10.0.77   reserved     network default\n\
             reservation  printers   ipamctl reservation show printers\n"
        );
        let unmanaged = address(serde_json::json!({"state": "unmanaged"}));
        assert_eq!(
            shown(&unmanaged, NOW, None),
            "10.10.0.77   in no pool   network default\n             \
             no subnet has it; nothing is known about it\n"
        );
    }
}
