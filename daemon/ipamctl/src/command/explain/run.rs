//! The command: fields of a resource from the source of the API.

use clap::{ArgGroup, Args};
use ipam_api::strict;
use serde_json::json;

use super::choice;
use super::source::{self, Field, Shape};
use crate::client::session::Session;
use crate::command::allocate::RequestArguments;
use crate::output::error::Failure;
use crate::output::table::Table;

/// The resources, and the names of their types.
const RESOURCES: [(&str, &str, &str); 10] = [
    ("network", "Network", "NetworkStatus"),
    ("subnet", "Subnet", "SubnetStatus"),
    ("pool", "Pool", "PoolStatus"),
    ("reservation", "Reservation", "ReservationStatus"),
    ("node", "Node", "NodeStatus"),
    ("namespace", "Namespace", "NamespaceStatus"),
    ("host-policy", "HostPolicy", "HostPolicyStatus"),
    ("endpoint", "Endpoint", "EndpointStatus"),
    ("allocation", "Allocation", ""),
    ("prefix", "Prefix", ""),
];

/// Arguments of `explain`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").args(["path", "endpoint"]).required(true)))]
#[command(
    after_help = "With the flags of a request, as for allocate, explain lists the candidate pools with the reason
for each, the address that would be allocated, and possible remedies. Nothing is allocated; the
exit code is that of the request.

Examples:
  ipamctl explain pool
  ipamctl explain pool.status.counts.free
  ipamctl explain --endpoint pod/web/frontend-7 --node worker-3
  ipamctl explain --endpoint host/db-07 --pool rack-12 --label app=db"
)]
pub(crate) struct ExplainArguments {
    /// Resource or field, such as pool.ranges
    #[arg(value_name = "RESOURCE[.FIELD…]", conflicts_with = "endpoint")]
    path: Option<String>,
    #[command(flatten)]
    arguments: RequestArguments,
    /// List all skipped default pools, not only the first for each reason
    #[arg(long, conflicts_with = "path")]
    all_skipped: bool,
}

impl ExplainArguments {
    /// True if the command sends no request to a server.
    pub(crate) fn is_offline(&self) -> bool {
        self.path.is_some()
    }
}

/// Explains a resource or a field, or a request.
pub(crate) async fn run(session: &Session, arguments: &ExplainArguments) -> Result<(), Failure> {
    match &arguments.path {
        Some(path) => field(session, path),
        None => choice::run(session, &arguments.arguments, arguments.all_skipped).await,
    }
}

fn field(session: &Session, named: &str) -> Result<(), Failure> {
    let mut words = named.split('.');
    let first = words.next().unwrap_or_default().to_ascii_lowercase();
    let resource_type = if first == "prefixes" {
        "prefix"
    } else {
        first.strip_suffix('s').filter(|word| !word.is_empty()).unwrap_or(&first)
    };
    let Some((_, name, status)) = RESOURCES.iter().find(|(word, _, _)| *word == resource_type) else {
        return Err(unknown(named, resource_type, RESOURCES.iter().map(|(word, _, _)| *word)));
    };
    let mut found = explained(name, status);
    let mut path = resource_type.to_owned();
    for word in words {
        let Some(field) = found.fields.iter().find(|field| field.name == word) else {
            return Err(unknown(named, word, found.fields.iter().map(|field| field.name.as_str())));
        };
        path = format!("{path}.{word}");
        found = deeper(field);
    }
    show(session, &path, &found)
}

/// Type with its fields and, for a resource, the read-only objects `meta` and `status`.
fn explained(name: &str, status: &str) -> Shape {
    let mut shape = source::shape(name).unwrap_or_default();
    if !status.is_empty() {
        let island = |name: &str, kind: &str| Field {
            name: name.to_owned(),
            kind: kind.to_owned(),
            says: source::shape(kind).map(|shape| shape.says).unwrap_or_default(),
        };
        shape.fields.push(island("meta", "Meta"));
        shape.fields.push(island("status", status));
    }
    shape
}

/// Description of a field, with the fields below it.
fn deeper(field: &Field) -> Shape {
    let inner = source::shape(source::inner(&field.kind)).unwrap_or_default();
    Shape { says: field.says.clone(), kind: source::words(&field.kind), fields: inner.fields }
}

fn unknown<'a>(path: &str, word: &str, known: impl Iterator<Item = &'a str> + Clone) -> Failure {
    let meant = strict::nearest(word, known.clone()).map(|meant| format!("  Did you mean {meant}?"));
    let known: Vec<&str> = known.collect();
    let known = if known.is_empty() {
        "it has no fields".to_owned()
    } else {
        format!("Use one of: {}.", known.join(", "))
    };
    Failure::usage(
        format!("{} does not exist: no {word}.{}", ipam_api::name::shown(path), meant.unwrap_or_default()),
        known,
    )
}

fn show(session: &Session, path: &str, shape: &Shape) -> Result<(), Failure> {
    let fields: Vec<serde_json::Value> = shape
        .fields
        .iter()
        .map(|field| json!({"name": field.name, "type": source::words(&field.kind), "says": field.says}))
        .collect();
    let data = json!({"name": path, "type": shape.kind, "says": shape.says, "items": fields});
    let names: Vec<String> = shape.fields.iter().map(|field| format!("{path}.{}", field.name)).collect();
    session.show(data.to_string().as_bytes(), &names.join("\n"), || {
        let kind = if shape.kind.is_empty() { String::new() } else { format!("   {}", shape.kind) };
        let mut text = format!("{path}{kind}\n  {}\n", shape.says);
        if !shape.fields.is_empty() {
            let table = Table::of(&shape.fields)
                .text("FIELD", |field| &field.name)
                .text("TYPE", |field| source::words(&field.kind))
                .text("MEANS", |field| &field.says)
                .table();
            // A description may exceed the terminal's width; omitting its column would leave nothing.
            text += &format!("\n{}", table.render(session.headers, None));
        }
        Ok(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::environment::Environment;
    use crate::tests::{code, run_within};

    async fn explain(path: &str) -> (u8, String) {
        let (result, text) = run_within(&Environment::default(), &format!("explain {path}")).await;
        (code(&result), text)
    }

    #[tokio::test]
    async fn fields_are_explained() {
        let (code, text) = explain("pool.ranges").await;
        assert_eq!((code, text.lines().next().unwrap()), (0, "pool.ranges   list of address ranges"));
        assert!(text.contains("all of the subnet if none are named"), "{text}");
        for (path, kind) in [
            ("pool.strategy", "next, sequential or random"),
            ("pool.scale_down", "release or keep"),
            ("allocation.lifecycle", "attached, leased or held"),
            ("endpoint.scale_down", "release or keep, or none"),
            ("pool.node_selector", "label selector, as team=web,tier!=db"),
            ("namespace.default_ipv4_pools", "list of names with or without wildcards"),
        ] {
            let (_, text) = explain(path).await;
            assert_eq!(text.lines().next().unwrap(), format!("{path}   {kind}"));
        }
        let (_, text) = explain("namespace.quota.applications").await;
        assert!(text.contains("ipv4") && text.contains("group"), "{text}");
        let (_, text) = explain("prefixes").await;
        assert!(text.contains("ttl_ms"), "{text}");
        let (_, text) = explain("pools").await;
        assert!(text.contains("cooling_ms") && text.contains("milliseconds of log time"), "{text}");
        let (_, text) = explain("pool.status.counts.free").await;
        assert!(text.contains("Free for allocation."), "{text}");
        let (_, text) = explain("subnet.meta").await;
        assert!(text.contains("revision") && text.contains("the `ETag`"), "{text}");
    }

    #[tokio::test]
    async fn an_unknown_field_is_a_usage_error() {
        assert_eq!(explain("pool.rangs").await.0, 2);
        assert_eq!(explain("prefixe").await.0, 2);
        assert_eq!(explain("pool.ranges.first").await.0, 2);
    }

    /// The source is read here as text; every field in it must be found.
    #[test]
    fn every_field_that_is_sent_has_words() {
        for (resource_type, name, status) in RESOURCES {
            let shape = explained(name, status);
            assert!(!shape.says.is_empty() && shape.fields.len() > 3, "{resource_type}");
            for field in &shape.fields {
                assert!(!field.says.is_empty(), "{resource_type}.{}", field.name);
                let below = source::shape(source::inner(&field.kind)).is_some();
                assert!(
                    below || !source::words(&field.kind).contains("object"),
                    "{resource_type}.{}",
                    field.name
                );
            }
        }
        let pool: ipam_api::resource::Pool = strict::from_slice(br#"{"name":"a","subnet":"b"}"#).unwrap();
        let shape = explained("Pool", "PoolStatus");
        for field in serde_json::to_value(&pool).unwrap().as_object().unwrap().keys() {
            assert!(shape.fields.iter().any(|found| found.name == *field), "{field}");
        }
    }
}
