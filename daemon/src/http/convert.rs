//! Conversions between types of the API and of the state machine that several resources share.

use std::collections::BTreeMap;

use ipam_api::name::Name;
use ipam_api::probe;
use ipam_api::resource as shown;
use ipam_api::time::Timestamp;
use ipam_machine::State;
use ipam_machine::command::{
    Cause, Controller, Dns, Given, GivenInterface, Metadata, Probing, Started, Text,
};
use ipam_machine::event::WaitReason;
use ipam_machine::model::{Allocation, Lease, Meta};
use ipnet::IpNet;

pub(super) fn meta(meta: &Meta) -> shown::Meta {
    shown::Meta {
        id: meta.id,
        revision: meta.revision,
        created_at: Timestamp(meta.created_wall_ms),
        created_by: meta.created_by.to_string(),
        updated_at: Timestamp(meta.updated_wall_ms),
        updated_by: meta.updated_by.to_string(),
    }
}

/// Declares the conversions `to_log` and `to_json` of a resource, made of one list of its fields.
///
/// `field(read, show)` names the conversion functions of a field that has another type in JSON. The fields in
/// the second list are in a separate struct in the log; `inner: outer` names one with another name in JSON.
macro_rules! conversions {
    (@ $value:expr) => { $value };
    (@ $value:expr, $convert:path) => { $convert($value) };
    ($json:ident <=> $log:ident $fields:tt $group:ident: $part:ident { $($inner:ident),* $(,)? }) => {
        $crate::http::convert::conversions! { $json <=> $log $fields $group: $part { $($inner: $inner),* } }
    };
    (
        $json:ident <=> $log:ident { $($field:ident $(($read:path, $show:path))?),* $(,)? }
        $($group:ident: $part:ident { $($inner:ident: $outer:ident),* $(,)? })?
    ) => {
        fn to_log(json: $json) -> $log {
            $log {
                $($field: $crate::http::convert::conversions!(@ json.$field $(, $read)?),)*
                $($group: $part { $($inner: json.$outer),* },)?
                metadata: $crate::http::convert::metadata(
                    json.description,
                    json.labels,
                    json.annotations,
                    json.managed_by,
                ),
            }
        }

        fn to_json(log: $log) -> $json {
            let metadata = $crate::http::convert::metadata_out(log.metadata);
            let (description, labels, annotations, managed_by) = metadata;
            $json {
                $($field: $crate::http::convert::conversions!(@ log.$field $(, $show)?),)*
                $($($outer: log.$group.$inner,)*)?
                description,
                labels,
                annotations,
                managed_by,
            }
        }
    };
}
pub(super) use conversions;

/// Metadata of operators, made of their four fields.
pub(super) fn metadata(
    description: String,
    labels: shown::Labels,
    annotations: shown::Labels,
    managed_by: Option<String>,
) -> Metadata {
    Metadata {
        description: Text::given(description),
        labels: texts(labels),
        annotations: texts(annotations),
        managed_by: managed_by.map(Text::given),
    }
}

/// The metadata on a resource as four fields: description, labels, annotations, manager.
pub(super) fn metadata_out(metadata: Metadata) -> (String, shown::Labels, shown::Labels, Option<String>) {
    let Metadata { description, labels, annotations, managed_by } = metadata;
    let managed_by = managed_by.map(|manager| manager.to_string());
    (description.to_string(), strings(&labels), strings(&annotations), managed_by)
}

pub(super) fn texts(labels: shown::Labels) -> BTreeMap<Text, Text> {
    labels.into_iter().map(|(key, value)| (Text::given(key), Text::given(value))).collect()
}

pub(super) fn strings(texts: &BTreeMap<Text, Text>) -> shown::Labels {
    texts.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

pub(super) fn controller_in(controller: shown::Controller) -> Controller {
    let shown::Controller { group, kind, name, uid } = controller;
    Controller { group: Text::given(group), kind: Text::given(kind), name, uid: uid.map(Text::given) }
}

pub(super) fn controller_out(controller: &Controller) -> shown::Controller {
    shown::Controller {
        group: controller.group.to_string(),
        kind: controller.kind.to_string(),
        name: controller.name.clone(),
        uid: controller.uid.as_ref().map(ToString::to_string),
    }
}

pub(super) fn dns_in(dns: shown::Dns) -> Dns {
    let texts = |list: Vec<String>| list.into_iter().map(Text::given).collect();
    Dns {
        nameservers: dns.nameservers,
        domain: dns.domain.map(Text::given),
        search: texts(dns.search),
        options: texts(dns.options),
    }
}

pub(super) fn dns_out(dns: Dns) -> shown::Dns {
    let strings = |list: Vec<Text>| list.into_iter().map(|text| text.to_string()).collect();
    shown::Dns {
        nameservers: dns.nameservers,
        domain: dns.domain.map(|domain| domain.to_string()),
        search: strings(dns.search),
        options: strings(dns.options),
    }
}

pub(super) fn probing_in(probing: probe::Probing) -> Probing {
    let probe::Probing { conflicts, gateway, valid_ms } = probing;
    Probing { conflicts, gateway, valid_ms }
}

pub(super) fn probing_out(probing: Probing) -> probe::Probing {
    let Probing { conflicts, gateway, valid_ms } = probing;
    probe::Probing { conflicts, gateway, valid_ms }
}

pub(super) fn started(started: ipam_api::request::Started) -> Started {
    Started { boot_id: Text::given(started.boot_id), at_us: started.at_us, start_ticks: started.start_ticks }
}

pub(super) fn interface(given: &GivenInterface) -> shown::Interface {
    shown::Interface {
        name: given.name.clone(),
        attachment: given.attachment.clone(),
        also_attached: given.also_attached.clone(),
        kept: given.kept,
        preallocated: given.preallocated,
        addresses: given.addresses.iter().map(given_address).collect(),
    }
}

fn given_address(given: &Given) -> shown::GivenAddress {
    shown::GivenAddress {
        address: given.address,
        gateway: given.gateway,
        clean_gateway: given.clean_gateway,
        routes: given.routes.clone(),
        dns: dns_out(given.dns.clone()),
        vlan: given.vlan,
        mtu: given.mtu,
        pool: given.pool.clone(),
        allocation: given.allocation.get(),
        checked: given.checked,
        probes: probe::NeededProbes { conflicts: given.probes_conflicts, gateway: given.probes_gateway },
        lease: given.lease.as_ref().map(lease),
        mac: given.mac.as_ref().map(ToString::to_string),
        hostname: given.metadata.hostname.as_ref().map(ToString::to_string),
        description: given.metadata.description.to_string(),
    }
}

pub(super) fn allocation(state: &State, id: u64, row: &Allocation) -> Option<shown::Allocation> {
    let pool = state.pools.get(row.pool)?;
    let subnet = state.subnets.get(pool.subnet)?;
    let neighbor = state.neighbors.get(id.into());
    Some(shown::Allocation {
        id,
        address: IpNet::new(row.address, subnet.spec.cidr.prefix_len()).ok()?,
        network: subnet.spec.network.clone(),
        subnet: subnet.spec.name.clone(),
        pool: pool.spec.name.clone(),
        endpoint: state.endpoints.get(row.endpoint)?.key.clone(),
        interface: row.interface.clone(),
        node: row.node.clone(),
        lifecycle: row.lifecycle,
        lease: state.lease_of(row).as_ref().map(lease),
        mac: row.mac.as_ref().map(ToString::to_string),
        hostname: row.metadata.hostname.as_ref().map(ToString::to_string),
        description: row.metadata.description.to_string(),
        checked: row.checked,
        station: neighbor.map(|row| row.mac),
        colliding: neighbor.and_then(|row| row.other),
        created_at: Timestamp(row.created_wall_ms),
        created_by: row.created_by.to_string(),
    })
}

/// Reason for which an endpoint waits.
pub(super) fn waits(why: WaitReason, cause: &Cause, since_wall_ms: u64) -> shown::Condition {
    shown::Condition {
        kind: "Ready".to_owned(),
        status: "False".to_owned(),
        reason: why.as_str().to_owned(),
        message: cause.detail(),
        since: Timestamp(since_wall_ms),
    }
}

/// A network's name by its id.
pub(super) fn network_name(state: &State, network: u64) -> Option<Name> {
    state.networks.get(network.into()).map(|row| row.spec.name.clone())
}

pub(super) fn lease(lease: &Lease) -> shown::Lease {
    shown::Lease { ttl_ms: lease.ttl_ms, ends_at: Timestamp(lease.until_wall_ms) }
}
