//! Lists of prefixes: the releases of a list can serve the list's own waiting owners.

use crate::apply::step::Step;
use crate::command::{Answer, Refusal, SetPrefixes};

impl Step<'_> {
    pub(super) fn set_prefixes(&mut self, request: &SetPrefixes) -> Result<Answer, Refusal> {
        self.on_draft(|step| {
            let ended = step.change_prefixes(request)?;
            // Claims are served before the answer is made, in the order of all claims.
            step.serve_waiting();
            step.prefixes_set(request, ended)
        })
    }
}
