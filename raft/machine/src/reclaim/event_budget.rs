//! Budget of events that the requests of a node have in a window of log time.

use crate::apply::step::Step;
use crate::command::{Cause, Refusal};
use crate::state::row::BootHistory;
use ipam_api::access::NodeKey;
use ipam_api::limits::{EVENTS_PER_NODE_MAX, EVENTS_PER_NODE_WINDOW_MS};

impl Step<'_> {
    /// Refuses a request of a node whose budget is spent.
    pub(crate) fn check_event_budget(&self, node: &NodeKey) -> Result<(), Refusal> {
        let now_ms = self.state.log_time_ms();
        let spent = self.state.boots_of(&node.realm, &node.name).map_or(0, |(_, row)| row.spent(now_ms));
        if spent >= EVENTS_PER_NODE_MAX {
            return Err(Cause::NodeEventsSpent { node: node.clone(), events: spent }.into());
        }
        Ok(())
    }

    pub(crate) fn spend_events(&mut self, node: &NodeKey, events: u64) {
        let now_ms = self.state.log_time_ms();
        let (id, mut row) = self.boots_or_none(&node.realm, &node.name);
        if row.window_ends_ms <= now_ms {
            row.window_ends_ms = now_ms.saturating_add(EVENTS_PER_NODE_WINDOW_MS);
            row.window_events = 0;
        }
        row.window_events = row.window_events.saturating_add(events);
        self.state.write(id, row);
    }
}

impl BootHistory {
    /// Events that the node's requests have caused in the present window.
    fn spent(&self, now_ms: u64) -> u64 {
        if self.window_ends_ms > now_ms { self.window_events } else { 0 }
    }
}
