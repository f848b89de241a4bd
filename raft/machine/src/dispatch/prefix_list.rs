//! Lists of prefixes: listed owners that wait are served by what the same list ends.

use crate::apply::step::Step;
use crate::command::{Answer, Refusal, SetPrefixes};

impl Step<'_> {
    pub(super) fn set_prefixes(&mut self, request: &SetPrefixes) -> Result<Answer, Refusal> {
        self.on_draft(|step| {
            let ended = step.change_prefixes(request)?;
            // Before the answer, and in the order of all claims.
            step.serve_waiting();
            step.prefixes_set(request, ended)
        })
    }
}
