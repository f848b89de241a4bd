//! Checks of a request's lease, stickiness, routing, quota, prefixes and automatic pools.

use crate::command::validate::{check_host_bits, one_family, text, within};
use crate::command::{
    AddressLimits, Allocate, Cause, ControllerName, Delegate, EndController, PrefixLevel, Quota, Refusal,
    Renew, Routing, ScaleController, SetPrefixes, SplitPool,
};
use crate::value::cause::{Counted, NamedController, TextField};
use crate::value::prefix::LENGTH_MAX;
use crate::value::{AllocateOptions, Controller, Stickiness, refuse_if};
use ipam_api::Family;
use ipam_api::limits::{
    AUTOMATIC_POOL_ADDRESSES_MAX, JSON_INTEGER_MAX, LEASE_TTL_MS_MAX, LEASE_TTL_MS_MIN, PREFIX_LEVELS_MAX,
    PREFIX_TTL_MS_MAX, PREFIX_TTL_MS_MIN, PREFIXES_LISTED_MAX, QUOTA_APPLICATIONS_MAX, RANGES_MAX,
    ROUTES_MAX,
};
use ipam_api::name::InterfaceName;
use ipam_api::resource::{Lifecycle, PoolSize};
use std::collections::BTreeSet;

impl AllocateOptions {
    pub(crate) fn check(&self, lifecycle: Lifecycle) -> Result<(), Refusal> {
        match (lifecycle, self.ttl_ms) {
            (Lifecycle::Leased, None) => Err(Cause::LeaseWithoutTtl.into()),
            (Lifecycle::Attached | Lifecycle::Held, Some(_)) => {
                Err(Cause::TtlWithoutLease { lifecycle }.into())
            }
            (_, ttl_ms) => check_ttl(ttl_ms),
        }
    }
}

impl Renew {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        check_ttl(self.ttl_ms)
    }
}

fn check_ttl(ttl_ms: Option<u64>) -> Result<(), Refusal> {
    match ttl_ms {
        Some(ttl_ms) if ttl_ms < LEASE_TTL_MS_MIN => Err(Cause::LeaseTooShort { ttl_ms }.into()),
        Some(ttl_ms) if ttl_ms > LEASE_TTL_MS_MAX => Err(Cause::LeaseTooLong { ttl_ms }.into()),
        _ => Ok(()),
    }
}

/// Maximum sizes of a controller's group and kind in bytes, as in Kubernetes.
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

impl Allocate {
    pub(crate) fn check_automatic(&self) -> Result<(), Refusal> {
        let Some(automatic) = &self.automatic_pool else { return Ok(()) };
        if self.stickiness.controller.is_none() {
            return Err(Cause::AutomaticWithoutController { endpoint: self.endpoint.clone() }.into());
        }
        if self.interfaces.iter().all(|interface| interface.subnets.is_empty()) {
            return Err(Cause::AutomaticWithoutSubnet.into());
        }
        if self.options.wait {
            return Err(Cause::AutomaticWaits.into());
        }
        if self.options.adopt {
            return Err(Cause::AutomaticAdopts.into());
        }
        let (PoolSize::Fixed(count) | PoolSize::Flexible(count)) = automatic.size;
        if automatic.size == PoolSize::Fixed(0) {
            return Err(Cause::AutomaticEmpty.into());
        }
        let asked = match automatic.size {
            PoolSize::Fixed(_) => u64::from(count),
            PoolSize::Flexible(_) => u64::from(count) + u64::from(automatic.replicas),
        };
        if asked <= u64::from(AUTOMATIC_POOL_ADDRESSES_MAX) {
            return Ok(());
        }
        Err(Cause::AutomaticTooLarge { asked }.into())
    }
}

impl EndController {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        self.controller.check()
    }
}

impl Quota {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        within(Counted::QuotaApplications, self.applications.len(), QUOTA_APPLICATIONS_MAX)?;
        for (ControllerName { group, kind, name }, limits) in &self.applications {
            let controller =
                Controller { group: group.clone(), kind: kind.clone(), name: name.clone(), uid: None };
            controller.check()?;
            if *limits == AddressLimits::default() {
                let controller = NamedController::of(&controller);
                return Err(Cause::EmptyQuota { controller }.into());
            }
        }
        let all = [&self.whole, &self.per_application].into_iter().chain(self.applications.values());
        for limit in all.flat_map(|limits| [limits.ipv4, limits.ipv6]).flatten() {
            if limit > JSON_INTEGER_MAX {
                return Err(Cause::QuotaTooLarge { limit }.into());
            }
        }
        Ok(())
    }
}

impl Routing {
    /// Refuses settings that no state could accept. Default routes are allowed, unlike in subnets.
    pub(crate) fn check(&self, request: &Allocate) -> Result<(), Refusal> {
        within(Counted::Routes, self.routes.len(), ROUTES_MAX)?;
        for (i, route) in self.routes.iter().enumerate() {
            let (destination, gateway) = (route.destination, route.gateway);
            check_host_bits(destination)?;
            if Family::of(route.destination.addr()) != Family::of(route.gateway) {
                return Err(Cause::RouteMixed { destination, gateway }.into());
            }
            if self.routes.iter().take(i).any(|other| other.destination == route.destination) {
                return Err(Cause::RouteTwice { destination }.into());
            }
        }
        let of_another = self.default_interface.as_ref().filter(|_| !request.knows_own_interface_only());
        let mut named = self.clean.iter().chain(of_another);
        let is_stranger = |name: &&InterfaceName| request.interfaces.iter().all(|one| one.name != **name);
        match named.find(is_stranger) {
            None => Ok(()),
            Some(name) => Err(Cause::DefaultRouteElsewhere { interface: name.clone() }.into()),
        }
    }
}

impl Allocate {
    /// Returns true for an ADD that names no other interfaces. The endpoint may have others, and settings of
    /// all interfaces are repeated in each ADD.
    pub(crate) fn knows_own_interface_only(&self) -> bool {
        self.attachment.is_some() && self.interfaces.len() == 1
    }
}

impl Delegate {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        within(Counted::PrefixLevels, self.levels.len(), PREFIX_LEVELS_MAX)?;
        if self.levels.is_empty() {
            return Err(Cause::NoLevel.into());
        }
        let mut above = None;
        for level in &self.levels {
            level.check()?;
            let Some(length) = level.length else { continue };
            if above.is_some_and(|above| above >= length) {
                let above = above.unwrap_or_default();
                return Err(Cause::NotLonger { length, above }.into());
            }
            above = Some(length);
        }
        Ok(())
    }
}

impl SetPrefixes {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        within(Counted::ListedPrefixes, self.prefixes.len(), PREFIXES_LISTED_MAX)?;
        let mut owners = BTreeSet::new();
        for level in &self.prefixes {
            level.check()?;
            refuse_if(!owners.insert(&level.owner), || Cause::OwnerTwice { owner: level.owner.clone() })?;
        }
        Ok(())
    }
}

impl PrefixLevel {
    fn check(&self) -> Result<(), Refusal> {
        if let Some(length) = self.length.filter(|length| !(1..=LENGTH_MAX).contains(length)) {
            return Err(Cause::PrefixLength { length }.into());
        }
        match self.ttl_ms {
            Some(ttl_ms) if !(PREFIX_TTL_MS_MIN..=PREFIX_TTL_MS_MAX).contains(&ttl_ms) => {
                Err(Cause::PrefixTtl { ttl_ms }.into())
            }
            _ => Ok(()),
        }
    }
}

impl SplitPool {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        within(Counted::Ranges, self.ranges.len(), RANGES_MAX)?;
        if self.ranges.is_empty() {
            return Err(Cause::SplitsNothing.into());
        }
        one_family(self.ranges.iter())
    }
}
