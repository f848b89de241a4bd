//! Conversion of Spiderpool's subnets, as `kubectl get spidersubnets` prints them, to subnet documents.

use std::net::IpAddr;

use ipam_api::address::{AddressRange, Family};
use ipam_api::name::{Name, ObjectName, shown};
use ipam_api::problem::{Code, FieldError, Problem};
use ipam_api::resource::Labels;
use ipam_api::{annotations, brand, strict};
use ipnet::IpNet;
use serde::Deserialize;
use serde_json::{Value, json};

use super::kind::Kind;
use crate::output::data::Data;

/// Beginning of the `apiVersion` of all of Spiderpool's resources.
const API_GROUP: &str = "spiderpool.spidernet.io/";

/// Kind that is converted.
const SUBNET: &str = "SpiderSubnet";

/// Other kinds, each with the kind of document to use instead.
const OTHERS: [(&str, Kind); 2] = [("SpiderIPPool", Kind::Pool), ("SpiderReservedIP", Kind::Reservation)];

/// Metadata that the Kubernetes API server and `kubectl` write.
const METADATA_OF_KUBERNETES: [&str; 10] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "uid",
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpiderSubnet {
    metadata: Metadata,
    spec: SpiderSubnetSpec,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    name: ObjectName,
    #[serde(default)]
    labels: Labels,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpiderSubnetSpec {
    #[serde(default, rename = "ipVersion")]
    family: Option<Family>,
    subnet: IpNet,
    #[serde(default)]
    ips: Vec<AddressRange>,
    #[serde(default, rename = "excludeIPs")]
    exclude: Vec<AddressRange>,
    #[serde(default)]
    gateway: Option<IpAddr>,
    /// Field of versions before 1.0; 0 is no VLAN.
    #[serde(default)]
    vlan: u16,
    #[serde(default)]
    routes: Vec<Route>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Route {
    dst: IpNet,
    gw: IpAddr,
}

/// Converts a SpiderSubnet to a subnet document; none if `data` isn't Spiderpool's.
pub(super) fn translated(data: &Data) -> Result<Option<Data>, Problem> {
    let text = |field: &str| data.get(field).map(Data::cell).unwrap_or_default();
    if !text("apiVersion").starts_with(API_GROUP) {
        return Ok(None);
    }
    let kind = text("kind");
    if kind != SUBNET {
        return Err(unsupported(&kind));
    }
    let named = |problem| about(&data.at("metadata.name").map(Data::cell).unwrap_or_default(), problem);
    let subnet = subnet(data).map_err(named)?;
    serde_json::from_value(subnet)
        .map(Some)
        .map_err(|error| named(Problem::new(Code::Internal, error.to_string())))
}

fn subnet(data: &Data) -> Result<Value, Problem> {
    let written = without(data, &["apiVersion", "kind", "status"]);
    let json =
        serde_json::to_vec(&written).map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let SpiderSubnet { metadata: Metadata { name: foreign, mut labels }, spec } = strict::from_slice(&json)?;
    let name = Name::from_foreign(&foreign);
    let family = Family::of(spec.subnet.addr());
    if let Some(said) = spec.family.filter(|said| *said != family) {
        let detail = format!("it is {said}, and subnet {} is {family}", spec.subnet);
        return Err(Problem::new(Code::FamilyMismatch, detail).at("/spec/ipVersion"));
    }
    labels.retain(|label, _| !label.starts_with(annotations::PREFIX));
    let routes: Vec<Value> =
        spec.routes.iter().map(|route| json!({"destination": route.dst, "gateway": route.gw})).collect();
    // A SpiderSubnet without `ips` provides no addresses, but automatic rules without ranges would cover the
    // whole subnet.
    let automatic = (!spec.ips.is_empty()).then(|| json!({"ranges": spec.ips, "exclude": spec.exclude}));
    let annotations = match foreign.as_str() == name.as_str() {
        true => Labels::new(),
        false => Labels::from([(brand::FOREIGN_NAME.to_owned(), foreign.to_string())]),
    };
    Ok(json!({
        "kind": Kind::Subnet.word(),
        "name": name,
        "cidr": spec.subnet,
        "gateway": spec.gateway,
        "vlan": (spec.vlan != 0).then_some(spec.vlan),
        "routes": routes,
        "labels": labels,
        "annotations": annotations,
        "automatic": automatic,
    }))
}

/// Copies `data` without some fields, and without the metadata of Kubernetes.
fn without(data: &Data, left_out: &[&str]) -> Data {
    let Data::Map(fields) = data else { return data.clone() };
    let kept = fields.iter().filter(|(field, _)| !left_out.contains(&field.as_str()));
    Data::Map(
        kept.map(|(field, value)| match field.as_str() {
            "metadata" => (field.clone(), without(value, &METADATA_OF_KUBERNETES)),
            _ => (field.clone(), value.clone()),
        })
        .collect(),
    )
}

/// Adds the resource and the field to a problem.
fn about(name: &str, problem: Problem) -> Problem {
    let field = problem.errors.first().map(|FieldError { pointer, .. }| pointer.trim_start_matches('/'));
    let field = field.map(|field| format!("{}: ", field.replace('/', "."))).unwrap_or_default();
    Problem { detail: format!("{SUBNET} {}: {field}{}", shown(name), problem.detail), ..problem }
}

fn unsupported(kind: &str) -> Problem {
    let help = match OTHERS.iter().find(|(other, _)| *other == kind) {
        Some((_, ours)) => {
            let word = ours.word();
            format!("Write it as a document of `kind: {word}`; fields: ipamctl explain {word}.")
        }
        None => "Remove it from the files.".to_owned(),
    };
    let detail =
        format!("{} is not supported; of Spiderpool's resources only {SUBNET} is converted", shown(kind));
    Problem::new(Code::InvalidField, detail).help(help)
}
