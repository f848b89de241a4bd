//! Endpoints that come back: what may be said of them, and what goes once nobody wants them any more.

use std::net::IpAddr;

use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::{Lifecycle, ScaleDown};

use super::check::text;
use super::command::Cause;
use super::command::cause::TextField;
use super::command::{Answer, Controller, ControllerName, Refusal, ScaleController, Stickiness};
use super::event::Reason;
use super::model::{Allocation, Endpoint, Sticky};
use super::state::State;
use super::step::Step;

/// Bytes of a controller's group and of its kind, as Kubernetes has them.
const GROUP_BYTES_MAX: usize = 253;
const KIND_BYTES_MAX: usize = 63;

/// By which a controller's endpoints are found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ControllerKey {
    realm: Name,
    namespace: ObjectName,
    controller: ControllerName,
}

impl ControllerKey {
    pub(super) fn new(realm: &Name, namespace: &ObjectName, controller: &Controller) -> Self {
        Self {
            realm: realm.clone(),
            namespace: namespace.clone(),
            controller: ControllerName::of(controller),
        }
    }

    /// Of a sticky endpoint that has one.
    pub(super) fn of(row: &Endpoint) -> Option<Self> {
        let controller = row.controller.as_deref().filter(|_| row.sticky.is_some())?;
        Some(Self::new(&row.key.realm, &row.key.namespace, controller))
    }
}

impl Controller {
    pub(super) fn check(&self) -> Result<(), Refusal> {
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
    pub(super) fn check(&self) -> Result<(), Refusal> {
        self.controller.check()
    }
}

impl Stickiness {
    pub(super) fn check(&self, lifecycle: Lifecycle) -> Result<(), Refusal> {
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
    pub(super) fn scale_controller(&mut self, scale: &ScaleController) -> Answer {
        let addresses = self.release_unwanted(scale);
        self.scale_pools(scale);
        Answer::released(addresses)
    }

    pub(super) fn release_unwanted(&mut self, scale: &ScaleController) -> Vec<IpAddr> {
        let key = ControllerKey::new(&scale.realm, &scale.namespace, &scale.controller);
        let all = self.state.index.controllers.range((key.clone(), 0)..=(key, u64::MAX));
        let ids: Vec<u64> = all.map(|(_, id)| *id).collect();
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
    pub(super) fn scale_down(&self, sticky: &Sticky, row: &Allocation) -> ScaleDown {
        let of_pool = || self.pools.get(row.pool).map(|pool| pool.intention.scale_down);
        sticky.scale_down.or_else(of_pool).unwrap_or_default()
    }

    /// What goes with the wish for an endpoint: nothing lives on it, and nobody said that it stays.
    fn unwanted(&self, sticky: &Sticky, allocations: &[u64]) -> Vec<u64> {
        let goes = |id: &u64| {
            self.allocations.get(*id).is_some_and(|row| {
                row.attachment.is_none()
                    && row.lifecycle == Lifecycle::Attached
                    && self.scale_down(sticky, row) == ScaleDown::Release
            })
        };
        allocations.iter().copied().filter(goes).collect()
    }

    /// What allocations of a controller's endpoints are touched by its scaling.
    pub(super) fn touched_by(&self, scale: &ScaleController) -> impl Iterator<Item = u64> {
        let key = ControllerKey::new(&scale.realm, &scale.namespace, &scale.controller);
        let all = self.index.controllers.range((key.clone(), 0)..=(key, u64::MAX));
        let rows = all.filter_map(|(_, id)| self.endpoints.get(*id));
        rows.flat_map(|row| row.allocations.iter().copied())
    }
}
