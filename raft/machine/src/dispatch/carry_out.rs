//! Application of one command as a whole, or not at all.

use crate::apply::step::Step;
use crate::apply::work::{Serving, Work};
use crate::command;
use crate::command::{Action, Answer, Applied, Cause, Command, OnLinks, Outcome, Purpose, Refusal, Terms};
use crate::event::{By, Event, EventKind};
use crate::journal::Happened;
use crate::state::State;
use crate::state::row::{HostPolicy, Network, Node};
use crate::value::At;
use ipam_api::Code;

/// Applies one command as a whole, or not at all. Its events are also in the journal.
pub fn apply(state: &mut State, at: At, command: &Command) -> (Outcome, Vec<Event>) {
    let (outcome, happened) = carry_out(state, at, command);
    (outcome, happened.into_events())
}

/// Like [`apply`], for callers that read the journal and need no events.
pub fn carry_out(state: &mut State, at: At, command: &Command) -> (Outcome, Happened) {
    if at.leadership != state.leadership() {
        // The time belongs to another leadership's clock: not even log time may follow it.
        let by = By::of(&command.origin);
        let nothing =
            Happened { revision: state.revision(), wall_ms: at.wall_ms, by, due: 0, whats: Vec::new() };
        return (Err(Cause::LeadershipEnded.into()), nothing);
    }
    let (outcome, happened, ()) = carry_out_looking(state, at, command, |_| ());
    (outcome, happened)
}

/// Like [`carry_out`], and returns what `look` reads before the action is applied.
pub(crate) fn carry_out_looking<Seen>(
    state: &mut State,
    at: At,
    command: &Command,
    look: impl FnOnce(&Step<'_>) -> Seen,
) -> (Outcome, Happened, Seen) {
    let Command { origin, terms, action } = command;
    state.header.log_time_ms = state.header.log_time_ms.max(at.log_time_ms);
    let rights = state.grant(&terms.credential);
    let (work, serving) = (Work::default(), Serving::default());
    let mut step = Step {
        state,
        at,
        origin,
        credential: &terms.credential,
        manager: &terms.manager,
        rights: &rights,
        work: &work,
        serving: &serving,
        events: Vec::new(),
    };
    let expired = step.expire();
    // Waiting claims are served before later commands take the freed addresses.
    step.serve_waiting();
    let due = u32::try_from(step.events.len()).unwrap_or(u32::MAX);
    let seen = look(&step);
    let (revision, outcome) = step.answer(terms, action, expired);
    let Step { state, events, .. } = step;
    let happened = Happened { revision, wall_ms: at.wall_ms, by: By::of(origin), due, whats: events };
    state.write_down(at, &happened);
    (outcome, happened, seen)
}

/// Result that [`apply`] would have, without its effect.
pub fn dry_run(state: &State, at: At, command: &Command) -> (Outcome, Vec<Event>) {
    apply(&mut state.clone(), at, command)
}

impl Step<'_> {
    /// Applies an action, or returns the kept answer of a repetition, with the revision after it.
    fn answer(&mut self, terms: &Terms, action: &Action, expired: u64) -> (u64, Outcome) {
        if let Err(refusal) = self.check_terms(action) {
            return (self.state.revision(), Err(refusal));
        }
        let Some(asked) = &terms.idempotency else {
            return self.run(action, expired);
        };
        if let Some(outcome) = self.state.replayed(&self.origin.principal, asked) {
            return (self.state.revision(), outcome);
        }
        let (revision, outcome) = self.run(action, expired);
        // Two refusals aren't kept. A revision mismatch is final, since revisions never recur, but a client
        // that merges its change with a new read may repeat the request under the same key. An unreported pod
        // is reported a moment later.
        let is_repeated = |code| matches!(code, Code::RevisionMismatch | Code::PodUnreported);
        if !outcome.as_ref().is_err_and(|refusal| is_repeated(refusal.code())) {
            self.keep(asked, &outcome);
        }
        (revision, outcome)
    }

    /// Refuses expired requests and unauthorised callers. These refusals aren't kept for repetitions.
    fn check_terms(&self, action: &Action) -> Result<(), Refusal> {
        if let Some(not_after_ms) = self.origin.not_after_ms
            && self.state.log_time_ms() > not_after_ms
        {
            return Err(Cause::DeadlinePassed.into());
        }
        match self.rights {
            Err(refusal) => Err(refusal.clone()),
            Ok((_, Purpose::Join)) if !matches!(action, Action::Join { .. }) => {
                Err(Cause::JoinTokenOnly.into())
            }
            Ok((_, Purpose::JoinMember)) if !matches!(action, Action::JoinMember(_)) => {
                Err(Cause::MemberTokenOnly.into())
            }
            Ok(_) => Ok(()),
        }
    }

    fn run(&mut self, action: &Action, expired: u64) -> (u64, Outcome) {
        let answer = action.check().and_then(|()| match action {
            Action::Expire => self.permitted(action).map(|()| Answer::Expired { rows: expired }),
            Action::Transaction(transaction) => self.transaction(transaction),
            single => self.single(single),
        });
        match answer.as_ref().map_err(|refusal| refusal.cause.as_ref()) {
            // Without this record the next ADD of the same boot would be refused for the same reason.
            Err(Cause::BootUnconfirmed { attachment, started }) => self.hear_refused(attachment, started),
            Err(Cause::ClaimMismatch { node, endpoint, claimed }) => {
                self.state.tick();
                self.spend_events(node, 1);
                let (node, endpoint, claimed) = (node.clone(), endpoint.clone(), claimed.clone());
                self.emit(EventKind::ClaimMismatch { node, endpoint, claimed });
            }
            _ => {}
        }
        let revision = self.state.revision();
        (revision, answer.map(|answer| Applied { revision, answer, replayed: false }))
    }

    /// Applies any action but a transaction, and then serves the claims that it makes possible.
    pub(crate) fn single(&mut self, action: &Action) -> Result<Answer, Refusal> {
        let answer = self.alone(action)?;
        self.serve_waiting();
        Ok(answer)
    }

    fn alone(&mut self, action: &Action) -> Result<Answer, Refusal> {
        self.check_extent(action)?;
        self.permitted(action)?;
        match action {
            Action::PutNetwork(put) => self.put_described::<Network>((&put.spec.name).into(), put),
            Action::PutSubnet(put) => self.put_subnet(put),
            Action::PutPool(put) => self.put_pool(put),
            Action::PutReservation(put) => self.put_reservation(put),
            Action::PutNode(put) => self.put_described::<Node>(put.spec.resource_name(), put),
            Action::PutNamespace(put) => self.put_namespace(put),
            Action::PutHostPolicy(put) => self.put_host_policy(put),
            Action::Delete(delete) => match delete.kind {
                command::Kind::Network => self.delete_network(&delete.name, delete.expect),
                command::Kind::Subnet => self.delete_subnet(&delete.name, delete.expect),
                command::Kind::Pool => self.delete_pool(delete),
                command::Kind::Reservation => self.delete_reservation(&delete.name, delete.expect),
                command::Kind::Token => self.delete_token(&delete.name, delete.expect),
                command::Kind::Node => self.delete_node(&delete.name, delete.expect),
                command::Kind::Namespace => self.delete_namespace(&delete.name, delete.expect),
                command::Kind::HostPolicy => self.delete_described::<HostPolicy>(&delete.name, delete.expect),
            },
            Action::Allocate(request) | Action::AllocateOnLinks(OnLinks(request)) => {
                let served = self.allocate_in_budget(request)?;
                Ok(self.answer_to_one(served))
            }
            Action::ReleaseAttachment(release) => Ok(self.release_attachment(release, None)),
            Action::ReleaseAttachmentOf(of) => Ok(self.release_attachment(&of.release, Some(of))),
            Action::ReleaseAllocation { id } => self.release_allocation(*id),
            Action::ReleaseEndpoint { key } => self.release_endpoint(key),
            Action::Renew(request) => self.renew(request),
            Action::Expire => Ok(Answer::Expired { rows: 0 }),
            Action::CreateToken(request) => self.create_token(request),
            Action::RotateToken { name, secret_hash, expect } => {
                self.rotate_token(name, *secret_hash, *expect)
            }
            Action::Join { node, secret_hash } => self.join(node, *secret_hash),
            Action::RenewToken => self.renew_token(),
            Action::Heartbeat(heartbeat) => self.hear_node(heartbeat),
            Action::ReleaseOrphans(request) => Ok(self.release_orphans(request)),
            Action::ReportProbes(report) => self.report_probes(report),
            Action::ReportPods(report) => self.report_pods(report),
            Action::EndQuarantine(end) => self.end_quarantine_of(end),
            Action::Reclaim(reclaim) => self.reclaim(reclaim),
            Action::EndIncarnation(end) => Ok(self.end_incarnation(end)),
            Action::TrimJournal { through } => self.trim_journal(*through),
            Action::RaiseLevel { level } => self.raise_level(*level),
            Action::SealJournal => Ok(self.seal_journal()),
            Action::SplitPool(split) => self.split_pool(split),
            Action::ConfirmEpoch(request) => self.confirm_epoch(request),
            Action::JoinMember(request) => self.join_member(request),
            Action::ChangeMembers(request) => self.change_members(request),
            Action::Delegate(request) => self.delegate(request),
            Action::DelegateOrWait(request) => self.delegate_or_wait(request),
            Action::ReleasePrefix { id } => self.release_prefix(*id),
            Action::SetPrefixes(request) => self.set_prefixes(request),
            Action::ScaleController(scale) => self.on_draft(|step| Ok(step.scale_controller(scale))),
            Action::EndController(end) => self.on_draft(|step| Ok(step.end_controller(end))),
            Action::AllocateMany(many) => self.allocate_many(many),
            Action::ReleaseAllocations { ids } => self.release_allocations(ids),
            Action::Transaction(_) => Err(Cause::NestedTransaction.into()),
        }
    }
}
