//! One step of a pool of the management cluster.

use ipam_api::time::Timestamp;
use ipam_api::{Code, Problem};
use serde_json::json;

use super::failure::Failure;
use super::pool_apply::{Applied, apply, remove};
use super::shared::Shared;
use super::views::{PoolState, Views};
use crate::cluster_api::{PoolFacts, PoolKey, pool_status};
use crate::connection::{Target, finalizers};
use crate::custom::changes;
use crate::servers::{Servers, is_passing};

/// Result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// The pool matches its object, or the next step follows from an event.
    Done,
    /// The pool ends once its last address is released.
    Ends,
}

/// Takes the next step of a pool.
///
/// # Errors
/// A failure after which the step is retried, or a refusal of the spec, which may be accepted later.
pub(super) async fn take(shared: &Shared<impl Servers>, key: &PoolKey) -> Result<Course, Failure> {
    let Some(facts) = shared.views().pool(key).cloned() else { return Ok(Course::Done) };
    if facts.metadata.is_paused {
        return Ok(Course::Done);
    }
    if facts.metadata.is_ending {
        return end(shared, key, &facts).await;
    }
    // A move removes the finalizer of a pool before it deletes it. With a new one, the deletion would end the
    // pool of the moved claims.
    if !facts.metadata.is_held() && !facts.was_applied() {
        patch(shared, key, &facts, facts.metadata.with_finalizer()).await?;
        return Ok(Course::Done);
    }
    let applied = match apply(shared, key, &facts).await {
        Ok(applied) => applied,
        Err(problem) if is_passing(&problem) => {
            // A known state of the pool stays. Otherwise the claims must show why they wait.
            if !shared.views().states.contains_key(key) {
                note(shared, key, PoolState::Unreached(problem.clone()));
            }
            return Err(problem.into());
        }
        Err(problem) => Applied { refusal: Some(problem), ..Applied::default() },
    };
    let refusal = applied.refusal.map(|problem| with_object(&shared.views(), problem));
    let applied = Applied { refusal, ..applied };
    let state = match (&applied.ready, &applied.refusal) {
        // A refused change leaves the pool unchanged.
        (Some(ready), _) => PoolState::Ready(ready.clone()),
        (None, Some(problem)) => PoolState::Refused(problem.clone()),
        (None, None) => PoolState::Refused(Problem::new(Code::Internal, "the pool was not read")),
    };
    note(shared, key, state);
    let name = applied.ready.as_ref().map(|ready| &ready.name);
    let next =
        pool_status(key.kind, &facts, name, applied.refusal.as_ref(), applied.counts, Timestamp::now());
    if next != facts.status {
        let change = changes(&facts.status, &next);
        write(key, &facts, async |target| target.patch_status(&shared.client, change).await).await?;
    }
    applied.refusal.map_or(Ok(Course::Done), |_| Err(Failure::Shown))
}

/// Adds the object of the conflicting pool to a refusal, because names in ipamd are truncated.
fn with_object(views: &Views, problem: Problem) -> Problem {
    if problem.code != Code::Overlap {
        return problem;
    }
    let is_named = |state: &PoolState| match state {
        PoolState::Ready(pool) => {
            problem.detail.strip_suffix(pool.name.as_str()).is_some_and(|rest| rest.ends_with(' '))
        }
        PoolState::Refused(_) | PoolState::Unreached(_) => false,
    };
    match views.states.iter().find(|(_, state)| is_named(state)) {
        Some((key, _)) => Problem { detail: format!("{} ({key})", problem.detail), ..problem },
        None => problem,
    }
}

/// Records the state of a pool. If the state is new, the claims of the pool are retried.
fn note(shared: &Shared<impl Servers>, key: &PoolKey, state: PoolState) {
    let mut views = shared.views();
    if views.states.get(key) == Some(&state) || views.pool(key).is_none() {
        return;
    }
    views.states.insert(key.clone(), state);
    views.retry_claims_of(key);
    drop(views);
    shared.claims.notify_one();
}

/// Ends a pool once no claim on it holds an address.
async fn end(shared: &Shared<impl Servers>, key: &PoolKey, facts: &PoolFacts) -> Result<Course, Failure> {
    if !facts.metadata.is_held() {
        return Ok(Course::Done);
    }
    let is_in_use = shared.views().has_addresses(key);
    let turn = shared.pools_in_servers.lock().await;
    let is_removed = !is_in_use && remove(shared, key, facts).await?;
    drop(turn);
    if !is_removed {
        let problem = Problem::new(Code::InUse, format!("{key} has addresses of claims or other endpoints"));
        let problem = problem.help("The pool goes when its last address is released.");
        let next = pool_status(key.kind, facts, None, Some(&problem), None, Timestamp::now());
        let ready = next.get("conditions").cloned().unwrap_or_default();
        if facts.status.get("conditions") != Some(&ready) {
            let change = json!({"conditions": ready});
            write(key, facts, async |target| target.patch_status(&shared.client, change).await).await?;
        }
        return Ok(Course::Ends);
    }
    patch(shared, key, facts, facts.metadata.without_finalizer()).await?;
    Ok(Course::Done)
}

async fn patch(
    shared: &Shared<impl Servers>,
    key: &PoolKey,
    facts: &PoolFacts,
    kept: Vec<String>,
) -> Result<(), Failure> {
    let change = finalizers(kept);
    let version = &facts.metadata.version;
    write(key, facts, async |target| target.patch_metadata(&shared.client, version, change).await).await
}

async fn write(
    key: &PoolKey,
    facts: &PoolFacts,
    write: impl AsyncFnOnce(Target<'_>) -> kube::Result<()>,
) -> Result<(), Failure> {
    let (namespace, name) = (key.namespace.as_ref().map(|namespace| namespace.as_str()), key.name.as_str());
    let resource = key.kind.resource();
    Ok(write(Target { resource: &resource, namespace, name, uid: &facts.metadata.uid }).await?)
}
