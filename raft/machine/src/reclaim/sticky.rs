//! Sticky endpoints of a controller that is scaled, or ends.

use crate::apply::step::Step;
use crate::command::{Answer, EndController, ScaleController};
use crate::event::Reason;
use crate::state::State;
use crate::state::id::{AllocationId, EndpointId};
use crate::state::row::Sticky;
use ipam_api::resource::ScaleDown;
use std::net::IpAddr;

impl Step<'_> {
    /// Applies a controller's number of replicas: releases addresses of surplus endpoints unless kept.
    pub(crate) fn scale_controller(&mut self, scale: &ScaleController) -> Answer {
        let addresses = self.release_unwanted(scale);
        self.scale_pools(scale);
        Answer::released(addresses)
    }

    fn release_unwanted(&mut self, scale: &ScaleController) -> Vec<IpAddr> {
        let ids: Vec<EndpointId> = self.state.endpoints_scaled_by(scale).collect();
        let mut addresses = Vec::new();
        for id in ids {
            let Some(mut row) = self.state.endpoints.get(id).cloned() else { continue };
            let Some(sticky) = row.sticky.as_mut() else { continue };
            if !row.controller.as_ref().is_some_and(|controller| controller.may_be(&scale.controller)) {
                continue;
            }
            let wanted = scale.wants(&row.key.name);
            let going = if wanted { Vec::new() } else { self.state.unwanted(sticky, &row.allocations) };
            if sticky.wanted != wanted {
                sticky.wanted = wanted;
                self.state.tick();
                self.put_endpoint(id, row);
            }
            addresses.extend(self.release_all(&going, Reason::ScaledDown));
        }
        addresses
    }

    /// Ends a controller: releases its endpoints' kept addresses. Its pools are deleted once they are empty,
    /// or kept for a successor.
    pub(crate) fn end_controller(&mut self, end: &EndController) -> Answer {
        let scale = end.to_none();
        let addresses = self.release_unwanted(&scale);
        self.end_pools(&scale);
        Answer::released(addresses)
    }
}

impl State {
    /// Allocations that end with the demand for an endpoint: unattached, and kept by no policy.
    fn unwanted(&self, sticky: &Sticky, allocations: &[AllocationId]) -> Vec<AllocationId> {
        self.filter_allocations(allocations, |row| {
            row.awaits_attachment() && self.scale_down(sticky, row) == ScaleDown::Release
        })
    }
}
