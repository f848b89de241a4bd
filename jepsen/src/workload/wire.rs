//! Containers on the wire: what workloads with nodes record as `farm`, and the pools that they use.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::Result;
use ipam_api::client::Call;
use serde_json::{Value as Json, json};

use super::attachment::Attachment;
use super::server::Server;
use super::session::Session;
use crate::history::{Function, Type, Value};

/// Time limit of a request before any fault.
const PREPARING: Duration = Duration::from_secs(30);

/// A subnet with a pool of the same name.
pub(super) struct Resources<'a> {
    pub(super) name: &'a str,
    pub(super) cidr: &'a str,
    pub(super) range: &'a str,
    /// Probes of the subnet.
    pub(super) probing: Json,
}

/// Creates subnets with pools whose freed addresses can be allocated again at once.
pub(super) async fn prepare(admin: &dyn Server, all: &[Resources<'_>]) -> Result<()> {
    for Resources { name, cidr, range, probing } in all {
        let subnet = json!({"name": name, "cidr": cidr, "probing": probing});
        let pool = json!({"name": name, "subnet": name, "ranges": [range], "cooling_ms": 0});
        for (plural, body) in [("subnets", subnet), ("pools", pool)] {
            let call = Call::put(format!("/v1/{plural}/{name}")).json(&body)?;
            admin.send(call.within(PREPARING)).await?;
        }
    }
    Ok(())
}

/// Lets the addresses of an attachment answer, and no others of its container.
pub(super) async fn plug_in(session: &mut Session, attachment: &Attachment, addresses: &[IpAddr]) {
    let Some(node) = session.node.clone() else { return };
    let value = farm(attachment, node.as_ref(), addresses, true);
    let act = async |value: &mut Value| match node.plug_in(&attachment.container, addresses).await {
        Ok(()) => (Type::Ok, ()),
        Err(error) => {
            value.error = Some(format!("{error:#}"));
            (Type::Info, ())
        }
    };
    session.record(Function::Farm, value, act).await;
}

/// Silences the addresses of a container that lives on.
pub(super) async fn silence(session: &mut Session, attachment: &Attachment, addresses: &[IpAddr]) {
    let Some(node) = session.node.clone() else { return };
    let value = farm(attachment, node.as_ref(), addresses, false);
    let act = async |value: &mut Value| match node.plug_in(&attachment.container, &[]).await {
        Ok(()) => (Type::Ok, ()),
        Err(error) => {
            value.error = Some(format!("{error:#}"));
            (Type::Info, ())
        }
    };
    session.record(Function::Farm, value, act).await;
}

/// Ends a container with its network namespace.
pub(super) async fn unplug(session: &mut Session, attachment: &Attachment, addresses: &[IpAddr]) {
    let Some(node) = session.node.clone() else { return };
    let mut value = farm(attachment, node.as_ref(), addresses, false);
    if let Json::Object(detail) = &mut value.detail {
        detail.insert("gone".to_owned(), json!(true));
    }
    let act = async |value: &mut Value| match node.unplug(&attachment.container).await {
        Ok(()) => (Type::Ok, ()),
        Err(error) => {
            value.error = Some(format!("{error:#}"));
            (Type::Info, ())
        }
    };
    session.record(Function::Farm, value, act).await;
}

/// Value of a farm operation.
fn farm(
    attachment: &Attachment,
    node: &dyn super::node::Node,
    addresses: &[IpAddr],
    answers: bool,
) -> Value {
    Value {
        key: Some(attachment.key(node)),
        endpoint: Some(attachment.endpoint(node)),
        grants: Attachment::grants(addresses),
        detail: json!({"answers": answers}),
        ..Value::default()
    }
}
