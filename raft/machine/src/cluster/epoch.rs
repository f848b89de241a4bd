//! Epochs: each begins with a restore, and allocates nothing until an operator confirms it.
//!
//! Addresses allocated after the backup may still be in use, and the restored state doesn't contain them. So
//! a pool allocates only after its confirmation, even if it was created after the restore: its addresses may
//! have belonged to a lost pool. Held addresses stay held, are returned for repeated requests, and can be
//! released.

use crate::apply::step::Step;
use crate::apply::work::{Serving, Work};
use crate::command::{
    Answer, Cause, ConfirmEpoch, Credential, Grant, Kind, Manager, Origin, Purpose, Refusal, Text, Via,
};
use crate::event::{By, EventKind};
use crate::journal::Happened;
use crate::state::id::{Id, PoolId};
use crate::state::refuse::not_found;
use crate::state::row::{Epoch, Pool};
use crate::state::{Header, State};
use crate::value::At;
use crate::value::refuse_if;
use ipam_api::access::Role;
use ipam_api::name::Name;
use std::collections::BTreeSet;

impl State {
    /// Removes ids of deleted pools from an epoch's row.
    pub(crate) fn forget_gone_pools(&self, row: &mut Epoch) {
        row.confirmed.retain(|id| self.pools.get(*id).is_some());
    }

    /// Pools that wait for confirmation, by name.
    pub fn waiting_pools(&self) -> impl Iterator<Item = Name> {
        let waits = self.unconfirmed().is_some();
        self.names(Kind::Pool, None)
            .filter(move |(_, id)| waits && !self.is_confirmed(Id::new(*id)))
            .filter_map(|(name, _)| name.name())
    }

    /// Begins an epoch with a restored state. Its revisions lie above all revisions of the previous epoch,
    /// and nothing is allocated until the epoch is confirmed. Without `history` the sealed part of the
    /// journal is discarded.
    ///
    /// # Errors
    /// For a number that isn't above the present one, or too large.
    pub fn begin_epoch(&mut self, number: u64, wall_ms: u64, history: bool) -> Result<(), Refusal> {
        let (from_revision, last) = (self.revision(), self.header.epoch);
        let begun = Header { epoch: number, counter: 0, ..self.header.clone() };
        if number <= last || !begun.makes_sense() {
            return Err(Cause::EpochOrder { epoch: number, last }.into());
        }
        self.header = begun;
        let through = self.header.journal.segment.saturating_sub(1);
        let at = At { log_time_ms: self.log_time_ms(), wall_ms, leadership: self.leadership() };
        let origin = Origin {
            principal: Text::identifier("restore"),
            via: Via::Task,
            request_id: Text::identifier(format!("epoch-{number}")),
            comment: None,
            not_after_ms: None,
        };
        let grant = Grant::of(Role::Admin);
        let (work, serving) = (Work::default(), Serving::default());
        let mut step = Step {
            work: &work,
            serving: &serving,
            state: self,
            at,
            origin: &origin,
            credential: &Credential::Known(grant.clone()),
            manager: &Manager::Nobody,
            rights: &Ok((grant, Purpose::Bearer)),
            events: Vec::new(),
        };
        step.state.tick();
        let row = Epoch {
            number,
            from_revision,
            since_wall_ms: wall_ms,
            confirmed: BTreeSet::new(),
            ended_wall_ms: None,
        };
        step.state.write(number, row);
        // The new cluster founds itself with members of its own.
        step.state.reset_members();
        step.emit(EventKind::EpochBegun { epoch: number, from_revision });
        if !history {
            step.trim_journal(through)?;
        }
        step.refresh_all();
        let revision = step.state.revision();
        let whats = step.events;
        self.write_down(at, &Happened { revision, wall_ms, by: By::of(&origin), due: 0, whats });
        Ok(())
    }
}

impl Step<'_> {
    /// Confirms pools, which then allocate again. An already confirmed pool is no error.
    pub(crate) fn confirm_epoch(&mut self, request: &ConfirmEpoch) -> Result<Answer, Refusal> {
        let (number, present) = (request.epoch, self.state.header.epoch);
        refuse_if(number != present, || Cause::OtherEpoch { present, epoch: number })?;
        let named = request.pools.iter().flatten().map(|name| {
            let id = self.state.find::<Pool>(name);
            id.ok_or_else(|| not_found(Kind::Pool, name))
        });
        let named: BTreeSet<PoolId> = named.collect::<Result<_, _>>()?;
        let Some(row) = self.state.unconfirmed().cloned() else {
            return Ok(Answer::Confirmed { pools: 0, waiting: 0 });
        };
        let all = |id: &PoolId| request.pools.is_none() || named.contains(id);
        let pools = self.state.pools.iter().map(|(id, _)| id);
        let (fresh, left): (Vec<PoolId>, Vec<PoolId>) =
            pools.filter(|id| !row.confirmed.contains(id)).partition(all);
        let ended = request.pools.is_none() || left.is_empty();
        if fresh.is_empty() && !ended {
            return Ok(Answer::Confirmed { pools: 0, waiting: left.len() as u64 });
        }
        self.state.tick();
        let mut row = row;
        row.confirmed.extend(&fresh);
        self.state.forget_gone_pools(&mut row);
        if ended {
            row.confirmed.clear();
            row.ended_wall_ms = Some(self.at.wall_ms);
        }
        self.state.write(number, row);
        for id in &fresh {
            let pool = self.state.pools.named(*id).spec.name.clone();
            self.emit(EventKind::PoolConfirmed { epoch: number, pool });
            self.refresh_readiness(*id);
        }
        if ended {
            self.emit(EventKind::EpochConfirmed { epoch: number });
        }
        Ok(Answer::Confirmed { pools: fresh.len() as u64, waiting: left.len() as u64 })
    }

    fn refresh_all(&mut self) {
        let pools: Vec<PoolId> = self.state.pools.iter().map(|(id, _)| id).collect();
        for pool in pools {
            self.refresh_readiness(pool);
        }
    }
}
