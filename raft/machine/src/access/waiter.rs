//! Execution of parts of a command on behalf of a waiting request.

use crate::apply::step::Step;
use crate::command::{Credential, Manager, Origin, Text, Via};

impl Step<'_> {
    /// Runs a part of the command as if the waiting request had just arrived. The request's present rights
    /// apply, and the work budget of all waiting requests.
    pub(crate) fn for_waiter<T>(
        &mut self,
        credential: &Credential,
        principal: &Text,
        request_id: &Text,
        run: impl FnOnce(&mut Step<'_>) -> T,
    ) -> T {
        let rights = self.state.grant(credential);
        let origin = Origin {
            principal: Text::clone(principal),
            via: Via::Http,
            request_id: Text::clone(request_id),
            comment: None,
            not_after_ms: None,
        };
        let mut step = Step {
            state: &mut *self.state,
            at: self.at,
            origin: &origin,
            credential,
            manager: &Manager::Nobody,
            rights: &rights,
            work: &self.serving.work,
            serving: self.serving,
            events: std::mem::take(&mut self.events),
        };
        let result = run(&mut step);
        self.events = step.events;
        result
    }
}
