//! Failures of steps.

use ipam_api::Problem;

use super::shared::Shared;
use crate::servers::Servers;

/// Error of a step of a pool or a claim.
pub(super) enum Failure {
    /// Refusal by the API server.
    Rejected(kube::Error),
    /// Refusal by the servers.
    Refused(Problem),
    /// Refusal of a spec, which its object shows.
    Shown,
}

impl Failure {
    /// Notes the failure in the status.
    pub(super) fn note(&self, shared: &Shared<impl Servers>) {
        match self {
            Self::Rejected(error) => shared.rejected(error),
            Self::Refused(problem) => shared.refused(problem),
            Self::Shown => {}
        }
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        Self::Rejected(error)
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}
