//! Requests of the REST API about prefixes of a trench.

use std::sync::Arc;
use std::time::Duration;

use ipam_api::client::{Answer, Call};
use ipam_api::limits::{BUDGET_MS_MAX, GRPC_REQUESTS_MAX, GRPC_REQUESTS_PER_CALLER_MAX};
use ipam_api::name::ObjectName;
use ipam_api::request::{DelegateRequest, Delegated, PrefixLevel};
use ipam_api::resource::{Page, Prefix};
use ipam_api::transaction::{StepMethod, TransactionRequest, TransactionStep};
use ipam_api::{Code, Problem};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

use crate::child::KnownChild;
use crate::places::Places;
use crate::servers::{Caller, Servers};
use crate::settings::{FamilySettings, Settings};

const PREFIXES: &str = "/v1/prefixes";

/// Prefixes of the trench, as one member answers for them.
#[derive(Debug, Clone)]
pub(crate) struct Prefixes<S> {
    pub(crate) settings: Arc<Settings>,
    servers: S,
    places: Places,
}

/// Call of a client: its caller, and the end of its patience.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) caller: Caller,
    pub(crate) deadline: Instant,
}

/// Address of a child in the prefix of its node.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) address: std::net::IpAddr,
    pub(crate) node_length: u8,
}

/// Conduit, as this member knows it.
#[derive(Debug)]
pub(crate) enum Conduit {
    Absent,
    /// It waits for a free block, with the reason.
    Waiting(String),
    Present,
}

impl<S: Servers> Prefixes<S> {
    pub(crate) fn new(settings: Arc<Settings>, servers: S) -> Self {
        let places = Places::new(GRPC_REQUESTS_MAX, GRPC_REQUESTS_PER_CALLER_MAX);
        Self { settings, servers, places }
    }

    pub(crate) fn servers(&self) -> &S {
        &self.servers
    }

    /// Allocates a child in one step, with its node if that is new. A repetition returns the same address.
    ///
    /// # Errors
    /// `not-found` for an unknown conduit, and any other refusal.
    pub(crate) async fn allocate(&self, client: &Client, child: &KnownChild<'_>) -> Result<Address, Problem> {
        let node = self.node(child, Some(child.family.node_length));
        let request = DelegateRequest {
            length: Some(child.family.prefix.max_prefix_len()),
            ttl_ms: child.ttl_ms(&self.settings),
            ..self.request(child.family, vec![conduit(child), node], child.name.clone())
        };
        let delegated: Delegated =
            self.send(client, Call::post(PREFIXES).json(&request)?.repeatable()).await?.read()?;
        let node = delegated.through.last().and_then(|node| node.cidr);
        match (delegated.prefix.cidr, node) {
            (Some(own), Some(node)) => Ok(Address { address: own.addr(), node_length: node.prefix_len() }),
            _ => Err(Problem::new(Code::Internal, "the answer has no addresses")),
        }
    }

    /// Releases a child, if it is there, and refreshes its node, if that is there.
    ///
    /// # Errors
    /// Any failure but `not-found`.
    pub(crate) async fn release(&self, client: &Client, child: &KnownChild<'_>) -> Result<(), Problem> {
        let refresh = DelegateRequest {
            ttl_ms: self.settings.ttl_ms,
            ..self.request(child.family, vec![conduit(child)], child.node.clone())
        };
        if let Some(prefix) = self.find(client, child.family, &child.path(), "linearizable").await? {
            let steps = vec![
                step(StepMethod::Post, PREFIXES.to_owned(), Some(&refresh))?,
                step(StepMethod::Delete, format!("{PREFIXES}/{}", prefix.id), None::<&()>)?,
            ];
            let both = TransactionRequest { conditions: Vec::new(), steps };
            match self.send(client, Call::post("/v1/transactions").json(&both)?).await {
                Ok(_) => return Ok(()),
                // Another call has released the child, or all that it was a part of ends.
                Err(problem) if is_absence(&problem) => {}
                Err(problem) => return Err(problem),
            }
        }
        match self.send(client, Call::post(PREFIXES).json(&refresh)?.repeatable()).await {
            Err(problem) if !is_absence(&problem) => Err(problem),
            _ => Ok(()),
        }
    }

    /// Looks up a conduit in the state of this member.
    ///
    /// # Errors
    /// Any failure.
    pub(crate) async fn conduit(&self, client: &Client, child: &KnownChild<'_>) -> Result<Conduit, Problem> {
        let found = self.find(client, child.family, child.conduit.as_str(), "stale").await?;
        Ok(match found {
            None => Conduit::Absent,
            Some(Prefix { waiting: Some(waiting), .. }) => Conduit::Waiting(waiting.message),
            Some(_) => Conduit::Present,
        })
    }

    /// Prefix at a path of owners.
    async fn find(
        &self,
        client: &Client,
        family: &FamilySettings,
        path: &str,
        consistency: &str,
    ) -> Result<Option<Prefix>, Problem> {
        let call = Call::get(PREFIXES)
            .query("pool", family.pool.as_str())
            .query("realm", self.settings.realm.as_str())
            .query("path", path)
            .query("consistency", consistency);
        let page: Page<Prefix> = self.send(client, call).await?.read()?;
        Ok(page.items.into_iter().next())
    }

    fn request(
        &self,
        family: &FamilySettings,
        through: Vec<PrefixLevel>,
        owner: ObjectName,
    ) -> DelegateRequest {
        DelegateRequest {
            pool: Some(family.pool.clone()),
            parent: None,
            realm: self.settings.realm.clone(),
            through,
            owner,
            length: None,
            keep_edges: false,
            ttl_ms: None,
            wait: false,
        }
    }

    fn node(&self, child: &KnownChild<'_>, length: Option<u8>) -> PrefixLevel {
        PrefixLevel { owner: child.node.clone(), length, keep_edges: true, ttl_ms: self.settings.ttl_ms }
    }

    /// Sends a request when it is its turn.
    pub(crate) async fn send(&self, client: &Client, call: Call) -> Result<Answer, Problem> {
        let place = timeout_at(client.deadline, self.places.take(&client.caller)).await;
        let late = || Problem::new(Code::DeadlineExceeded, "other calls took all the time of this one");
        let _place = place.map_err(|_| late())?;
        let rest = client.deadline.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Err(late());
        }
        self.servers.send(&client.caller, call.within(rest.min(Duration::from_millis(BUDGET_MS_MAX)))).await
    }
}

/// Conduit of a child, which must be there.
fn conduit(child: &KnownChild<'_>) -> PrefixLevel {
    PrefixLevel { owner: child.conduit.clone(), length: None, keep_edges: false, ttl_ms: None }
}

/// Step of a transaction.
pub(crate) fn step(
    method: StepMethod,
    path: String,
    body: Option<&impl serde::Serialize>,
) -> Result<TransactionStep, Problem> {
    let internal = |error: serde_json::Error| Problem::new(Code::Internal, error.to_string());
    let body = body.map(serde_json::to_value).transpose().map_err(internal)?;
    let body: Option<Map<String, Value>> = body.and_then(|body| body.as_object().cloned());
    Ok(TransactionStep { method, path, body, if_match: None })
}

/// True if nothing is there that a release could meet: it is gone, or is being cleared away.
fn is_absence(problem: &Problem) -> bool {
    matches!(problem.code, Code::NotFound | Code::InUse)
}
