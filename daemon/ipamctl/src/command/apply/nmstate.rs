//! Conversion of kubernetes-nmstate policies to host policy documents.

use ipam_api::problem::{Code, Problem};

use super::kind::Kind;
use crate::output::data::Data;

/// Beginning of the `apiVersion` of all resources of kubernetes-nmstate.
const API_GROUP: &str = "nmstate.io/";
/// Kind that is converted.
const POLICY: &str = "NodeNetworkConfigurationPolicy";

/// Fields of a policy, with their names in a host policy.
const FIELDS: [(&str, &str); 3] =
    [("capture", "capture"), ("desiredState", "desired_state"), ("maxUnavailable", "max_unavailable")];

/// Converts a policy to a host policy document; none if `data` isn't from kubernetes-nmstate.
///
/// The fields are in `spec`, or next to `metadata`.
pub(super) fn translated(data: &Data) -> Result<Option<Data>, Problem> {
    let text = |field: &str| data.get(field).map(Data::cell).unwrap_or_default();
    if !text("apiVersion").starts_with(API_GROUP) {
        return Ok(None);
    }
    let wrong = |detail: String| Problem::new(Code::InvalidField, detail);
    if text("kind") != POLICY {
        let detail = format!("of the resources of kubernetes-nmstate only {POLICY} is converted");
        return Err(wrong(detail).help("Write pools as documents of `kind: pool`."));
    }
    let spec = data.get("spec").unwrap_or(data);
    let Data::Map(fields) = spec else { return Err(wrong(format!("the spec of a {POLICY} is an object"))) };
    let mut own = vec![("kind".to_owned(), Data::Text(Kind::HostPolicy.word().to_owned()))];
    if let Some(name) = data.at("metadata.name") {
        own.push(("name".to_owned(), name.clone()));
    }
    for (field, value) in fields {
        match (field.as_str(), FIELDS.iter().find(|(theirs, _)| theirs == field)) {
            (_, Some((_, ours))) => own.push(((*ours).to_owned(), value.clone())),
            ("nodeSelector", None) => {
                own.push(("node_selector".to_owned(), Data::Text(selector(value)?)));
            }
            ("apiVersion" | "kind" | "metadata" | "status", None) => {}
            (other, None) => {
                return Err(wrong(format!("{POLICY} has no field {}", ipam_api::name::shown(other))));
            }
        }
    }
    Ok(Some(Data::Map(own)))
}

/// Converts labels to a selector. Numbers and booleans are converted to text.
fn selector(labels: &Data) -> Result<String, Problem> {
    let Data::Map(labels) = labels else {
        return Err(Problem::new(Code::InvalidField, "nodeSelector is an object of labels"));
    };
    let one = |(key, value): &(String, Data)| match value {
        Data::Text(_) | Data::Flag(_) | Data::Number(_) => format!("{key}={}", value.cell()),
        _ => format!("{key}="),
    };
    Ok(labels.iter().map(one).collect::<Vec<_>>().join(","))
}
