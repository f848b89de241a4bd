//! Definitions of the kinds for network configuration of hosts: `NodeIPPool` and `HostPolicy`.
//!
//! Their fields come from the proposal for kubernetes-nmstate, so their schemas are written here. Rules that
//! calculate with addresses or read templates are conditions of the objects.

use serde_json::{Value, json};

use crate::schema::conditions;

/// Kind with its schemas.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) short_name: &'static str,
    about: &'static str,
    /// Columns by name, type and path.
    columns: &'static [(&'static str, &'static str, &'static str)],
    spec: fn() -> Value,
    status: fn() -> Value,
}

pub(crate) const KINDS: [Kind; 2] = [
    Kind {
        name: "HostPolicy",
        plural: "hostpolicies",
        short_name: "ipdh",
        about: "Template of the network configuration of hosts, with addresses of pools of ipamd.",
        columns: &[
            ("Matching", "integer", ".status.nodes.matching"),
            ("Configured", "integer", ".status.nodes.available"),
        ],
        spec: policy_spec,
        status: policy_status,
    },
    Kind {
        name: "NodeIPPool",
        plural: "nodeippools",
        short_name: "ipdn",
        about: "Pool of addresses for hosts. A deleted pool ends when its last address is released.",
        columns: &[
            ("CIDR", "string", ".spec.range.cidr"),
            ("Total", "integer", ".status.total"),
            ("Held", "integer", ".status.allocated"),
        ],
        spec: pool_spec,
        status: pool_status,
    },
];

fn text(about: &str, chars_max: u32) -> Value {
    json!({"type": "string", "maxLength": chars_max, "description": about})
}

fn number(about: &str) -> Value {
    json!({"type": "integer", "format": "int64", "description": about})
}

fn pool_spec() -> Value {
    let address = |about| text(about, 45);
    json!({
        "type": "object",
        "description": "Addresses of the pool. A larger range grows the pool in place.",
        "required": ["range"],
        "properties": {
            "network": text("Network of the addresses in ipamd.", 63),
            "range": {
                "type": "object",
                "required": ["cidr"],
                "properties": {
                    "cidr": text("Subnet of the addresses; host bits are ignored.", 49),
                    "start": address("First address, which has offset 0; by default the first usable one."),
                    "end": address("Last address; by default the last usable one."),
                    "exclude": {
                        "type": "array",
                        "maxItems": 512,
                        "description": "Addresses and CIDRs that are never allocated, with offsets.",
                        "items": {"type": "string", "maxLength": 91},
                    },
                },
            },
        },
    })
}

fn pool_status() -> Value {
    json!({
        "type": "object",
        "properties": {
            "allocated": number("Number of held addresses."),
            "allocatedOffsets": {
                "type": "array",
                "description": "Offsets of the held addresses.",
                "items": {"type": "integer", "format": "int64", "minimum": 0},
            },
            "cidr": text("Subnet of the addresses without host bits.", 49),
            "conditions": conditions("Available, with the reasons of the proposal for kubernetes-nmstate."),
            "free": number("Number of free addresses."),
            "observedGeneration": number("Generation of the object that was applied or refused."),
            "observedReset": text("Value of the annotation of the newest reset.", 128),
            "total": number("Number of addresses without the excluded ones."),
            "truncated": {
                "type": "boolean",
                "description": "True if there are too many held addresses to list their offsets.",
            },
        },
    })
}

fn policy_spec() -> Value {
    let pools = json!({"type": "array", "maxItems": 16, "items": {"type": "string", "maxLength": 63}});
    let open = json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "description": "Desired state of nmstate. References to captures are whole strings.",
    });
    let texts = |about: &str, chars_max: u32| {
        json!({
            "type": "object", "maxProperties": 64, "description": about,
            "additionalProperties": {"type": "string", "maxLength": chars_max},
        })
    };
    json!({
        "type": "object",
        "description": "Template, and the nodes that it applies to.",
        "properties": {
            "capture": texts("Captures by name: ippool.POOL.allocate, or an expression of nmpolicy.", 4096),
            "desiredState": open,
            "interfaces": {
                "type": "array",
                "maxItems": 16,
                "description": "Interfaces with their pools, in addition to those of the captures.",
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {
                        "name": text("Name of the interface.", 15),
                        "ipv4Pools": pools, "ipv6Pools": pools,
                        "cleanGateway": {"type": "boolean"},
                    },
                },
            },
            "maxUnavailable": {
                "x-kubernetes-int-or-string": true,
                "description": "Nodes, or a percentage of them, that are configured at once; by default 50%.",
            },
            "nodeSelector": texts("Labels of the nodes; all nodes without any.", 63),
        },
    })
}

fn policy_status() -> Value {
    json!({
        "type": "object",
        "properties": {
            "conditions": conditions("Ready of the policy in ipamd, and Available of its roll-out."),
            "holding": number("Number of nodes that hold addresses."),
            "nodes": {
                "type": "object",
                "properties": {
                    "available": number("Number of configured nodes."),
                    "degraded": number("Number of nodes whose configuration failed."),
                    "matching": number("Number of nodes that match."),
                    "progressing": number("Number of nodes that are being configured."),
                    "waiting": number("Number of nodes that wait for their turn or for an address."),
                },
            },
            "observedGeneration": number("Generation of the object that was applied or refused."),
            "observedReset": text("Value of the annotation of the newest reset that all nodes have.", 128),
        },
    })
}

/// Versions of a definition.
pub(crate) fn versions(kind: &Kind) -> Value {
    let available = |name: &str, field: &str| {
        let path = format!(".status.conditions[?(@.type==\"Available\")].{field}");
        json!({"name": name, "type": "string", "jsonPath": path})
    };
    let mut columns = vec![available("Available", "status"), available("Reason", "reason")];
    let own = kind.columns.iter();
    columns.extend(own.map(|(name, kind, path)| json!({"name": name, "type": kind, "jsonPath": path})));
    columns.push(json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}));
    json!([{
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {
            "type": "object",
            "description": kind.about,
            "required": ["spec"],
            "properties": {
                "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
                "spec": (kind.spec)(), "status": (kind.status)(),
            },
        }},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }])
}
