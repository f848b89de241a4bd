//! `/v1/workloads`: verdicts on workloads that an orchestrator reports, and the release of their addresses.

use std::collections::BTreeSet;

use ipam_api::access::{Target, Verb};
use ipam_api::limits::{RECLAIM_LINES_MAX, TEXT_CHARS_MAX, WORKLOADS_MAX};
use ipam_api::name::Name;
use ipam_api::resource::EndpointKey;
use ipam_api::time::Timestamp;
use ipam_api::workload::{
    Workload, WorkloadReason, WorkloadResult, WorkloadVerdict, WorkloadsAnswer, WorkloadsRequest,
};
use ipam_api::{Code, Problem};
use ipam_machine::command::Transaction;
use ipam_machine::{Action, Answer, Cause, Grant, Refusal, State};

use super::agent::another_answer;
use crate::http::allocation::endpoint::freed;
use crate::http::request::{ApiError, ApiResponse, Freshness, Write};
use crate::tasks::GcSettings;
use crate::workload::{Facts, Incarnation, Verdict, verdict};

/// Attempts on states that other releases overtake.
const TRIES_MAX: usize = 32;

const PERMISSION: (Verb, Target) = (Verb::Release, Target::Endpoint);

/// Judges all workloads on the present state, and releases by id. Not atomic: many workloads take several log
/// entries, and a request that fails may have released some addresses.
pub(in crate::http) async fn judge(mut write: Write) -> Result<ApiResponse<WorkloadsAnswer>, ApiError> {
    // The answer depends on the state, and a repetition finds nothing to release.
    write.idempotency = None;
    let request: WorkloadsRequest = write.read()?;
    check(&request)?;
    let known = write.app.who(&write.caller).await?;
    known.check(PERMISSION)?;
    check_realm(&known.grant, &request.realm)?;
    let mut results = Vec::new();
    let mut tries_left = TRIES_MAX;
    loop {
        let rest = request.workloads.get(results.len()..).unwrap_or_default();
        let (state, _) = write.app.read(&write.caller, PERMISSION, Freshness::default()).await?;
        let mut batch = Batch::of(&state, &request.realm, rest, write.app.gc);
        let mut revision = state.revision();
        if !batch.releases.is_empty() {
            match write.propose(batch.action()).await {
                // An allocation has been released since the state was read.
                Err(problem) if problem.code == Code::AllocationChanged && tries_left > 0 => {
                    tries_left -= 1;
                    continue;
                }
                applied => {
                    let applied = applied?;
                    revision = applied.revision;
                    batch.note(applied.answer)?;
                }
            }
        }
        results.append(&mut batch.results);
        if results.len() >= request.workloads.len() {
            return Ok(ApiResponse::new(WorkloadsAnswer { results, revision }, revision));
        }
    }
}

fn check(request: &WorkloadsRequest) -> Result<(), Problem> {
    let count = request.workloads.len();
    if count > WORKLOADS_MAX {
        let detail = format!("{count} workloads; at most {WORKLOADS_MAX} fit");
        return Err(Problem::new(Code::LimitExceeded, detail).at("/workloads"));
    }
    let mut seen = BTreeSet::new();
    for (number, Workload { endpoint, uid, .. }) in request.workloads.iter().enumerate() {
        let at = || format!("/workloads/{number}/uid");
        if uid.chars().count() > TEXT_CHARS_MAX {
            let detail = format!("a uid has at most {TEXT_CHARS_MAX} characters");
            return Err(Problem::new(Code::LimitExceeded, detail).at(at()));
        }
        if uid.chars().any(char::is_control) {
            let detail = "a uid has no control characters";
            return Err(Problem::new(Code::InvalidField, detail).at(at()));
        }
        if !seen.insert((endpoint, uid)) {
            let detail = "two observations are about the same workload";
            return Err(Problem::new(Code::ConflictingFields, detail).at(at()));
        }
    }
    Ok(())
}

/// Refuses another realm than those of the caller. Releases are checked again when they are applied.
fn check_realm(grant: &Grant, realm: &Name) -> Result<(), Problem> {
    if grant.realms.is_empty() || grant.realms.contains(realm) {
        return Ok(());
    }
    Err(Refusal::from(Cause::RealmForbidden { realm: realm.clone() }).into())
}

/// Workloads that one log entry serves.
struct Batch {
    results: Vec<WorkloadResult>,
    /// Releases, each with the index of its result.
    releases: Vec<(usize, Action)>,
}

impl Batch {
    /// Judges the first workloads, until their releases fill an entry. At least one fits, since no endpoint
    /// has more allocations.
    fn of(state: &State, realm: &Name, workloads: &[Workload], gc: GcSettings) -> Self {
        let mut batch = Self { results: Vec::new(), releases: Vec::new() };
        for observed in workloads {
            let (result, releases) = judged(state, realm, observed, gc);
            if !batch.releases.is_empty() && batch.releases.len() + releases.len() > RECLAIM_LINES_MAX {
                break;
            }
            let number = batch.results.len();
            batch.releases.extend(releases.into_iter().map(|release| (number, release)));
            batch.results.push(result);
        }
        batch
    }

    fn action(&self) -> Action {
        let steps = self.releases.iter().map(|(_, release)| release.clone()).collect();
        Action::Transaction(Transaction { preconditions: Vec::new(), steps })
    }

    /// Adds the released addresses to the results.
    fn note(&mut self, answer: Answer) -> Result<(), Problem> {
        let Answer::Steps(answers) = answer else { return Err(another_answer()) };
        for ((number, _), answer) in self.releases.iter().zip(answers) {
            if let Some(result) = self.results.get_mut(*number) {
                result.addresses.extend(freed(answer, 0).addresses);
            }
        }
        Ok(())
    }
}

/// Verdict on a workload, and the releases that it demands.
fn judged(state: &State, realm: &Name, observed: &Workload, gc: GcSettings) -> (WorkloadResult, Vec<Action>) {
    let name = observed.endpoint.clone();
    let key =
        EndpointKey { realm: realm.clone(), kind: name.kind, namespace: name.namespace, name: name.name };
    let mut result = WorkloadResult {
        uid: observed.uid.clone(),
        verdict: WorkloadVerdict::Unknown,
        reason: WorkloadReason::UidUnknown,
        due_at: None,
        addresses: Vec::new(),
        kept: 0,
    };
    let Some(incarnation) = Incarnation::find(state, &key, &observed.uid) else {
        return (result, Vec::new());
    };
    let facts = Facts { observed, known: incarnation.known(observed, gc.node_grace_ms) };
    let mut releases = Vec::new();
    (result.verdict, result.reason) = match verdict(facts, gc.workloads, Timestamp::now()) {
        Verdict::Keep(reason) => (WorkloadVerdict::Keep, reason),
        Verdict::Later { reason, due_at } => {
            result.due_at = Some(due_at);
            (WorkloadVerdict::Later, reason)
        }
        Verdict::Reclaim(reason) => {
            let (ids, kept) = incarnation.releasable();
            result.kept = kept as u64;
            releases = ids.into_iter().map(|id| Action::ReleaseAllocation { id }).collect();
            (WorkloadVerdict::Reclaim, reason)
        }
    };
    (result, releases)
}
