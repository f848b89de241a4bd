//! Several actions as one: on a draft of the state, which replaces it only if every step succeeds.

use crate::seeded::SeededBug;
use ipam_api::access::Verb;
use ipam_api::limits::RESPONSE_BYTES_MAX;
use ipam_api::name::ResourceName;
use postcard::experimental::serialized_size;

use crate::access::{check_permission, permit_realm};
use crate::apply::step::Step;
use crate::command::{Answer, Cause, Kind, Precondition, Refusal, Transaction};
use crate::state::refuse::check_expected;

impl Step<'_> {
    pub(crate) fn transaction(&mut self, transaction: &Transaction) -> Result<Answer, Refusal> {
        for Precondition { kind, name, expect } in &transaction.preconditions {
            self.permit_precondition(*kind, name)?;
            check_expected(*kind, name, self.state.meta(*kind, name), *expect)?;
        }
        if SeededBug::PartialTransaction.is_on() {
            return self.all_of(transaction);
        }
        self.on_draft(|step| step.all_of(transaction))
    }

    /// Counts the rows that were written since the draft began and have not been counted yet.
    pub(super) fn count_rows(&self) -> Result<(), Refusal> {
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
            // `serialized_size` doesn't fail for a value that postcard encodes.
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

impl Step<'_> {
    /// Refuses a precondition on a resource that the caller may not read: its refusal would reveal data.
    fn permit_precondition(&self, kind: Kind, name: &ResourceName) -> Result<(), Refusal> {
        let (grant, _) = self.rights.as_ref().map_err(Clone::clone)?;
        check_permission(grant, &self.origin.principal, Verb::Read, kind.target())?;
        name.parts().map_or(Ok(()), |(realm, _)| permit_realm(grant, &realm))
    }
}
