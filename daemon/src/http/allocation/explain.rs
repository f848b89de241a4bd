//! `/v1/allocations/explain`: result and reasons of an allocation request, without any effect.

use std::collections::BTreeSet;

use ipam_api::access::{Role, Target, Verb};
use ipam_api::explain::{Candidate, Choice, Explanation, Help, Skipped};
use ipam_api::request::AllocateRequest;
use ipam_api::{Code, Problem};
use ipam_machine::command::{Credential, Text, Via};
use ipam_machine::explain::{CandidateOutcome, Considered, Explained, explain};
use ipam_machine::{Action, Answer, Command, Grant, Origin, Terms};

use super::allocate::to_command;
use crate::http::convert::interface;
use crate::http::request::propose::now_in;
use crate::http::request::{ApiError, ApiResponse, ExplainQuery, Write};

pub(in crate::http) async fn of_allocation(
    write: Write<ExplainQuery>,
) -> Result<ApiResponse<Explanation>, ApiError> {
    let request: AllocateRequest = write.read()?;
    let known = write.app.who(&write.caller).await?;
    known.check((Verb::Read, Target::Allocation))?;
    let mut command = to_command(request)?;
    // A refusal must be explained and not waited for, so `wait` is ignored.
    command.options.wait = false;
    let action = Action::from(command);
    action.check()?;
    // A reader may explain requests of callers that may allocate; the limits of the reader's token apply.
    let rights = Credential::Known(Grant { role: Role::Admin, ..known.grant });
    let origin = Origin {
        principal: known.principal,
        via: Via::Http,
        request_id: Text::clone(&write.caller.request_id),
        comment: None,
        not_after_ms: None,
    };
    let terms = Terms { credential: rights, idempotency: None, manager: Default::default() };
    let command = Command { origin, terms, action };
    let state = write.app.node.read(write.caller.deadline).await?;
    let at = now_in(&state);
    let revision = state.revision();
    let principal = Text::clone(&command.origin.principal);
    let node = write.app.node.clone();
    let explain_it = move || node.guard(|| explain(&state, at, &command));
    let explained = write.app.trials.run(&principal, write.caller.deadline, explain_it).await?;
    let explained = explained?;
    let helps = if explained.outcome.is_err() { helps(&explained.choices) } else { Vec::new() };
    let (outcome, interfaces, problem) = match explained.outcome {
        Ok(applied) => match applied.answer {
            Answer::Allocated { repeated, interfaces } => {
                let outcome = if repeated { "repeated" } else { "given" };
                (outcome, interfaces.iter().map(interface).collect(), None)
            }
            _ => ("given", Vec::new(), None),
        },
        Err(refusal) => ("refused", Vec::new(), Some(Problem::from(refusal))),
    };
    let choice = |explained| choice(explained, write.query.all_skipped);
    let choices = explained.choices.into_iter().map(choice).collect();
    let body = Explanation { outcome: outcome.to_owned(), interfaces, problem, choices, helps, revision };
    Ok(ApiResponse::new(body, revision))
}

fn choice(explained: Explained, all_skipped: bool) -> Choice {
    let Explained { interface, family, rule, candidates, more, skipped, given, kept, refused: _ } = explained;
    let skipped = skipped.into_iter().map(|one| Skipped {
        verdict: one.why.code().to_string(),
        reason: one.why.to_string(),
        count: one.count,
        pools: one.pools.into_iter().take(if all_skipped { usize::MAX } else { 1 }).collect(),
    });
    let skipped = skipped.collect();
    let (pool, address) = given.unzip();
    Choice {
        interface,
        family,
        came_from: rule.as_str().to_owned(),
        candidates: candidates.into_iter().map(candidate).collect(),
        more,
        skipped,
        pool,
        address,
        kept,
    }
}

fn candidate(considered: Considered) -> Candidate {
    let Considered { pool, outcome, counts, next_free_ms, unassigned: _ } = considered;
    let (verdict, reason, address) = match outcome {
        CandidateOutcome::Rejected { why } => (why.code().to_string(), Some(why.to_string()), None),
        CandidateOutcome::Exhausted => ("exhausted".to_owned(), None, None),
        CandidateOutcome::Unavailable => ("unavailable".to_owned(), None, None),
        CandidateOutcome::Gives(address) => ("gives".to_owned(), None, Some(address)),
    };
    Candidate { pool, verdict, reason, address, counts: counts.into(), next_free_ms }
}

/// Remedies for a refusal, without duplicates.
fn helps(choices: &[Explained]) -> Vec<Help> {
    let mut helps = Vec::new();
    let mut named = BTreeSet::new();
    for one in choices.iter().filter(|choice| choice.given.is_none()).flat_map(|choice| &choice.candidates) {
        if !named.insert(&one.pool) {
            continue;
        }
        let help = |action: &str| Help {
            action: action.to_owned(),
            pool: one.pool.clone(),
            wait_ms: None,
            range: None,
        };
        match &one.outcome {
            CandidateOutcome::Exhausted => {
                helps.extend(one.next_free_ms.map(|wait_ms| Help { wait_ms: Some(wait_ms), ..help("wait") }));
                helps.extend(one.unassigned.map(|range| Help { range: Some(range), ..help("add-range") }));
            }
            CandidateOutcome::Rejected { why } if why.code() == Code::PoolDisabled => {
                helps.push(help("enable"))
            }
            _ => {}
        }
    }
    helps
}
