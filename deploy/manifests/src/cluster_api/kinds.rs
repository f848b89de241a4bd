//! Definitions of the pool kinds. Their specs are the types that the provider reads.

use anyhow::{Context as _, Result};
use ipam_api::brand::CLUSTER_API_GROUP as GROUP;
use ipam_api::cluster_api::{IpPoolSpec, PrefixPoolSpec};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::components::PROVIDER;
use super::rules;
use crate::schema::{conditions, ready_columns, structural};

/// Version of all pool kinds.
const VERSION: &str = "v1";

/// Kind of pools. The plural is that of `CalculateCRDName` of Cluster API.
struct Kind {
    name: &'static str,
    plural: &'static str,
    scope: &'static str,
    about: &'static str,
}

/// Kinds of a spec, with the field of the status that counts their addresses or blocks.
struct Family {
    kinds: [Kind; 2],
    counts: &'static str,
    counts_about: &'static str,
    rules: &'static [(&'static str, &'static str)],
}

const IP: Family = Family {
    kinds: [
        Kind {
            name: "IPPool",
            plural: "ippools",
            scope: "Namespaced",
            about: "Addresses of ipamd for the IPAddressClaims of a namespace.",
        },
        Kind {
            name: "GlobalIPPool",
            plural: "globalippools",
            scope: "Cluster",
            about: "Addresses of ipamd for the IPAddressClaims of all namespaces.",
        },
    ],
    counts: "ipAddresses",
    counts_about: "Numbers of addresses.",
    rules: rules::IP,
};

const PREFIX: Family = Family {
    kinds: [
        Kind {
            name: "PrefixPool",
            plural: "prefixpools",
            scope: "Namespaced",
            about: "Blocks of prefixes of ipamd for the IPAddressClaims of a namespace.",
        },
        Kind {
            name: "GlobalPrefixPool",
            plural: "globalprefixpools",
            scope: "Cluster",
            about: "Blocks of prefixes of ipamd for the IPAddressClaims of all namespaces.",
        },
    ],
    counts: "prefixes",
    counts_about: "Numbers of blocks.",
    rules: rules::PREFIX,
};

/// Definitions by their plurals.
///
/// # Errors
/// If the schema of a spec is no object.
pub(super) fn definitions() -> Result<Vec<(&'static str, Value)>> {
    let mut all = IP.definitions(&spec::<IpPoolSpec>()?);
    all.extend(PREFIX.definitions(&spec::<PrefixPoolSpec>()?));
    Ok(all)
}

/// Schema of a spec, with all subschemas inlined.
fn spec<T: JsonSchema>() -> Result<Map<String, Value>> {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>();
    structural(&Value::Null, schema.as_value()).context("a spec has no structural schema")
}

impl Family {
    fn definitions(&self, spec: &Map<String, Value>) -> Vec<(&'static str, Value)> {
        self.kinds.iter().map(|kind| (kind.plural, self.definition(kind, spec))).collect()
    }

    fn definition(&self, kind: &Kind, spec: &Map<String, Value>) -> Value {
        let Kind { name, plural, scope, about } = kind;
        let mut columns = ready_columns();
        columns.push(json!({"name": "Pool", "type": "string", "jsonPath": ".status.pool"}));
        for (name, field) in [("Total", "total"), ("Free", "free"), ("Used", "used")] {
            let path = format!(".status.{}.{field}", self.counts);
            columns.push(json!({"name": name, "type": "integer", "jsonPath": path}));
        }
        columns.push(json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}));
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": format!("{plural}.{GROUP}"),
                "labels": {
                    PROVIDER.0: PROVIDER.1,
                    // Versions of this kind that fulfil a contract.
                    "cluster.x-k8s.io/v1beta1": VERSION,
                    "cluster.x-k8s.io/v1beta2": VERSION,
                    // `clusterctl move` also moves pools, even if kubectl installed their kind.
                    "clusterctl.cluster.x-k8s.io": "",
                    "clusterctl.cluster.x-k8s.io/move-hierarchy": "",
                },
            },
            "spec": {
                "group": GROUP,
                "scope": scope,
                "names": {
                    "kind": name, "listKind": format!("{name}List"), "plural": plural,
                    "singular": name.to_lowercase(), "categories": ["cluster-api"],
                },
                "versions": [{
                    "name": VERSION, "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": self.schema(about, spec)},
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": columns,
                }],
            },
        })
    }

    /// Schema of the objects of a kind.
    fn schema(&self, about: &str, spec: &Map<String, Value>) -> Value {
        let mut spec = spec.clone();
        let rules = self.rules.iter().map(|(rule, message)| json!({"rule": rule, "message": message}));
        spec.insert("x-kubernetes-validations".to_owned(), rules.collect());
        json!({
            "type": "object",
            "description": about,
            "required": ["spec"],
            "properties": {
                "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
                "spec": spec, "status": self.status(),
            },
        })
    }

    fn status(&self) -> Value {
        let number = |about: &str| json!({"type": "integer", "format": "int64", "description": about});
        json!({
            "type": "object",
            "description": "State of the pool.",
            "properties": {
                "conditions": conditions("Ready, with a refusal as reason and message."),
                "observedGeneration": number("Generation of the object that was applied or refused."),
                "pool": {"type": "string", "description": "Name of the pool of ipamd."},
                self.counts: {
                    "type": "object",
                    "description": self.counts_about,
                    "properties": {
                        "total": number("Number that can be allocated."),
                        "free": number("Number that can be allocated now."),
                        "used": number("Number that claims hold."),
                        "outOfRange": number("Number that claims hold and the spec no longer contains."),
                    },
                },
            },
        })
    }
}
