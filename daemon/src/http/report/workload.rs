//! `/v1/workloads`: verdicts on reported workloads, and the release of their addresses.

use std::collections::{BTreeMap, BTreeSet};

use ipam_api::access::{Target, Verb};
use ipam_api::limits::{RECLAIM_LINES_MAX, TEXT_CHARS_MAX, WORKLOADS_MAX};
use ipam_api::name::Name;
use ipam_api::resource::EndpointKey;
use ipam_api::time::Timestamp;
use ipam_api::workload::{
    Workload, WorkloadReason, WorkloadResult, WorkloadVerdict, WorkloadsAnswer, WorkloadsRequest,
};
use ipam_api::{Code, Problem};
use ipam_machine::command::{EndIncarnation, Transaction};
use ipam_machine::{Action, Answer, Cause, Grant, Refusal, State};

use super::agent::another_answer;
use crate::http::request::{ApiError, ApiResponse, Freshness, Write};
use crate::tasks::GcSettings;
use crate::workload::{Facts, Incarnation, Verdict, verdict};

/// Maximum number of log entries of one request: one per workload, and some for concurrent changes.
const ROUNDS_MAX: usize = WORKLOADS_MAX + 32;

const PERMISSION: (Verb, Target) = (Verb::Release, Target::Endpoint);

/// Judges all workloads on the present state, and releases addresses as the verdicts require. Not atomic:
/// many workloads take several log entries, and a request that fails may have released some addresses.
pub(in crate::http) async fn judge(mut write: Write) -> Result<ApiResponse<WorkloadsAnswer>, ApiError> {
    // The answer depends on the state, and a repetition finds nothing to release.
    write.idempotency = None;
    let request: WorkloadsRequest = write.read()?;
    check(&request)?;
    let known = write.app.who(&write.caller).await?;
    known.check(PERMISSION)?;
    check_realm(&known.grant, &request.realm)?;
    let mut results: BTreeMap<usize, WorkloadResult> = BTreeMap::new();
    for _ in 0..ROUNDS_MAX {
        let (state, _) = write.app.read(&write.caller, PERMISSION, Freshness::default()).await?;
        let open = request.workloads.iter().enumerate().filter(|(number, _)| !results.contains_key(number));
        let mut batch = Batch::of(&state, &request.realm, open, write.app.gc);
        let mut revision = state.revision();
        if !batch.ends.is_empty() {
            let applied = write.propose(batch.action()).await?;
            revision = applied.revision;
            batch.note(applied.answer)?;
        }
        results.append(&mut batch.results);
        if results.len() >= request.workloads.len() {
            let results = results.into_values().collect();
            return Ok(ApiResponse::new(WorkloadsAnswer { results, revision }, revision));
        }
    }
    let detail = format!("workloads changed in each of {ROUNDS_MAX} attempts");
    Err(Problem::new(Code::AllocationChanged, detail).into())
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

/// Refuses a realm that the caller's grant excludes. Releases are checked again when they are applied.
pub(super) fn check_realm(grant: &Grant, realm: &Name) -> Result<(), Problem> {
    if grant.realms.is_empty() || grant.realms.contains(realm) {
        return Ok(());
    }
    Err(Refusal::from(Cause::RealmForbidden { realm: realm.clone() }).into())
}

/// Workloads that one log entry serves.
#[derive(Default)]
struct Batch {
    /// Results by the number of their workload.
    results: BTreeMap<usize, WorkloadResult>,
    /// Ends of incarnations, each with the number of its workload.
    ends: Vec<(usize, EndIncarnation)>,
}

impl Batch {
    /// Judges the first workloads, until their ends fill a log entry. At least one fits, since an endpoint
    /// has no more allocations than an entry.
    fn of<'a>(
        state: &State,
        realm: &Name,
        workloads: impl Iterator<Item = (usize, &'a Workload)>,
        gc: GcSettings,
    ) -> Self {
        let mut batch = Self::default();
        let mut lines = 0;
        for (number, observed) in workloads {
            let (result, end) = judged(state, realm, observed, gc);
            lines += end.as_ref().map_or(0, |end| end.allocations.len().max(1));
            if lines > RECLAIM_LINES_MAX && !batch.ends.is_empty() {
                break;
            }
            batch.ends.extend(end.map(|end| (number, end)));
            batch.results.insert(number, result);
        }
        batch
    }

    fn action(&self) -> Action {
        let steps = self.ends.iter().map(|(_, end)| Action::EndIncarnation(end.clone())).collect();
        Action::Transaction(Transaction { preconditions: Vec::new(), steps })
    }

    /// Adds the released addresses to the results. Incarnations that changed since the state was read have no
    /// result: they are judged again.
    fn note(&mut self, answer: Answer) -> Result<(), Problem> {
        let Answer::Steps(answers) = answer else { return Err(another_answer()) };
        for ((number, _), answer) in self.ends.iter().zip(answers) {
            let Answer::Reclaimed { addresses, stale } = answer else { return Err(another_answer()) };
            if stale > 0 {
                self.results.remove(number);
            } else if let Some(result) = self.results.get_mut(number) {
                result.kept = result.kept.saturating_sub(addresses.len() as u64);
                result.addresses = addresses;
            }
        }
        Ok(())
    }
}

/// Verdict on a workload, and the end of its incarnation if that is due. All of its allocations count as kept
/// until their release.
fn judged(
    state: &State,
    realm: &Name,
    observed: &Workload,
    gc: GcSettings,
) -> (WorkloadResult, Option<EndIncarnation>) {
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
        return (result, None);
    };
    let facts = Facts { observed, known: incarnation.known(observed, gc.node_grace_ms) };
    let judged = verdict(facts, gc.workloads, Timestamp::now());
    let end = match judged {
        Verdict::Detach(_) | Verdict::Reclaim(_) => {
            result.kept = incarnation.size() as u64;
            incarnation.end(&observed.uid)
        }
        Verdict::Keep(_) | Verdict::Later { .. } => None,
    };
    (result.verdict, result.reason) = match judged {
        Verdict::Keep(reason) | Verdict::Detach(reason) => (WorkloadVerdict::Keep, reason),
        Verdict::Later { reason, due_at } => {
            result.due_at = Some(due_at);
            (WorkloadVerdict::Later, reason)
        }
        Verdict::Reclaim(reason) => (WorkloadVerdict::Reclaim, reason),
    };
    (result, end)
}
