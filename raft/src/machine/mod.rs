//! The state machine: pure. No I/O, no async, no clock, no randomness, no hash order.
//!
//! [`apply`] takes the state, the time that the entry brings along, and a command; it returns what to tell
//! the asker, and what has happened. The same commands give the same bytes on every member: that is the
//! whole of replication.
//!
//! **Invariants:** a refused command changes nothing but log time; every row is in exactly one table and its
//! change is in the digest; what is derived ([`state`]'s index) can be rebuilt from the rows alone; ids are
//! revisions and never come back.

mod allocate;
mod attachment;
mod candidates;
pub mod change;
mod check;
pub mod command;
pub mod event;
mod expire;
pub mod free_set;
mod hashed;
pub mod journal;
pub mod model;
mod network;
mod pick;
mod pool;
mod release;
mod reservation;
mod row;
mod shape;
mod sizes;
pub mod space;
pub mod state;
mod step;
mod subnet;
pub mod table;
mod transaction;

pub use command::{Action, Answer, Applied, Command, Origin, Outcome, Refusal};
pub use event::{Event, What};
use ipam_api::Code;
pub use journal::{By, EventId, Happened, Journaled};
pub use row::RowKey;
use serde::{Deserialize, Serialize};
pub use state::State;
use step::Step;

/// The only time that rules know, with the labels that an entry brings along.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct At {
    /// Log time in milliseconds.
    pub log_time_ms: u64,
    /// Wall time in milliseconds since 1970, a label.
    pub wall_ms: u64,
    /// The Raft term of the entry.
    pub term: u64,
}

/// Rows that can't be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Damaged(pub String);

/// Applies one command: all of it, or nothing. What has happened is in the journal, too.
pub fn apply(state: &mut State, at: At, command: &Command) -> (Outcome, Vec<Event>) {
    let (outcome, happened) = carry_out(state, at, command);
    (outcome, happened.into_events())
}

/// The same for those who read the journal and need no events.
pub fn carry_out(state: &mut State, at: At, command: &Command) -> (Outcome, Happened) {
    state.header.log_time_ms = state.header.log_time_ms.max(at.log_time_ms);
    let mut step = Step { state, at, origin: &command.origin, events: Vec::new() };
    let expired = step.expire();
    let due = u32::try_from(step.events.len()).unwrap_or(u32::MAX);
    let answer = step.run(&command.action, expired);
    let Step { state, events, .. } = step;
    let revision = state.revision();
    let outcome = answer.map(|answer| Applied { revision, answer });
    let by = By::of(&command.origin);
    let happened = Happened { revision, wall_ms: at.wall_ms, by, due, whats: events };
    state.write_down(at, &happened);
    (outcome, happened)
}

/// What [`apply`] would say, with no effect.
pub fn dry_run(state: &State, at: At, command: &Command) -> (Outcome, Vec<Event>) {
    apply(&mut state.clone(), at, command)
}

impl Step<'_> {
    fn run(&mut self, action: &Action, expired: u64) -> Result<Answer, Refusal> {
        if let Some(not_after_ms) = self.origin.not_after_ms
            && self.state.log_time_ms() > not_after_ms
        {
            return Err(Refusal::new(
                Code::DeadlineExceeded,
                "nobody waits for this request any more; nothing was changed",
            ));
        }
        action.check()?;
        match action {
            Action::Expire => Ok(Answer::Expired { rows: expired }),
            Action::Transaction(transaction) => self.transaction(transaction),
            single => self.single(single),
        }
    }

    /// Anything but a transaction.
    fn single(&mut self, action: &Action) -> Result<Answer, Refusal> {
        match action {
            Action::PutNetwork(put) => self.put_network(put),
            Action::PutSubnet(put) => self.put_subnet(put),
            Action::PutPool(put) => self.put_pool(put),
            Action::PutReservation(put) => self.put_reservation(put),
            Action::Delete(delete) => match delete.kind {
                command::Kind::Network => self.delete_network(&delete.name, delete.expect),
                command::Kind::Subnet => self.delete_subnet(&delete.name, delete.expect),
                command::Kind::Pool => self.delete_pool(delete),
                command::Kind::Reservation => self.delete_reservation(&delete.name, delete.expect),
            },
            Action::Allocate(wish) => self.allocate(wish),
            Action::ReleaseAttachment(release) => Ok(self.release_attachment(release)),
            Action::ReleaseAllocation { id } => self.release_allocation(*id),
            Action::ReleaseEndpoint { key } => self.release_endpoint(key),
            Action::Expire => Ok(Answer::Expired { rows: 0 }),
            Action::TrimJournal { through } => self.trim_journal(*through),
            Action::Transaction(_) => Err(check::invalid("a transaction can't contain another")),
        }
    }
}
