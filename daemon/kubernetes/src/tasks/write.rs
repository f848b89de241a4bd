//! One write of a resource of the servers.

use ipam_api::client::{Answer, Call};
use ipam_api::problem::Applied;
use ipam_api::{Code, Problem};
use serde::de::DeserializeOwned;

use crate::servers::Servers;

/// Outcome of a write.
pub(super) enum Outcome<T> {
    /// The servers have applied the write.
    Done(Answer),
    /// Another writer came first, or the outcome is unknown. `present` is the present resource, if it exists.
    Raced { problem: Problem, present: Option<T> },
}

/// Sends a write of the resource at a path. After a race the resource is read.
///
/// # Errors
/// A refusal that does not depend on the revision, or a failure of the read.
pub(super) async fn write<T: DeserializeOwned>(
    servers: &impl Servers,
    own: String,
    call: Call,
) -> Result<Outcome<T>, Problem> {
    let problem = match servers.send(call).await {
        Ok(answer) => return Ok(Outcome::Done(answer)),
        Err(problem) => problem,
    };
    let is_raced = matches!(problem.code, Code::RevisionMismatch | Code::AlreadyExists | Code::NotFound);
    if !is_raced && problem.applied == Applied::No {
        return Err(problem);
    }
    match servers.send(Call::get(own)).await.and_then(|answer| answer.read()) {
        Ok(present) => Ok(Outcome::Raced { problem, present: Some(present) }),
        Err(missing) if missing.code == Code::NotFound => Ok(Outcome::Raced { problem, present: None }),
        Err(problem) => Err(problem),
    }
}
