//! How handlers ask the replicated state: with whose rights, how long, and what must be the case.

use axum::http::HeaderMap;
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use ipam_api::access::{Target, Verb};
use ipam_api::name::shown;
use ipam_api::request::AttachmentKey;
use ipam_api::{Code, Problem};
use ipam_raft::machine::command::{Expect, Text, Via};
use ipam_raft::machine::{Action, Applied, Command, Origin, State, Terms};

use super::App;
use super::asker::{Asker, Known, unknown_token};
use super::query::Consistency;
use super::write::Write;

/// What must be the case, by `If-Match` and `If-None-Match`.
pub(super) fn expect(headers: &HeaderMap) -> Result<Expect, Problem> {
    let text = |value: &axum::http::HeaderValue| value.to_str().unwrap_or_default().trim().to_owned();
    let matches = headers.get(IF_MATCH).map(text);
    let none_matches = headers.get(IF_NONE_MATCH).map(text);
    match (matches.as_deref(), none_matches.as_deref()) {
        (None, None) => Ok(Expect::Anything),
        (None, Some("*")) => Ok(Expect::Absent),
        (Some(etag), None) => etag.trim_matches('"').parse().map(Expect::Revision).map_err(|_| {
            Problem::new(Code::InvalidField, format!("If-Match {} is no revision", shown(etag)))
                .help("Send the ETag that you read, for example If-Match: \"1204\".")
        }),
        _ => Err(Problem::new(Code::InvalidField, "If-None-Match can only be *, and not beside If-Match")),
    }
}

impl App {
    /// Proposes an action and waits until it is carried out or refused.
    pub(super) async fn propose(&self, write: &Write, via: Via, action: Action) -> Result<Applied, Problem> {
        let asker = &write.asker;
        let known = self.who(asker).await?;
        if let Some(deed) = action.deed() {
            known.check(deed)?;
        }
        let terms = Terms {
            credential: known.credential,
            idempotency: write.idempotency.clone(),
            manager: write.manager.clone(),
        };
        action.check()?;
        terms.check()?;
        let origin = Origin {
            principal: known.principal,
            via,
            request_id: Text::clone(&asker.request_id),
            comment: asker.comment.clone(),
            not_after_ms: None,
        };
        let outcome = self.node.propose(Command { origin, terms, action }, asker.deadline).await?;
        Ok(outcome?)
    }

    /// Who asks. A token that this member has not heard of yet is looked up as of now.
    pub(super) async fn who(&self, asker: &Asker) -> Result<Known, Problem> {
        if let Some(known) = asker.known_in(&self.node.stale().0)? {
            return Ok(known);
        }
        asker.known_in(&self.node.read(asker.deadline).await?)?.ok_or_else(unknown_token)
    }

    /// Refuses those who may not look at what this member says of itself. Asks nobody else, so that it works
    /// without a leader.
    pub(super) fn check_here(&self, asker: &Asker, deed: (Verb, Target)) -> Result<(), Problem> {
        asker.known_in(&self.node.stale().0)?.ok_or_else(unknown_token)?.check(deed)
    }

    /// Refuses a node that asks for another node's attachment.
    pub(super) fn check_own(&self, asker: &Asker, state: &State, key: &AttachmentKey) -> Result<(), Problem> {
        let known = asker.known_in(state)?.ok_or_else(unknown_token)?;
        match known.grant.node {
            Some(node) if node.realm != key.realm || node.name != key.node => {
                Err(Problem::new(Code::ForeignNode, format!("attachment {key} is not on node {node}")))
            }
            _ => Ok(()),
        }
    }

    /// Reads the state for somebody who may: linearizable, or as this member has it, with its age.
    pub(super) async fn read(
        &self,
        asker: &Asker,
        deed: (Verb, Target),
        consistency: Consistency,
    ) -> Result<(State, Option<u64>), Problem> {
        let (state, stale_ms) = match consistency {
            Consistency::Linearizable => (self.node.read(asker.deadline).await?, None),
            Consistency::Stale => {
                let (state, stale_ms) = self.node.stale();
                (state, Some(stale_ms))
            }
        };
        asker.known_in(&state)?.ok_or_else(unknown_token)?.check(deed)?;
        Ok((state, stale_ms))
    }
}
