//! Endpoints that come back: what may be said of them, and what goes once nobody wants them any more.

use crate::apply::step::Step;
use crate::command::validate::text;
use crate::command::{Answer, Cause, Controller, Refusal, ScaleController, Stickiness};
use crate::event::Reason;
use crate::state::State;
use crate::state::id::{AllocationId, EndpointId, Id};
use crate::state::key::ControllerKey;
use crate::state::row::{Allocation, Sticky};
use crate::value::cause::TextField;
use ipam_api::resource::{Lifecycle, ScaleDown};
use std::net::IpAddr;

/// Bytes of a controller's group and of its kind, as Kubernetes has them.
const GROUP_BYTES_MAX: usize = 253;
const KIND_BYTES_MAX: usize = 63;

impl Controller {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let is_plain = |text: &str, also: &[u8]| {
            text.bytes().all(|byte| byte.is_ascii_alphanumeric() || also.contains(&byte))
        };
        if self.kind.is_empty() || self.kind.len() > KIND_BYTES_MAX || !is_plain(&self.kind, b"") {
            return Err(Cause::NotControllerKind { kind: self.kind.excerpt() }.into());
        }
        if self.group.len() > GROUP_BYTES_MAX || !is_plain(&self.group, b".-") {
            return Err(Cause::NotControllerGroup { group: self.group.excerpt() }.into());
        }
        self.uid.as_ref().map_or(Ok(()), |uid| text(TextField::ControllerUid, uid))
    }
}

impl ScaleController {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        self.controller.check()
    }
}

impl Stickiness {
    pub(crate) fn check(&self, lifecycle: Lifecycle) -> Result<(), Refusal> {
        if let Some(controller) = &self.controller {
            controller.check()?;
            if self.sticky == Some(true) && controller.has_passing_names() {
                return Err(Cause::NeverSticky { kind: controller.kind.clone() }.into());
            }
        }
        if self.scale_down.is_some() && !self.is_sticky() {
            return Err(Cause::ScaleDownNotSticky.into());
        }
        if lifecycle == Lifecycle::Leased && self.is_sticky() {
            return Err(Cause::StickyLease.into());
        }
        Ok(())
    }
}

impl Step<'_> {
    /// A controller says how many endpoints it wants: what the others keep is free, unless it is to be kept.
    pub(crate) fn scale_controller(&mut self, scale: &ScaleController) -> Answer {
        let addresses = self.release_unwanted(scale);
        self.scale_pools(scale);
        Answer::released(addresses)
    }

    pub(crate) fn release_unwanted(&mut self, scale: &ScaleController) -> Vec<IpAddr> {
        let key = ControllerKey::new(&scale.realm, &scale.namespace, &scale.controller);
        let all = self.state.index.controllers.range((key.clone(), Id::MIN)..=(key, Id::MAX));
        let ids: Vec<EndpointId> = all.map(|(_, id)| *id).collect();
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
}

impl State {
    /// What becomes of those of an endpoint's addresses that aren't wanted.
    pub(crate) fn scale_down(&self, sticky: &Sticky, row: &Allocation) -> ScaleDown {
        let of_pool = || self.pools.get(row.pool).map(|pool| pool.intention.scale_down);
        sticky.scale_down.or_else(of_pool).unwrap_or_default()
    }

    /// What goes with the wish for an endpoint: nothing lives on it, and nobody said that it stays.
    fn unwanted(&self, sticky: &Sticky, allocations: &[AllocationId]) -> Vec<AllocationId> {
        let goes = |id: &AllocationId| {
            self.allocations.get(*id).is_some_and(|row| {
                row.attachment.is_none()
                    && row.lifecycle == Lifecycle::Attached
                    && self.scale_down(sticky, row) == ScaleDown::Release
            })
        };
        allocations.iter().copied().filter(goes).collect()
    }

    /// What allocations of a controller's endpoints are touched by its scaling.
    pub(crate) fn touched_by(&self, scale: &ScaleController) -> impl Iterator<Item = AllocationId> {
        let key = ControllerKey::new(&scale.realm, &scale.namespace, &scale.controller);
        let all = self.index.controllers.range((key.clone(), Id::MIN)..=(key, Id::MAX));
        let rows = all.filter_map(|(_, id)| self.endpoints.get(*id));
        rows.flat_map(|row| row.allocations.iter().copied())
    }
}
