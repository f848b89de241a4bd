//! Steps of a transaction: conversion to actions, and rendering of their results.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use ipam_api::access::Verb;
use ipam_api::name::{InterfaceName, ResourceName};
use ipam_api::request::{AllocateRequest, DelegateRequest, ReleaseAttachmentRequest, RenewRequest};
use ipam_api::resource::EndpointKey;
use ipam_api::transaction::{StepMethod, TransactionRequest, TransactionStep};
use ipam_api::{Code, Problem, strict};
use ipam_machine::command::{Delete, Expect, Kind, Renew};
use ipam_machine::{Action, Answer, State};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::paths::{Place, place};
use crate::http::allocation::{allocate, attachment, automatic, bulk, controller, endpoint, lease, prefix};
use crate::http::request::Identity;
use crate::http::request::propose::revision;
use crate::http::resource::named::{self, NamedResource};
use crate::http::resource::{host_policy, namespace, network, node, pool, reservation, subnet};

/// Renders the response to a step: its status and body, from the state after all steps.
pub(super) type Render = Box<dyn Fn(&State, Answer, u64) -> Rendered + Send + Sync>;
type Rendered = Result<(StatusCode, Option<Box<RawValue>>), Problem>;

/// Steps converted to actions.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) actions: Vec<Action>,
    pub(super) renders: Vec<Render>,
    /// Numbers of the steps whose change was merged into a resource of the state.
    pub(super) merged: BTreeSet<usize>,
    /// Interfaces of the attachments that steps allocate for, by number of the step.
    pub(super) attached: BTreeMap<usize, InterfaceName>,
    /// Resources as earlier steps leave them, for merges of later steps; none once removed.
    drafts: BTreeMap<(Kind, ResourceName), Option<Map<String, Value>>>,
}

impl Plan {
    pub(super) fn of(request: &TransactionRequest, state: &State, known: &Identity) -> Result<Self, Problem> {
        let mut plan = Self::default();
        for (number, step) in request.steps.iter().enumerate() {
            let made = plan.step(number, step, state, known).and_then(|(action, render)| {
                if let Some(permission) = action.permission() {
                    known.check(permission)?;
                }
                action.check()?;
                Ok((action, render))
            });
            let (action, render) = made.map_err(|problem| {
                let mut problem = problem.below(&format!("/steps/{number}"));
                problem.detail = format!("steps[{number}]: {}", problem.detail);
                problem.with(|context| context.step = u32::try_from(number).ok())
            })?;
            plan.actions.push(action);
            plan.renders.push(render);
        }
        Ok(plan)
    }

    fn step(
        &mut self,
        number: usize,
        step: &TransactionStep,
        state: &State,
        known: &Identity,
    ) -> Result<(Action, Render), Problem> {
        let (place, drain) = place(&step.path).map_err(|problem| problem.at("/path"))?;
        if drain && step.method != StepMethod::Delete {
            return Err(
                Problem::new(Code::ConflictingFields, "only what is deleted can be drained").at("/path")
            );
        }
        let body = || {
            let missing = || Problem::new(Code::ConflictingFields, "`body` is missing").at("/body");
            step.body.clone().ok_or_else(missing)
        };
        match (step.method, place) {
            (StepMethod::Post, Place::Allocations) => {
                let request: AllocateRequest = read(body()?)?;
                let endpoint = request.endpoint.clone();
                if let Some(key) = &request.attachment {
                    self.attached.insert(number, key.interface.clone());
                }
                Ok((allocate::to_command(request).map_err(in_body)?.into(), allocated(endpoint)))
            }
            (StepMethod::Post, Place::BulkAllocation) => {
                let (names, action) = bulk::allocation_of(read(body()?)?).map_err(in_body)?;
                let render: Render = Box::new(move |_, answer, revision| {
                    let (status, body) = bulk::allocated_many(&names, answer, revision)?;
                    Ok((status, json(&body)?))
                });
                Ok((action, render))
            }
            (StepMethod::Post, Place::BulkRelease) => {
                let render: Render = Box::new(|_, answer, revision| {
                    Ok((StatusCode::OK, json(&bulk::released_many(answer, revision)?)?))
                });
                Ok((bulk::release_of(read(body()?)?), render))
            }
            (StepMethod::Post, Place::ReleaseAttachment) => {
                let request: ReleaseAttachmentRequest = read(body()?)?;
                let action = attachment::release_of(request).map_err(|problem| problem.below("/body"))?;
                Ok((action, Box::new(released)))
            }
            (StepMethod::Post, Place::ScaleController) => {
                Ok((controller::scale_of(read(body()?)?), Box::new(released)))
            }
            (StepMethod::Post, Place::EndController) => {
                Ok((automatic::end_of(read(body()?)?), Box::new(released)))
            }
            (StepMethod::Post, Place::Renew(which)) => {
                let RenewRequest { ttl_ms } = match &step.body {
                    Some(body) => read(body.clone())?,
                    None => RenewRequest::default(),
                };
                Ok((Action::Renew(Renew { which, ttl_ms }), Box::new(renewed)))
            }
            (StepMethod::Delete, Place::Allocation(id)) => {
                Ok((Action::ReleaseAllocation { id: id.into() }, Box::new(released)))
            }
            (StepMethod::Post, Place::Prefixes) => {
                let request: DelegateRequest = read(body()?)?;
                let action = prefix::action_of(request).map_err(in_body)?;
                let render: Render = Box::new(|_, answer, revision| {
                    let (status, body) = prefix::delegated(answer, revision)?;
                    Ok((status, json(&body)?))
                });
                Ok((action, render))
            }
            (StepMethod::Put, Place::Prefixes) => {
                let action = prefix::list_of(read(body()?)?).map_err(in_body)?;
                let render: Render = Box::new(|_, answer, revision| {
                    Ok((StatusCode::OK, json(&prefix::are_set(answer, revision)?)?))
                });
                Ok((action, render))
            }
            (StepMethod::Delete, Place::Prefix(id)) => {
                let render: Render = Box::new(|_, answer, revision| {
                    Ok((StatusCode::OK, json(&prefix::released(answer, revision))?))
                });
                Ok((Action::ReleasePrefix { id: id.into() }, render))
            }
            (StepMethod::Delete, Place::Endpoint(key)) => {
                Ok((Action::ReleaseEndpoint { key }, Box::new(released)))
            }
            (StepMethod::Delete, Place::Named(kind, name)) => {
                let expect = expected(step, None)?;
                self.drafts.insert((kind, name.clone()), None);
                let render = match kind {
                    Kind::Network => named::<network::Networks>(name.clone()),
                    Kind::Subnet => named::<subnet::Subnets>(name.clone()),
                    Kind::Pool => named::<pool::Pools>(name.clone()),
                    Kind::Reservation | Kind::Token => named::<reservation::Reservations>(name.clone()),
                    Kind::Node => named::<node::Nodes>(name.clone()),
                    Kind::Namespace => named::<namespace::Namespaces>(name.clone()),
                    Kind::HostPolicy => named::<host_policy::HostPolicies>(name.clone()),
                };
                Ok((Action::Delete(Delete { kind, name, expect, drain }), render))
            }
            (StepMethod::Put | StepMethod::Patch, Place::Named(kind, name)) => {
                let write = Written { number, step, body: body()?, name: Some(name), state, known };
                self.write(kind, write)
            }
            (StepMethod::Post, Place::Kind(kind)) => {
                let write = Written { number, step, body: body()?, name: None, state, known };
                self.write(kind, write)
            }
            _ => {
                let method = format!("{:?}", step.method).to_uppercase();
                let detail = format!("{method} is not allowed for {}", step.path);
                Err(Problem::new(Code::ConflictingFields, detail).at("/method"))
            }
        }
    }

    fn write(&mut self, kind: Kind, write: Written<'_>) -> Result<(Action, Render), Problem> {
        match kind {
            Kind::Network => self.write_as::<network::Networks>(write),
            Kind::Subnet => self.write_as::<subnet::Subnets>(write),
            Kind::Pool => self.write_as::<pool::Pools>(write),
            Kind::Reservation | Kind::Token => self.write_as::<reservation::Reservations>(write),
            Kind::Node => self.write_as::<node::Nodes>(write),
            Kind::Namespace => self.write_as::<namespace::Namespaces>(write),
            Kind::HostPolicy => self.write_as::<host_policy::HostPolicies>(write),
        }
    }

    fn write_as<K: NamedResource>(&mut self, write: Written<'_>) -> Result<(Action, Render), Problem> {
        let Written { number, step, body, name, state, known } = write;
        let said = expected(step, Some(&body))?;
        let (spec, expect) = match (step.method, name) {
            (StepMethod::Patch, Some(name)) => {
                known.check((Verb::Write, K::KIND.target()))?;
                match self.drafts.get(&(K::KIND, name.clone())) {
                    // An earlier step wrote the resource; no other write can come between the steps.
                    Some(draft) => {
                        let unknown = || named::unknown(state, K::KIND, &name);
                        let draft = draft.clone().ok_or_else(unknown)?;
                        (named::merge_into::<K>(draft, &name, body).map_err(in_body)?, said)
                    }
                    None => {
                        let (spec, read_at) = named::merged::<K>(state, &name, body).map_err(in_body)?;
                        if said == Expect::Anything {
                            self.merged.insert(number);
                        }
                        let expect = if said == Expect::Anything { Expect::Revision(read_at) } else { said };
                        (spec, expect)
                    }
                }
            }
            (_, name) => {
                let spec = named::read::<K>(body).map_err(in_body)?;
                let own = K::name(&spec);
                if let Some(name) = name.as_ref().filter(|name| **name != own) {
                    let detail = format!("the body names {own} and the path {name}");
                    return Err(Problem::new(Code::ConflictingFields, detail).at("/body/name"));
                }
                (spec, if name.is_none() { Expect::Absent } else { said })
            }
        };
        let name = K::name(&spec);
        if let Ok(Value::Object(draft)) = serde_json::to_value(&spec) {
            self.drafts.insert((K::KIND, name.clone()), Some(draft));
        }
        Ok((K::put(spec, expect), named::<K>(name)))
    }
}

/// A step that writes a resource.
struct Written<'a> {
    number: usize,
    step: &'a TransactionStep,
    body: Map<String, Value>,
    /// The name in the path.
    name: Option<ResourceName>,
    state: &'a State,
    known: &'a Identity,
}

fn in_body(problem: Problem) -> Problem {
    problem.below("/body")
}

fn read<T: serde::de::DeserializeOwned>(body: Map<String, Value>) -> Result<T, Problem> {
    strict::from_object(body).map_err(in_body)
}

/// Precondition of a step: `if_match`, else the revision in the body.
fn expected(step: &TransactionStep, body: Option<&Map<String, Value>>) -> Result<Expect, Problem> {
    match (&step.if_match, body.and_then(named::revision_in)) {
        (Some(etag), _) => {
            revision(etag, "if_match").map(Expect::Revision).map_err(|problem| problem.at("/if_match"))
        }
        (None, Some(revision)) => Ok(Expect::Revision(revision)),
        (None, None) => Ok(Expect::Anything),
    }
}

fn json(body: &impl Serialize) -> Result<Option<Box<RawValue>>, Problem> {
    let unwritable = |error: serde_json::Error| Problem::new(Code::Internal, error.to_string());
    to_raw_value(body).map(Some).map_err(unwritable)
}

/// Response to the write or removal of a resource.
fn named<K: NamedResource>(name: ResourceName) -> Render {
    Box::new(move |state, answer, _| match answer {
        Answer::Stored { created, resource, .. } => {
            let status = if created { StatusCode::CREATED } else { StatusCode::OK };
            let row = K::stored(*resource);
            Ok((status, row.map(|row| json(&K::view(state, &row))).transpose()?.flatten()))
        }
        Answer::Draining { .. } => {
            let view = state.id_of(K::KIND, &name).and_then(|id| K::show(state, id));
            Ok((StatusCode::ACCEPTED, view.map(|view| json(&view)).transpose()?.flatten()))
        }
        _ => Ok((StatusCode::NO_CONTENT, None)),
    })
}

fn allocated(endpoint: EndpointKey) -> Render {
    Box::new(move |_, answer, revision| {
        let (status, body) = allocate::allocated(endpoint.clone(), answer, revision)?;
        Ok((status, json(&body)?))
    })
}

fn renewed(_: &State, answer: Answer, revision: u64) -> Rendered {
    Ok((StatusCode::OK, json(&lease::answer(answer, revision)?)?))
}

fn released(_: &State, answer: Answer, revision: u64) -> Rendered {
    Ok((StatusCode::OK, json(&endpoint::freed(answer, revision))?))
}
