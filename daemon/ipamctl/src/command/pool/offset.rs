//! `pool offset`: conversion between the offsets and the addresses of a pool.

use std::net::IpAddr;
use std::str::FromStr;

use clap::Args;
use ipam_api::address::offset::{Offsets, has_offset};
use ipam_api::address::{number, parse_address};
use ipam_api::limits::JSON_INTEGER_MAX;
use ipam_api::resource::{AddressMap, Pool};
use ipam_api::{AddressRange, Code, Name, Problem};
use serde_json::{Value, json};

use crate::client::resource;
use crate::client::resource_type::Read;
use crate::client::session::Session;
use crate::output::error::Failure;
use crate::output::text::Fields;

/// Arguments of `offset`.
#[derive(Debug, Args)]
pub(crate) struct OffsetArguments {
    /// Name
    name: Name,
    /// Offset, or address of the pool
    #[arg(value_name = "OFFSET|ADDRESS")]
    place: Place,
}

/// Place in a pool.
#[derive(Debug, Clone, Copy)]
enum Place {
    Offset(u128),
    Address(IpAddr),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().map(Self::Offset).map_err(|_| "no pool has so many addresses".to_owned());
        }
        parse_address(text)
            .map(Self::Address)
            .map_err(|_| "write an offset such as 17, or an address such as 10.10.11.8".to_owned())
    }
}

/// Shows the address of an offset, or the offset of an address.
pub(crate) async fn run(session: &Session, arguments: &OffsetArguments) -> Result<(), Failure> {
    let name = &arguments.name;
    let (pool, _) = resource::fetch::<Pool>(session, name).await?;
    let ranges = match pool.spec.ranges.as_slice() {
        [] => vec![AddressRange::of_cidr(pool.status.cidr)],
        ranges => ranges.to_vec(),
    };
    let offsets = Offsets::new(pool.status.family, &ranges);
    let (offset, address) = match arguments.place {
        Place::Offset(offset) => {
            let address = offsets.address(offset).ok_or_else(|| {
                Problem::new(
                    Code::NotFound,
                    format!("offset {offset} is behind the last address of pool {name}"),
                )
                .help(format!("See its ranges: ipamctl pool show {name}"))
            })?;
            (Some(offset), address)
        }
        Place::Address(address) if offsets.contains(address) => (offsets.offset(address), address),
        Place::Address(address) => {
            return Err(Problem::new(Code::NotFound, format!("pool {name} has no address {address}"))
                .help(format!("Find its pool: ipamctl who-has {address}"))
                .into());
        }
    };
    let state = state(session, &pool, address).await;
    let document = json!({
        "pool": name, "offset": offset.map(in_json), "address": address, "state": state,
        "excluded": state.as_deref() == Some("excluded"),
    });
    session.show(document.to_string().as_bytes(), &address.to_string(), || {
        let mut fields = Fields::default();
        match offset {
            Some(offset) => fields.line("offset", offset),
            None => fields.line("offset", "none: the last octet is 0 or 255"),
        }
        fields.line("address", address);
        fields.some("state", state.as_deref().map(|state| stated(state, address)));
        Ok(fields.text())
    })
}

/// Describes what the pool does with an address in this state.
fn stated(state: &str, address: IpAddr) -> String {
    match state {
        "excluded" if has_offset(address) => {
            "excluded: it keeps its offset and is never allocated".to_owned()
        }
        "excluded" => "excluded: it is never allocated".to_owned(),
        other => other.to_owned(),
    }
}

/// State of an address from the map of its pool; without the map, from the pool's own fields.
async fn state(session: &Session, pool: &Read<Pool>, address: IpAddr) -> Option<String> {
    let path = format!("/v1/pools/{}/map?from={address}&limit=1", pool.spec.name);
    let map: Option<AddressMap> = match session.read(&path).await {
        Ok(answer) => answer.read().ok(),
        Err(_) => None,
    };
    let runs = map.map(|map| map.items).unwrap_or_default();
    let wanted = number(address);
    let run = runs.into_iter().find(|run| (number(run.first)..=number(run.last)).contains(&wanted));
    let one = AddressRange::single(address);
    let is_excluded = pool.spec.exclude.iter().any(|range| range.contains(&one));
    run.map(|run| run.state).or_else(|| is_excluded.then(|| "excluded".to_owned()))
}

/// Offset as a number, or as text if JSON readers would round the number.
fn in_json(offset: u128) -> Value {
    match u64::try_from(offset) {
        Ok(small) if small <= JSON_INTEGER_MAX => small.into(),
        _ => offset.to_string().into(),
    }
}
