//! Writes of single policies of kubernetes-nmstate, with the addresses of their nodes.

use ipam_api::brand::{HEADER_IDEMPOTENCY_KEY, HOSTNAME_LABEL};
use ipam_api::client::{Call, with_query};
use ipam_api::host_policy::{HostPolicyReset, RenderHostPolicy, RenderedHostPolicy, ResetHostPolicy};
use ipam_api::limits::HOST_POLICY_HOLDERS_NAMED;
use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::{Allocation, Labels, Page, Pool, PoolStatus, Resource};
use ipam_api::{Code, Problem};
use kube::Client;

use crate::connection::Target;
use crate::custom::message;
use crate::host_policies::{Action, Blocked, Content, Policy, digest_of, kind, object, object_name};
use crate::servers::{Servers, path};
use crate::shared::Shared;

/// Failure of a step.
#[derive(Debug)]
pub(super) enum Failed {
    /// Refusal by the servers.
    Refused(Problem),
    /// Refusal by the API server.
    Rejected(kube::Error),
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

impl From<kube::Error> for Failed {
    fn from(error: kube::Error) -> Self {
        Self::Rejected(error)
    }
}

/// Labels of a node, and another node with the same host name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Labeled<'a> {
    pub(super) labels: &'a Labels,
    pub(super) twin: Option<&'a ObjectName>,
}

/// Writer of single objects.
pub(super) struct Writer<'a, S> {
    pub(super) shared: &'a Shared<S>,
    pub(super) client: &'a Client,
}

impl<S: Servers> Writer<'_, S> {
    /// Takes a step: the addresses first, then the object. Each part may be repeated.
    pub(super) async fn take(
        &self,
        policy: &Policy,
        labels: Labeled<'_>,
        action: &Action,
        reset: Option<&str>,
    ) -> Result<(), Failed> {
        let (node, replaced) = action.target();
        let hostname = hostname(node, labels)?;
        if let Action::Replace { uid, resets: true, .. } = action {
            // A configuration that the servers refuse must be refused before any address is released.
            self.render(policy, node, true).await?;
            self.reset(policy, node, uid, reset).await?;
        }
        let rendered = self.render(policy, node, false).await?;
        let content = Content {
            policy,
            realm: &self.shared.settings.realm,
            node,
            hostname,
            rendered: &rendered,
            reset,
        };
        let (resource, name) = (kind(), object_name(&policy.name, node));
        let target = |uid| Target { resource: &resource, namespace: None, name: &name, uid };
        if let Some(uid) = replaced {
            // A policy can't be changed: kubernetes-nmstate refuses other captures, and would keep former
            // conditions.
            target(uid.as_str()).delete(self.client).await?;
        }
        Ok(target("").create(self.client, object(&content)).await?)
    }

    /// Digest of the spec that the servers would render, without an allocation.
    pub(super) async fn digest(
        &self,
        policy: &Policy,
        node: &ObjectName,
        labels: Labeled<'_>,
    ) -> Result<String, Problem> {
        let hostname = hostname(node, labels)?;
        let rendered = self.render(policy, node, true).await?;
        let realm = &self.shared.settings.realm;
        Ok(digest_of(&Content { policy, realm, node, hostname, rendered: &rendered, reset: None }))
    }

    async fn render(
        &self,
        policy: &Policy,
        node: &ObjectName,
        dry: bool,
    ) -> Result<RenderedHostPolicy, Problem> {
        let own = path(&["host-policies", policy.name.as_str(), "render"]);
        let call = Call::post(own).json(&RenderHostPolicy { node: node.clone() })?.repeatable();
        let call = if dry { call.query("dry_run", "true") } else { call };
        self.shared.servers.send(call).await?.read()
    }

    /// Releases the addresses of a node, once for each object that it replaces and each reset.
    async fn reset(
        &self,
        policy: &Policy,
        node: &ObjectName,
        uid: &str,
        reset: Option<&str>,
    ) -> Result<(), Problem> {
        let own = path(&["host-policies", policy.name.as_str(), "reset"]);
        let request = ResetHostPolicy { node: Some(node.clone()) };
        // Without the key, a repetition would release the addresses that the node has got since.
        let once = format!("reset-{uid}-{}", fit(reset.unwrap_or_default()));
        let call = Call::post(own).json(&request)?.repeatable().header(HEADER_IDEMPOTENCY_KEY, &once)?;
        self.shared.servers.send(call).await?.read::<HostPolicyReset>().map(drop)
    }

    /// Cause that blocks a node. For an exhausted pool, the cause names the pool's size and holders.
    pub(super) async fn blocked(&self, policy: &Policy, node: &ObjectName, problem: &Problem) -> Blocked {
        let mut text = message(problem);
        if problem.code == Code::PoolExhausted {
            for pool in &policy.pools {
                match self.exhausted(pool).await {
                    Ok(Some(detail)) => text = detail,
                    Ok(None) => {}
                    Err(problem) => self.shared.refused(&problem),
                }
            }
        }
        Blocked { node: node.clone(), reason: problem.code.reason(), message: text }
    }

    async fn exhausted(&self, pool: &Name) -> Result<Option<String>, Problem> {
        let shown: Resource<Pool, PoolStatus> =
            self.shared.servers.send(Call::get(path(&["pools", pool.as_str()]))).await?.read()?;
        let counts = shown.status.counts;
        if counts.free > 0 {
            return Ok(None);
        }
        let list = with_query(&path(&["allocations"]), "pool", pool.as_str());
        let list = with_query(&list, "limit", &HOST_POLICY_HOLDERS_NAMED.to_string());
        let page: Page<Allocation> = self.shared.servers.send(Call::get(list)).await?.read()?;
        let named = page.items.iter().take(HOST_POLICY_HOLDERS_NAMED);
        let named: Vec<String> =
            named.map(|one| format!("{} ({})", one.endpoint.name, one.address.addr())).collect();
        let size = counts.size.saturating_sub(counts.excluded);
        let rest = counts.allocated.saturating_sub(named.len() as u64);
        let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        Ok(Some(format!(
            "pool {pool} has no free address: {} of {size} are held, by {}{rest}; a larger range grows the \
             pool in place, and the node goes on",
            counts.allocated,
            named.join(", ")
        )))
    }
}

/// Host name by which kubernetes-nmstate selects the node and no other node.
fn hostname<'a>(node: &ObjectName, Labeled { labels, twin }: Labeled<'a>) -> Result<&'a str, Problem> {
    let problem = |why| Problem::new(Code::InvalidField, why).help("Label each node with its own host name.");
    let name = labels.get(HOSTNAME_LABEL).map(String::as_str).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| problem(format!("node {node} has no label {HOSTNAME_LABEL}")))?;
    match twin {
        Some(twin) => {
            Err(problem(format!("nodes {node} and {twin} have the same label {HOSTNAME_LABEL}={name}")))
        }
        None => Ok(name),
    }
}

/// Text for a key, with other bytes replaced.
fn fit(text: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    text.chars().take(32).map(fit).collect()
}
