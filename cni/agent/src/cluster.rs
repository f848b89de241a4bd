//! Servers of the cluster: one pooled client, and the time of their last answer.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ipam_api::client::{Answer, Call, Client, Options};
use ipam_api::problem::{Code, Problem};
use tokio::time::Instant;

/// Client of the servers, with the time of their last answer.
#[derive(Debug)]
pub struct Cluster {
    client: Client,
    contact: Mutex<Contact>,
}

/// Contact with the servers so far.
#[derive(Debug)]
struct Contact {
    /// Time of the newest answer, or of the start: servers may need time after a start, too.
    answered: Instant,
    /// True if the newest call reached no server with a leader.
    is_lost: bool,
}

impl Cluster {
    /// Prepares the client, without a connection.
    ///
    /// # Errors
    /// `invalid-field` for a malformed URL or an unusable file.
    pub fn new(
        servers: &[String],
        ca_file: Option<&Path>,
        token_file: Option<&Path>,
    ) -> Result<Self, Problem> {
        let options = Options {
            ca_file: ca_file.map(Path::to_owned),
            token_file: token_file.map(Path::to_owned),
            ..Options::default()
        };
        let contact = Contact { answered: Instant::now(), is_lost: false };
        Ok(Self { client: Client::with(servers, &options)?, contact: Mutex::new(contact) })
    }

    /// Sends a call.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn send(&self, call: Call) -> Result<Answer, Problem> {
        let result = self.client.send(call).await;
        let mut contact = self.contact.lock().unwrap_or_else(PoisonError::into_inner);
        contact.is_lost = result.as_ref().is_err_and(|problem| !is_decision(problem));
        if result.as_ref().map_or_else(is_answer, |_| true) {
            contact.answered = Instant::now();
        }
        result
    }

    /// Returns true unless the newest call reached no server.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        !self.contact.lock().unwrap_or_else(PoisonError::into_inner).is_lost
    }

    /// Returns the time since the last answer, or since the start before the first one.
    #[must_use]
    pub fn silent_for(&self) -> Duration {
        self.contact.lock().unwrap_or_else(PoisonError::into_inner).answered.elapsed()
    }
}

/// Returns true for a problem that a cluster with a leader has decided.
fn is_decision(problem: &Problem) -> bool {
    is_answer(problem) && !matches!(problem.code, Code::NoLeader | Code::ShuttingDown | Code::StateDiverged)
}

/// Returns true for a problem that a server has sent, even if only because there is no leader.
pub(crate) fn is_answer(problem: &Problem) -> bool {
    // These codes are also the client's own, if no server answers in time.
    !matches!(problem.code, Code::Unreachable | Code::DeadlineExceeded)
}
