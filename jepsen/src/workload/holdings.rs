//! Holdings: grants of a session, and those that it may have after an unknown outcome.

use ipam_api::Problem;
use ipam_api::problem::Applied;
use tokio::time::Instant;

use super::Session;
use super::batch::{Batch, Step};
use super::requests::Wanted;
use crate::history::Grant;

/// Maximum number of endpoints with an unknown outcome that a session remembers; others are ignored.
const UNKNOWN_MAX: usize = 64;

/// Endpoint with the grants that it is known to hold.
#[derive(Debug, Clone)]
pub(super) struct Holding {
    /// Endpoint as `kind/realm/namespace/name`.
    pub(super) endpoint: String,
    /// Grants of the endpoint.
    pub(super) grants: Vec<Grant>,
}

/// Grants and endpoints that a session remembers for its next choices.
#[derive(Debug)]
pub(super) struct Holdings {
    held: Vec<Holding>,
    unknown: Vec<String>,
    /// Share of releases by the name of the endpoint, in percent; the others name an allocation.
    by_endpoint_percent: usize,
}

impl Default for Holdings {
    fn default() -> Self {
        Self { held: Vec::new(), unknown: Vec::new(), by_endpoint_percent: 25 }
    }
}

impl Holdings {
    /// Holdings that are released as a whole.
    pub(super) fn whole() -> Self {
        Self { by_endpoint_percent: 100, ..Self::default() }
    }

    /// Number of endpoints with known grants.
    #[must_use]
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Remembers grants, which replace earlier grants of the same endpoint.
    pub(super) fn keep(&mut self, endpoint: String, grants: Vec<Grant>) {
        self.held.retain(|held| held.endpoint != endpoint);
        if !grants.is_empty() {
            self.held.push(Holding { endpoint, grants });
        }
    }

    /// Remembers an endpoint that may hold unknown grants.
    pub(super) fn doubt(&mut self, endpoint: String) {
        if self.unknown.len() < UNKNOWN_MAX && !self.unknown.contains(&endpoint) {
            self.unknown.push(endpoint);
        }
    }

    /// Takes a random holding.
    pub(super) fn take(&mut self, session: &mut Session) -> Option<Holding> {
        let at = session.random.below(self.held.len());
        (at < self.held.len()).then(|| self.held.swap_remove(at))
    }

    /// Allocates at any member, and remembers the outcome.
    pub(super) async fn allocate(
        &mut self,
        session: &mut Session,
        wanted: &Wanted,
    ) -> Result<Vec<Grant>, Problem> {
        let (at, key) = (session.any_member(), session.maybe_key());
        let result = session.allocate(at, wanted, key.as_deref()).await;
        match &result {
            Ok(grants) => self.keep(wanted.endpoint.clone(), grants.clone()),
            Err(problem) if problem.applied == Applied::Unknown => self.doubt(wanted.endpoint.clone()),
            Err(_) => {}
        }
        result
    }

    /// Carries out a transaction at any member, and remembers the outcome.
    pub(super) async fn transact(&mut self, session: &mut Session, batch: Batch) -> Option<Problem> {
        let (at, key) = (session.any_member(), session.maybe_key());
        match session.transact(at, &batch, key.as_deref()).await {
            Ok(made) => {
                let ended = batch.steps.iter().filter_map(|step| match step {
                    Step::Release(endpoint, _) => Some(endpoint),
                    _ => None,
                });
                for endpoint in ended {
                    self.held.retain(|held| held.endpoint != *endpoint);
                }
                for grant in made {
                    if let Some(endpoint) = grant.endpoint.clone() {
                        self.keep(endpoint, vec![Grant { endpoint: None, ..grant }]);
                    }
                }
                None
            }
            Err(problem) => {
                if problem.applied == Applied::Unknown {
                    for step in batch.steps {
                        match step {
                            Step::Allocate(wanted) => self.doubt(wanted.endpoint),
                            Step::AllocateMany(all) => {
                                all.into_iter().for_each(|wanted| self.doubt(wanted.endpoint));
                            }
                            Step::Release(endpoint, _) => {
                                self.held.retain(|held| held.endpoint != endpoint);
                                self.doubt(endpoint);
                            }
                            Step::Other(_) => {}
                        }
                    }
                }
                Some(problem)
            }
        }
    }

    /// Releases a holding at any member: by its ids, or with `by_endpoint` by its name.
    pub(super) async fn release(&mut self, session: &mut Session, holding: Holding, by_endpoint: bool) {
        let (at, key) = (session.any_member(), session.maybe_key());
        let Holding { endpoint, mut grants } = holding;
        if by_endpoint {
            match session.release_endpoint(at, &endpoint, &grants, key.as_deref()).await {
                Err(problem) if problem.applied == Applied::Unknown => self.doubt(endpoint),
                Err(problem) if is_passing(&problem) => self.keep(endpoint, grants),
                _ => {}
            }
            return;
        }
        let Some(grant) = grants.pop() else { return };
        match session.release(at, &endpoint, &grant, key.as_deref()).await {
            Err(problem) if problem.applied == Applied::Unknown => self.doubt(endpoint),
            Err(problem) if is_passing(&problem) => {
                grants.push(grant);
                self.keep(endpoint, grants);
            }
            _ => self.keep(endpoint, grants),
        }
    }

    /// Releases an endpoint with an unknown outcome by its name.
    pub(super) async fn clear_doubt(&mut self, session: &mut Session) {
        if let Some(endpoint) = self.unknown.pop() {
            let holding = Holding { endpoint, grants: Vec::new() };
            self.release(session, holding, true).await;
        }
    }

    /// Releases a random holding.
    pub(super) async fn release_one(&mut self, session: &mut Session) {
        if let Some(holding) = self.take(session) {
            let by_endpoint = session.chance(self.by_endpoint_percent);
            self.release(session, holding, by_endpoint).await;
        }
    }

    /// Releases about half of all holdings at the end of a run, and leaves the others.
    pub(super) async fn settle(&mut self, session: &mut Session, deadline: Instant) {
        let end = self.len() / 2;
        while self.len() > end && session.settles(deadline) {
            let before = self.len();
            self.release_one(session).await;
            if self.len() == before {
                // A refusal may return at once, so the session pauses.
                session.rest().await;
            }
        }
    }
}

/// Returns true for a refusal that says nothing about the request: it may succeed later.
#[must_use]
pub(super) fn is_passing(problem: &Problem) -> bool {
    problem.status >= 500 || problem.status == 429 || problem.status == 408
}
