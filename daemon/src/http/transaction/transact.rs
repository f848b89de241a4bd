//! `/v1/transactions`: several changes as one log entry, all or none.

use std::collections::{BTreeMap, BTreeSet};

use ipam_api::limits::TRANSACTION_STEPS_MAX;
use ipam_api::name::InterfaceName;
use ipam_api::transaction::{StepMethod, StepResult, TransactionAnswer, TransactionRequest};
use ipam_api::{Code, Problem};
use ipam_machine::command::{Manager, Text, Transaction};
use ipam_machine::{Action, Answer, State};
use serde_json::Value;
use serde_json::value::RawValue;

use super::paths;
use super::steps::{Plan, Render};
use crate::http::allocation::bulk;
use crate::http::request::{ApiError, ApiResponse, Proposed, Write};
use crate::http::resource::named::TRIES_MAX;

type Body = TransactionAnswer<Box<RawValue>>;

pub(in crate::http) async fn transact(mut write: Write) -> Result<ApiResponse<Body>, ApiError> {
    let request: TransactionRequest = write.read()?;
    if request.steps.len() > TRANSACTION_STEPS_MAX {
        let detail = format!("{} steps; at most {TRANSACTION_STEPS_MAX} fit", request.steps.len());
        return Err(Problem::new(Code::LimitExceeded, detail).at("/steps").into());
    }
    if write.manager.is_none() {
        write.manager = common_manager(&request);
    }
    let known = write.app.who(&write.caller).await?;
    let preconditions = paths::preconditions(&request.conditions)?;
    let merges = request.steps.iter().any(|step| step.method == StepMethod::Patch);
    let mut tries_left = TRIES_MAX;
    loop {
        let state = match merges {
            true => write.app.node.read(write.caller.deadline).await?,
            // Nothing is merged, so no state is needed.
            false => State::new(),
        };
        let plan = Plan::of(&request, &state, &known)?;
        if merges && let Some(done) = write.kept(&state)? {
            return Ok(shown(&write, &plan.renders, &plan.attached, done).await?);
        }
        let steps = plan.actions;
        let action = Action::Transaction(Transaction { preconditions: preconditions.clone(), steps });
        tries_left -= 1;
        match write.carry_out(action).await {
            // Another write intervened, and the request had no precondition: merge again.
            Err(problem) if tries_left > 0 && is_of(&problem, &plan.merged) => {}
            done => return Ok(shown(&write, &plan.renders, &plan.attached, done?).await?),
        }
    }
}

/// True if the resource of a merged step has changed since it was read.
fn is_of(problem: &Problem, merged: &BTreeSet<usize>) -> bool {
    let step = problem.context.as_ref().and_then(|context| context.step);
    let step = step.and_then(|step| usize::try_from(step).ok());
    problem.code == Code::RevisionMismatch && step.is_some_and(|step| merged.contains(&step))
}

/// Common manager of a request: the only manager that its bodies name, if there is exactly one.
fn common_manager(request: &TransactionRequest) -> Option<Manager> {
    let bodies = request.steps.iter().filter_map(|step| step.body.as_ref());
    let named: BTreeSet<&str> =
        bodies.filter_map(|body| body.get("managed_by").and_then(Value::as_str)).collect();
    match (named.first(), named.len()) {
        (Some(name), 1) => Some(Manager::Named(Text::given(*name))),
        _ => None,
    }
}

async fn shown(
    write: &Write,
    renders: &[Render],
    attached: &BTreeMap<usize, InterfaceName>,
    done: Proposed,
) -> Result<ApiResponse<Body>, Problem> {
    let state = write.after(&done).await;
    let revision = done.applied.revision;
    let Answer::Steps(answers) = done.applied.answer else {
        return Err(Problem::new(Code::Internal, "the machine gave another answer than was asked for"));
    };
    let counts = !write.dry_run;
    let result = |(number, (answer, render)): (usize, (Answer, &Render))| {
        match &answer {
            Answer::Allocated { repeated, interfaces } if counts => {
                write.app.metrics.allocated(attached.get(&number), interfaces, *repeated);
            }
            Answer::AllocatedMany(many) if counts => bulk::count(&write.app.metrics, many),
            _ => {}
        }
        let (status, body) = render(&state, answer, revision)?;
        Ok(StepResult { status: status.as_u16(), body })
    };
    let results = answers.into_iter().zip(renders).enumerate().map(result).collect::<Result<_, Problem>>()?;
    Ok(ApiResponse::new(TransactionAnswer { results, revision }, revision))
}
