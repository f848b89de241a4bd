//! Drafts of the state.

use crate::apply::step::Step;
use crate::state::State;
use crate::value::Refusal;

impl<'a> Step<'a> {
    /// Returns a step for the same command on another state, without events.
    pub(crate) fn on<'b>(&self, state: &'b mut State) -> Step<'b>
    where
        'a: 'b,
    {
        Step {
            state,
            at: self.at,
            origin: self.origin,
            credential: self.credential,
            manager: self.manager,
            rights: self.rights,
            work: self.work,
            serving: self.serving,
            events: Vec::new(),
        }
    }

    /// Runs work that may be refused after its first change, on a draft that a refusal discards.
    pub(crate) fn on_draft<T>(
        &mut self,
        work: impl FnOnce(&mut Step<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut draft = self.state.clone();
        let mut step = self.on(&mut draft);
        let answer = work(&mut step)?;
        self.work.check()?;
        let events = step.events;
        self.events.extend(events);
        draft.ledger.follow(&mut self.state.ledger);
        *self.state = draft;
        Ok(answer)
    }
}
