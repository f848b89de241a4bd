//! Transactions of sessions: several steps, all or none.

use ipam_api::Problem;
use ipam_api::client::Call;
use ipam_api::request::{Allocated, BulkAllocated, BulkAllocation, Released};
use ipam_api::transaction::{StepResult, TransactionAnswer};
use serde_json::{Value as Json, json};

use super::requests::{Wanted, endpoint_key, grants_of};
use super::resources::NETWORK;
use super::session::add_detail;
use super::{At, Session};
use crate::history::{Function, Grant, Value};

/// One step.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Allocation for an endpoint.
    Allocate(Wanted),
    /// Allocations for endpoints of a kind and namespace in one bulk; they differ in their names only.
    AllocateMany(Vec<Wanted>),
    /// Release of one allocation of an endpoint.
    Release(String, Grant),
    /// Any other step, as in `TransactionRequest`.
    Other(Json),
}

/// Steps with the preconditions of all.
#[derive(Debug, Clone, Default)]
pub(super) struct Batch {
    /// Steps in order.
    pub(super) steps: Vec<Step>,
    /// Preconditions as in `TransactionRequest`.
    pub(super) conditions: Vec<Json>,
}

impl Batch {
    fn body(&self) -> Json {
        let step = |step: &Step| match step {
            Step::Allocate(wanted) => {
                json!({"method": "POST", "path": "/v1/allocations", "body": wanted.body()})
            }
            Step::AllocateMany(all) => {
                json!({"method": "POST", "path": "/v1/allocations/bulk", "body": bulk_body(all)})
            }
            Step::Release(_, grant) => {
                json!({"method": "DELETE", "path": format!("/v1/allocations/{}", grant.id)})
            }
            Step::Other(step) => step.clone(),
        };
        let steps: Vec<Json> = self.steps.iter().map(step).collect();
        json!({"if": self.conditions, "steps": steps})
    }

    /// Arguments of the operation. `grants` are the grants that it should end, each with its endpoint;
    /// `detail.allocates` has the endpoints that get addresses.
    fn value(&self, key: Option<&str>) -> Value {
        let mut value = Value { key: key.map(str::to_owned), ..Value::default() };
        let mut allocates = Vec::new();
        for step in &self.steps {
            match step {
                Step::Allocate(wanted) => {
                    allocates.push(Json::from(wanted.endpoint.clone()));
                    value.pools.extend(wanted.pools.iter().cloned());
                }
                Step::AllocateMany(all) => {
                    allocates.extend(all.iter().map(|wanted| Json::from(wanted.endpoint.clone())));
                    value.pools.extend(all.iter().flat_map(|wanted| wanted.pools.iter().cloned()));
                }
                Step::Release(endpoint, grant) => {
                    value.grants.push(Grant { endpoint: Some(endpoint.clone()), ..grant.clone() });
                }
                Step::Other(_) => {}
            }
        }
        value.pools.sort_unstable();
        value.pools.dedup();
        value.detail = json!({"steps": self.steps.len(), "allocates": allocates});
        if !self.conditions.is_empty() {
            add_detail(&mut value, "if", self.conditions.clone().into());
        }
        value
    }

    /// Grants that the steps made, each with its endpoint.
    fn made(&self, answer: &TransactionAnswer) -> Vec<Grant> {
        let mut made = Vec::new();
        for (step, result) in self.steps.iter().zip(&answer.results) {
            if let (Step::AllocateMany(all), Some(body)) = (step, body::<BulkAllocated>(result)) {
                made.extend(body.allocations.iter().filter_map(|one| bulk_grant(all, one)));
            }
            if let (Step::Allocate(wanted), Some(body)) = (step, body::<Allocated>(result)) {
                let endpoint = Some(wanted.endpoint.clone());
                made.extend(
                    grants_of(&body).into_iter().map(|grant| Grant { endpoint: endpoint.clone(), ..grant }),
                );
            }
        }
        made
    }

    /// Grants that the steps ended, each with its endpoint.
    fn ended(&self, answer: &TransactionAnswer) -> Vec<Grant> {
        let mut ended = Vec::new();
        for (step, result) in self.steps.iter().zip(&answer.results) {
            if let (Step::Release(endpoint, grant), Some(body)) = (step, body::<Released>(result))
                && !body.addresses.is_empty()
            {
                ended.push(Grant { endpoint: Some(endpoint.clone()), ..grant.clone() });
            }
        }
        ended
    }
}

/// Name of an endpoint, behind its kind, realm and namespace.
fn name_of(endpoint: &str) -> &str {
    endpoint.splitn(4, '/').nth(3).unwrap_or_default()
}

/// Body of a bulk: the common fields of the endpoints, and their names.
fn bulk_body(all: &[Wanted]) -> Json {
    let mut body = all.first().map(|wanted| endpoint_key(&wanted.endpoint)).unwrap_or_default();
    let names: Vec<&str> = all.iter().map(|wanted| name_of(&wanted.endpoint)).collect();
    let interface = all.first().and_then(|wanted| wanted.interfaces.first());
    if let Some(body) = body.as_object_mut() {
        body.remove("name");
        body.insert("names".to_owned(), json!(names));
        body.insert("interface".to_owned(), json!(interface));
    }
    body
}

/// Grant of one line of a bulk, with its endpoint.
fn bulk_grant(all: &[Wanted], one: &BulkAllocation) -> Option<Grant> {
    let is_meant = |wanted: &&Wanted| name_of(&wanted.endpoint) == one.name.as_str();
    let endpoint = all.iter().find(is_meant)?.endpoint.clone();
    Some(Grant {
        id: one.allocation,
        network: NETWORK.to_owned(),
        address: one.address.addr().to_string(),
        pool: Some(one.pool.to_string()),
        endpoint: Some(endpoint),
    })
}

fn body<T: serde::de::DeserializeOwned>(result: &StepResult) -> Option<T> {
    serde_json::from_value(result.body.clone()?).ok()
}

impl Session {
    /// Carries out a transaction. Returns the grants that it made, each with its endpoint.
    ///
    /// The end records the grants that were made and those that ended; the latter are among the grants of the
    /// begin.
    pub(super) async fn transact(
        &mut self,
        at: At,
        batch: &Batch,
        key: Option<&str>,
    ) -> Result<Vec<Grant>, Problem> {
        let call = self.prepared(Call::post("/v1/transactions").json(&batch.body())?, key).slow();
        let answer: TransactionAnswer = self
            .call(at, Function::Transaction, batch.value(key), call, |answer, value| {
                value.grants = batch.made(answer);
                value.grants.extend(batch.ended(answer));
            })
            .await?;
        Ok(batch.made(&answer))
    }
}
