//! Several actions as one: on a draft of the state, which replaces it only if every step succeeds.

use ipam_api::limits::RESPONSE_BYTES_MAX;
use ipam_api::name::ResourceName;
use postcard::experimental::serialized_size;

use super::command::{Answer, Cause, Kind, Precondition, Refusal, Transaction};
use super::model::Meta;
use super::state::State;
use super::step::{Step, check_expected};

impl Step<'_> {
    pub(super) fn transaction(&mut self, transaction: &Transaction) -> Result<Answer, Refusal> {
        for Precondition { kind, name, expect } in &transaction.preconditions {
            check_expected(*kind, name, self.state.meta(*kind, name), *expect)?;
        }
        self.on_draft(|step| step.all_of(transaction))
    }

    /// Does something that may be refused after it has begun to change: on a draft, which is dropped then.
    pub(super) fn on_draft(
        &mut self,
        work: impl FnOnce(&mut Step<'_>) -> Result<Answer, Refusal>,
    ) -> Result<Answer, Refusal> {
        let mut draft = self.state.clone();
        let mut step = Step {
            state: &mut draft,
            at: self.at,
            origin: self.origin,
            credential: self.credential,
            manager: self.manager,
            rights: self.rights,
            work: self.work,
            serving: self.serving,
            events: Vec::new(),
        };
        let answer = work(&mut step)?;
        self.work.check()?;
        let events = step.events;
        self.events.extend(events);
        draft.ledger.follow(&mut self.state.ledger);
        *self.state = draft;
        Ok(answer)
    }

    /// Counts the rows that were written since the draft began and have not been counted yet.
    fn count_rows(&self) -> Result<(), Refusal> {
        self.work.count_rows(self.state.ledger.touched.len());
        self.work.check()
    }

    fn all_of(&mut self, transaction: &Transaction) -> Result<Answer, Refusal> {
        let mut answers = Vec::with_capacity(transaction.steps.len());
        let mut bytes = 0_usize;
        for (number, action) in transaction.steps.iter().enumerate() {
            let step = u32::try_from(number).ok();
            let done = self.single(action).and_then(|answer| self.count_rows().map(|()| answer));
            let answer = done.map_err(|refusal| Refusal { step, ..refusal })?;
            // Nothing that is encoded by postcard has no size.
            bytes = bytes.saturating_add(serialized_size(&answer).unwrap_or(RESPONSE_BYTES_MAX + 1));
            if bytes > RESPONSE_BYTES_MAX {
                let (done, steps) = (number as u64 + 1, transaction.steps.len() as u64);
                return Err(Cause::ResponseSize { bytes: bytes as u64, done, steps }.into());
            }
            answers.push(answer);
        }
        Ok(Answer::Steps(answers))
    }
}

impl State {
    /// The name of a resource.
    #[must_use]
    pub fn name_of(&self, kind: Kind, id: u64) -> Option<ResourceName> {
        match kind {
            Kind::Network => self.networks.get(id).map(|row| (&row.intention.name).into()),
            Kind::Subnet => self.subnets.get(id).map(|row| (&row.intention.name).into()),
            Kind::Pool => self.pools.get(id).map(|row| (&row.intention.name).into()),
            Kind::Reservation => self.reservations.get(id).map(|row| (&row.intention.name).into()),
            Kind::Token => self.tokens.get(id).map(|row| (&row.name).into()),
            Kind::Node => self.nodes.get(id).map(|row| row.intention.resource_name()),
            Kind::Namespace => self.namespaces.get(id).map(|row| row.intention.resource_name()),
        }
    }

    /// How many there are of a kind.
    #[must_use]
    pub fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::Network => self.networks.len(),
            Kind::Subnet => self.subnets.len(),
            Kind::Pool => self.pools.len(),
            Kind::Reservation => self.reservations.len(),
            Kind::Token => self.tokens.len(),
            Kind::Node => self.nodes.len(),
            Kind::Namespace => self.namespaces.len(),
        }
    }

    /// Identity and history of a named resource.
    #[must_use]
    pub fn meta(&self, kind: Kind, name: impl Into<ResourceName>) -> Option<&Meta> {
        let id = self.id_of(kind, name)?;
        match kind {
            Kind::Network => self.networks.get(id).map(|row| &row.meta),
            Kind::Subnet => self.subnets.get(id).map(|row| &row.meta),
            Kind::Pool => self.pools.get(id).map(|row| &row.meta),
            Kind::Reservation => self.reservations.get(id).map(|row| &row.meta),
            Kind::Token => self.tokens.get(id).map(|row| &row.meta),
            Kind::Node => self.nodes.get(id).map(|row| &row.meta),
            Kind::Namespace => self.namespaces.get(id).map(|row| &row.meta),
        }
    }
}
