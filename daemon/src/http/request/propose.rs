//! Access of handlers to the replicated state: rights, deadlines and preconditions.

use axum::http::HeaderMap;
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use ipam_api::access::{NodeKey, Target, Verb};
use ipam_api::name::shown;
use ipam_api::request::AttachmentKey;
use ipam_api::resource::EndpointKey;
use ipam_api::time::Timestamp;
use ipam_api::{Code, Problem};
use ipam_machine::command::{Expect, Text, Via};
use ipam_machine::{Action, Applied, At, Command, Origin, Outcome, State, Terms, apply};
use ipam_raft::node::ReadError;
use tokio::time::Instant;

use super::app::App;
use super::caller::{Caller, Identity, Offer, unknown_token};
use super::query::{Consistency, Freshness};
use super::write::Write;

/// Precondition of `If-Match` and `If-None-Match`.
pub(in crate::http) fn expect(headers: &HeaderMap) -> Result<Expect, Problem> {
    let text = |value: &axum::http::HeaderValue| value.to_str().unwrap_or_default().trim().to_owned();
    let matches = headers.get(IF_MATCH).map(text);
    let none_matches = headers.get(IF_NONE_MATCH).map(text);
    match (matches.as_deref(), none_matches.as_deref()) {
        (None, None) => Ok(Expect::Anything),
        (None, Some("*")) => Ok(Expect::Absent),
        (Some(etag), None) => revision(etag, "If-Match").map(Expect::Revision),
        (Some(_), Some("*")) => {
            Err(Problem::new(Code::ConflictingFields, "If-Match and If-None-Match exclude each other"))
        }
        _ => Err(Problem::new(Code::InvalidField, "If-None-Match can only be *")),
    }
}

/// Digits of the largest revision.
const REVISION_DIGITS_MAX: usize = 16;

/// Parses a revision from an `ETag`.
pub(in crate::http) fn revision(etag: &str, what: &str) -> Result<u64, Problem> {
    let bare = etag.strip_prefix('"').and_then(|etag| etag.strip_suffix('"')).unwrap_or(etag);
    let is_number =
        (1..=REVISION_DIGITS_MAX).contains(&bare.len()) && bare.bytes().all(|c| c.is_ascii_digit());
    bare.parse().ok().filter(|_| is_number).ok_or_else(|| {
        Problem::new(Code::InvalidField, format!("{what} {} is not a revision", shown(etag)))
            .help(format!("Send the ETag that you read, for example {what}: \"1204\"."))
    })
}

/// Result of a proposal or of its dry run.
#[derive(Debug)]
pub(in crate::http) struct Proposed {
    pub(in crate::http) applied: Applied,
    /// State after a dry run; none for a real proposal.
    tried: Option<State>,
}

impl<Q> Write<Q> {
    /// Proposes an action and waits until it is carried out or refused.
    pub(in crate::http) async fn propose(&self, action: Action) -> Result<Applied, Problem> {
        self.propose_via(Via::Http, action).await
    }

    /// Like [`Write::propose`], for requests that may come from a CNI plugin.
    pub(in crate::http) async fn propose_via(&self, via: Via, action: Action) -> Result<Applied, Problem> {
        Ok(self.carry_out_via(via, action).await?.applied)
    }

    /// Like [`Write::propose`], for handlers that show the state after it.
    pub(in crate::http) async fn carry_out(&self, action: Action) -> Result<Proposed, Problem> {
        self.carry_out_via(Via::Http, action).await
    }

    /// Checks and proposes an action. A dry run ends here without a proposal.
    async fn carry_out_via(&self, via: Via, action: Action) -> Result<Proposed, Problem> {
        let (app, caller) = (&self.app, &self.caller);
        let known = app.who(caller).await?;
        if let Some(permission) = action.permission() {
            known.check(permission)?;
        }
        let terms = Terms {
            credential: known.credential,
            idempotency: self.idempotency.clone(),
            manager: self.manager.clone().unwrap_or_default(),
        };
        action.check()?;
        terms.check()?;
        let origin = Origin {
            principal: known.principal,
            via,
            request_id: Text::clone(&caller.request_id),
            comment: caller.comment.clone(),
            not_after_ms: None,
        };
        let command = Command { origin, terms, action };
        let (outcome, tried) = if self.dry_run {
            let (outcome, state) = self.try_out(command).await?;
            (outcome, Some(state))
        } else {
            let (outcome, timing) = match caller.leadership {
                Some(leadership) => app.node.propose_as_leader(leadership, command, caller.deadline).await?,
                None => app.node.propose_timed(command, caller.deadline).await?,
            };
            caller.notes.note_timing(timing);
            (outcome, None)
        };
        self.note_replayed(&outcome);
        Ok(Proposed { applied: outcome?, tried })
    }

    /// Result of a command on a copy of the present state.
    async fn try_out(&self, command: Command) -> Result<(Outcome, State), Problem> {
        let (app, deadline) = (&self.app, self.caller.deadline);
        let mut state = app.node.read(deadline).await?;
        let at = now_in(&state);
        let principal = Text::clone(&command.origin.principal);
        let node = app.node.clone();
        let try_it = move || {
            let (outcome, _) = node.guard(|| apply(&mut state, at, &command))?;
            Ok::<_, ReadError>((outcome, state))
        };
        Ok(app.trials.run(&principal, deadline, try_it).await??)
    }

    /// State that includes the write, for the rest of the response.
    pub(in crate::http) async fn after(&self, done: &Proposed) -> State {
        match &done.tried {
            Some(state) => state.clone(),
            // The write is done. If it can't be read back, the response has the status that this member
            // knows.
            None => match self.app.node.reached(done.applied.revision, self.caller.deadline).await {
                Ok(state) => state,
                Err(_) => self.app.node.stale().0,
            },
        }
    }

    /// Returns the stored outcome of an earlier request with the same idempotency key, if any.
    pub(in crate::http) fn kept(&self, state: &State) -> Result<Option<Proposed>, Problem> {
        let Some(idempotency) = &self.idempotency else { return Ok(None) };
        let known = self.caller.known_in(state)?.ok_or_else(unknown_token)?;
        let Some(outcome) = state.replayed(&known.principal, idempotency) else { return Ok(None) };
        self.note_replayed(&outcome);
        Ok(Some(Proposed { applied: outcome?, tried: None }))
    }

    /// Reads the request's conditions.
    pub(in crate::http) fn expect(&self) -> Result<Expect, Problem> {
        expect(&self.headers)
    }
}

/// Time of a trial: log time and leadership of the state, and the wall time of this member.
pub(in crate::http) fn now_in(state: &State) -> At {
    At { log_time_ms: state.log_time_ms(), wall_ms: Timestamp::now().0, leadership: state.leadership() }
}

impl App {
    /// Authenticates the caller. A token unknown to this member is looked up in the present state.
    pub(in crate::http) async fn who(&self, caller: &Caller) -> Result<Identity, Problem> {
        self.identify(caller.offer(), caller.deadline).await
    }

    /// Authenticates credentials as [`App::who`] does. Admission calls it before it reads a body.
    pub(in crate::http) async fn identify(
        &self,
        offer: &Offer,
        deadline: Instant,
    ) -> Result<Identity, Problem> {
        if let Some(known) = self.node.look(|state| offer.known_in(state))? {
            return Ok(known);
        }
        offer.known_in(&self.node.read(deadline).await?)?.ok_or_else(unknown_token)
    }

    /// Refuses callers without the right to read this member's own data. Works without a leader.
    pub(in crate::http) fn check_here(
        &self,
        caller: &Caller,
        permission: (Verb, Target),
    ) -> Result<(), Problem> {
        self.node.look(|state| caller.known_in(state))?.ok_or_else(unknown_token)?.check(permission)
    }

    /// Refuses a node's access to another node's attachment.
    pub(in crate::http) fn check_own(
        &self,
        caller: &Caller,
        state: &State,
        key: &AttachmentKey,
    ) -> Result<(), Problem> {
        let known = caller.known_in(state)?.ok_or_else(unknown_token)?;
        match known.grant.node {
            Some(node) if node.realm != key.realm || node.name != key.node => {
                Err(Problem::new(Code::ForeignNode, format!("attachment {key} is not on node {node}")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a node's access to data of another node.
    pub(in crate::http) fn check_own_node(
        &self,
        caller: &Caller,
        state: &State,
        node: &NodeKey,
    ) -> Result<(), Problem> {
        let known = caller.known_in(state)?.ok_or_else(unknown_token)?;
        match known.grant.node {
            Some(own) if own != *node => Err(Problem::new(
                Code::ForeignNode,
                format!("node {own} may not read or report data of node {node}"),
            )),
            _ => Ok(()),
        }
    }

    /// Refuses a node's access to another endpoint than its own.
    pub(in crate::http) fn check_own_host(
        &self,
        caller: &Caller,
        state: &State,
        key: &EndpointKey,
    ) -> Result<(), Problem> {
        let known = caller.known_in(state)?.ok_or_else(unknown_token)?;
        match known.grant.node {
            Some(node) if node.host() != *key => {
                Err(Problem::new(Code::ForeignNode, format!("node {node} may not read endpoint {key}")))
            }
            _ => Ok(()),
        }
    }

    /// Reads the state for an authorised caller: linearizable, or this member's with its age.
    pub(in crate::http) async fn read(
        &self,
        caller: &Caller,
        permission: (Verb, Target),
        freshness: impl Into<Freshness>,
    ) -> Result<(State, Option<u64>), Problem> {
        #[cfg(feature = "testing")]
        ipam_raft::break_if_asked(&caller.request_id);
        let Freshness { consistency, at_least_revision } = freshness.into();
        let (mut state, stale_ms) = match (consistency, at_least_revision) {
            (Some(Consistency::Linearizable), _) | (None, None) => {
                (self.node.read(caller.deadline).await?, None)
            }
            (Some(Consistency::Stale), _) | (None, Some(_)) => {
                let (state, stale_ms) = self.node.stale();
                self.node.check_trust()?;
                (state, Some(stale_ms))
            }
        };
        if let Some(revision) = at_least_revision
            && state.revision() < revision
        {
            state = self.node.reached(revision, caller.deadline).await?;
        }
        caller.known_in(&state)?.ok_or_else(unknown_token)?.check(permission)?;
        Ok((state, stale_ms))
    }
}
