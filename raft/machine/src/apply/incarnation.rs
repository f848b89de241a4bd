//! Incarnation that a request is for, among those of its endpoint.

use crate::apply::work::Work;
use crate::command::Allocate;
use crate::state::State;
use crate::state::id::EndpointId;

impl State {
    /// Returns the incarnation that the request means: the one with its uid, else the newest. The newest is
    /// meant only without a uid. A sticky endpoint has a single incarnation for all uids, and a host has one
    /// for the uid that takes over. Above the budget of `work` the result is meaningless: the caller checks
    /// the budget.
    pub(crate) fn incarnation_for(&self, request: &Allocate, work: &Work) -> Option<EndpointId> {
        let is_sticky = |id: &EndpointId| self.endpoints.named(*id).sticky.is_some();
        let is_meant = |id: &EndpointId| request.means(self.endpoints.named(*id));
        let asks_sticky = request.stickiness.is_sticky();
        // Most endpoints have one incarnation, or none yet.
        let newest = self.newest_incarnation(&request.endpoint)?;
        if if asks_sticky { is_sticky(&newest) } else { is_meant(&newest) } {
            return Some(newest);
        }
        let ids = || self.incarnations(&request.endpoint).take_while(|_| work.take_reads(1));
        let sticky = if asks_sticky { ids().filter(is_sticky).last() } else { None };
        sticky.or_else(|| ids().filter(is_meant).last())
    }
}
