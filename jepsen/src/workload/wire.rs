//! Containers on the wire, whose addresses workloads record as `farm`, and their pools.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value as Json, json};

use super::attachment::{Attachment, Run};
use super::cni_end::Ended;
use super::resources::{make, make_pool};
use super::{Node, Phase, Server, Session, add_detail};
use crate::history::{Function, Type, Value};

/// Attempts of an ADD before a runtime gives the container up.
const ATTEMPTS: usize = 3;
/// Pause between two attempts.
const RETRY: Duration = Duration::from_millis(200);

/// A subnet with a pool of the same name.
pub(super) struct Segment<'a> {
    /// Name of the subnet and of the pool.
    pub(super) name: &'a str,
    /// CIDR of the subnet, on the link of all nodes.
    pub(super) cidr: &'a str,
    /// Gateway of the subnet.
    pub(super) gateway: Option<&'a str>,
    /// Range of the pool.
    pub(super) range: &'a str,
    /// Probes of the subnet.
    pub(super) probing: Json,
}

/// Creates subnets with pools whose freed addresses can be allocated again at once.
pub(super) async fn prepare(admin: &dyn Server, all: &[Segment<'_>]) -> Result<()> {
    for Segment { name, cidr, gateway, range, probing } in all {
        let mut subnet = json!({"name": name, "cidr": cidr, "probing": probing});
        if let (Some(gateway), Some(subnet)) = (gateway, subnet.as_object_mut()) {
            subnet.insert("gateway".to_owned(), json!(gateway));
        }
        make(admin, "subnets", name, subnet).await?;
        make_pool(admin, name, name, json!({"ranges": [range]})).await?;
    }
    Ok(())
}

/// Container with one attachment, from its ADD to its end.
#[derive(Debug)]
pub(super) struct Live {
    /// The attachment.
    pub(super) attachment: Attachment,
    /// Addresses of the newest successful ADD; empty without one.
    pub(super) addresses: Vec<IpAddr>,
    /// True while the addresses answer.
    pub(super) answers: bool,
    /// True if the container has been on the wire.
    is_connected: bool,
    /// Losses of the host before the ADD: a later loss ended the container.
    losses: u64,
}

impl Live {
    /// Container without addresses.
    pub(super) fn new(session: &Session, attachment: Attachment) -> Self {
        let losses = losses(session);
        Self { attachment, addresses: Vec::new(), answers: false, is_connected: false, losses }
    }

    /// Runs ADD up to [`ATTEMPTS`] times until it succeeds; returns true on success.
    pub(super) async fn add(&mut self, session: &mut Session) -> bool {
        for _ in 0..ATTEMPTS {
            self.losses = losses(session);
            let ended = self.attachment.add(session, Run::default()).await;
            if self.added(ended) {
                return true;
            }
            if !session.works() || self.is_lost(session) {
                break;
            }
            session.pause(RETRY).await;
        }
        false
    }

    /// Takes the addresses of an ADD that succeeded.
    pub(super) fn added(&mut self, ended: Ended) -> bool {
        match ended {
            Ended::Done(addresses) => {
                self.addresses = addresses;
                true
            }
            _ => false,
        }
    }

    /// Returns true if the host has lost its power since the ADD.
    pub(super) fn is_lost(&self, session: &Session) -> bool {
        losses(session) != self.losses
    }

    /// Lets the addresses of the container answer, if it has any.
    pub(super) async fn plug_in(&mut self, session: &mut Session) {
        let Some(node) = session.node.clone() else { return };
        if self.addresses.is_empty() || self.is_lost(session) {
            return;
        }
        (self.answers, self.is_connected) = (true, true);
        let value = self.farm(node.as_ref(), true);
        let (container, addresses) = (&self.attachment.container, &self.addresses);
        let act = async |value: &mut Value| end(node.plug_in(container, addresses).await, value);
        session.record(Function::Farm, value, act).await;
    }

    /// Silences the addresses; the container continues to run.
    pub(super) async fn silence(&mut self, session: &mut Session) {
        let Some(node) = session.node.clone() else { return };
        if self.is_lost(session) {
            return;
        }
        let value = self.farm(node.as_ref(), false);
        let container = &self.attachment.container;
        let act = async |value: &mut Value| end(node.plug_in(container, &[]).await, value);
        session.record(Function::Farm, value, act).await;
        self.answers = false;
    }

    /// Ends the container with its network namespace, which `detail.gone` marks, without a DEL.
    pub(super) async fn vanish(&mut self, session: &mut Session) {
        let Some(node) = session.node.clone() else { return };
        if !self.is_connected {
            // The container was never on the wire, so there is nothing to observe.
            let _gone = node.unplug(&self.attachment.container).await;
            return;
        }
        let mut value = self.farm(node.as_ref(), false);
        add_detail(&mut value, "gone", true.into());
        let container = &self.attachment.container;
        let act = async |value: &mut Value| end(node.unplug(container).await, value);
        session.record(Function::Farm, value, act).await;
        (self.answers, self.is_connected) = (false, false);
    }

    /// Ends the container, and runs DEL until it succeeds, as a runtime does.
    ///
    /// After a loss of power, the agent releases the attachments of the former boot.
    pub(super) async fn end(mut self, session: &mut Session) {
        self.vanish(session).await;
        while session.phase() != Phase::Over {
            match self.attachment.del(session, &self.addresses, Run::default()).await {
                Ended::Done(_) | Ended::Lost => return,
                Ended::Refused(_) | Ended::Killed => session.pause(RETRY).await,
            }
        }
    }

    /// Value of a farm operation.
    fn farm(&self, node: &dyn Node, answers: bool) -> Value {
        Value {
            key: Some(self.attachment.key(node)),
            endpoint: Some(self.attachment.endpoint(node)),
            grants: Attachment::grants(&self.addresses),
            detail: json!({"answers": answers}),
            ..Value::default()
        }
    }
}

fn losses(session: &Session) -> u64 {
    session.node.as_ref().map_or(0, |node| node.losses())
}

/// Kind of the end: an observation that failed may be half true.
fn end(result: Result<()>, value: &mut Value) -> (Type, ()) {
    match result {
        Ok(()) => (Type::Ok, ()),
        Err(error) => {
            value.error = Some(format!("{error:#}"));
            (Type::Info, ())
        }
    }
}
