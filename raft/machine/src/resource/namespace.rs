//! Namespaces: labels for the selectors of pools, and default pools of their endpoints.

use crate::apply::step::Step;
use crate::command::{Answer, Expect, NamespaceSpec, Put, Refusal};
use crate::state::row::Namespace;
use ipam_api::name::ResourceName;

impl Step<'_> {
    pub(crate) fn put_namespace(&mut self, put: &Put<NamespaceSpec>) -> Result<Answer, Refusal> {
        let answer = self.put_described::<Namespace>(put.spec.resource_name(), put)?;
        self.state.refresh_waiters_of(&put.spec);
        Ok(answer)
    }

    /// Deletes the row of a namespace. The allocations of its endpoints stay.
    pub(crate) fn delete_namespace(
        &mut self,
        name: &ResourceName,
        expect: Expect,
    ) -> Result<Answer, Refusal> {
        let id = self.to_write::<Namespace>(name, expect)?;
        let row = self.delete(id, name);
        self.state.refresh_waiters_of(&row.spec);
        Ok(Answer::Gone)
    }
}
