//! Permission checks in `apply`, on the state that the command meets.
//!
//! The HTTP boundary refuses early; only here is it certain that a token still exists, that an allocation is
//! the node's own, and that a pool still has the labels.

use crate::apply::step::Step;
use crate::apply::work::{Search, Work};
use crate::command::{
    Action, Allocate, Cause, Credential, EndIncarnation, Grant, Kind, Leases, Manager, Metadata, OnLinks,
    PrefixSource, Purpose, Refusal, ReleaseAttachment, Renew, ScaleController, Text,
};
use crate::state::State;
use crate::state::id::{AllocationId, EndpointId, PoolId, PrefixId, TokenId};
use crate::state::row::Allocation;
use ipam_api::access::{Effect, NodeKey, Role, Target, Verb, may};
use ipam_api::name::{Name, ResourceName};
use ipam_api::request::AttachmentKey;
use ipam_api::resource::{EndpointKey, EndpointKind};

impl Kind {
    /// The kind's target in the table of roles.
    #[must_use]
    pub fn target(self) -> Target {
        match self {
            Kind::Network => Target::Network,
            Kind::Subnet => Target::Subnet,
            Kind::Pool => Target::Pool,
            Kind::Reservation => Target::Reservation,
            Kind::Token => Target::Token,
            Kind::Node => Target::Node,
            Kind::Namespace => Target::Namespace,
            Kind::HostPolicy => Target::HostPolicy,
        }
    }
}

impl Action {
    /// Verb and target that the table of roles must allow; none for an action that is checked otherwise.
    #[must_use]
    pub fn permission(&self) -> Option<(Verb, Target)> {
        match self {
            Action::PutNetwork(_) => Some((Verb::Write, Target::Network)),
            Action::PutSubnet(_) => Some((Verb::Write, Target::Subnet)),
            Action::PutPool(_) => Some((Verb::Write, Target::Pool)),
            Action::PutReservation(_) => Some((Verb::Write, Target::Reservation)),
            Action::PutNode(_) => Some((Verb::Write, Target::Node)),
            Action::PutNamespace(_) => Some((Verb::Write, Target::Namespace)),
            Action::PutHostPolicy(_) => Some((Verb::Write, Target::HostPolicy)),
            Action::Delete(delete) => Some((Verb::Delete, delete.kind.target())),
            Action::Allocate(_) | Action::AllocateOnLinks(_) | Action::AllocateMany(_) | Action::Renew(_) => {
                Some((Verb::Allocate, Target::Allocation))
            }
            Action::ReleaseAttachment(_) | Action::ReleaseAttachmentOf(_) => {
                Some((Verb::Release, Target::Attachment))
            }
            Action::ReleaseAllocation { .. } | Action::ReleaseAllocations { .. } => {
                Some((Verb::Release, Target::Allocation))
            }
            Action::ReleaseEndpoint { .. } | Action::EndIncarnation(_) => {
                Some((Verb::Release, Target::Endpoint))
            }
            Action::ScaleController(_) | Action::EndController(_) => {
                Some((Verb::Release, Target::Application))
            }
            Action::CreateToken(_) | Action::RotateToken { .. } => Some((Verb::Write, Target::Token)),
            Action::Expire | Action::TrimJournal { .. } | Action::SealJournal => {
                Some((Verb::Delete, Target::Event))
            }
            Action::RaiseLevel { .. } => Some((Verb::Write, Target::Cluster)),
            Action::SplitPool(_) => Some((Verb::Write, Target::Pool)),
            Action::ConfirmEpoch(_) => Some((Verb::Write, Target::Cluster)),
            // Each step has its own permission.
            Action::Transaction(_) => None,
            Action::ChangeMembers(_) => Some((Verb::Write, Target::Cluster)),
            Action::Delegate(_) | Action::DelegateOrWait(_) | Action::SetPrefixes(_) => {
                Some((Verb::Allocate, Target::Prefix))
            }
            Action::ReleasePrefix { .. } => Some((Verb::Release, Target::Prefix)),
            Action::Heartbeat(_) => Some((Verb::Report, Target::Node)),
            Action::ReportPods(_) => Some((Verb::Report, Target::Endpoint)),
            Action::ReportProbes(_) => Some((Verb::Report, Target::Node)),
            Action::EndQuarantine(_) => Some((Verb::Release, Target::Quarantine)),
            Action::Reclaim(_) => Some((Verb::Reclaim, Target::Node)),
            Action::ReleaseOrphans(_) => Some((Verb::Release, Target::Attachment)),
            // Allowed by the token itself.
            Action::Join { .. } | Action::JoinMember(_) | Action::RenewToken => None,
        }
    }
}

impl State {
    /// Grant and purpose of a credential at the present log time.
    ///
    /// # Errors
    /// `unauthenticated` for a deleted token, `token-expired` for an expired one.
    pub fn grant(&self, credential: &Credential) -> Result<(Grant, Purpose), Refusal> {
        let id = match credential {
            Credential::Known(grant) => return Ok((grant.clone(), Purpose::Bearer)),
            Credential::Token { id } => *id,
        };
        let row = self.tokens.get(id).ok_or(Cause::TokenRevoked)?;
        if row.expires_ms.is_some_and(|until_ms| until_ms <= self.log_time_ms()) {
            return Err(Cause::TokenExpired { name: row.name.clone() }.into());
        }
        Ok((row.grant.clone(), row.purpose))
    }

    /// The token with a secret, by the secret's hash.
    #[must_use]
    pub fn token_by_secret(
        &self,
        secret_hash: &crate::command::SecretHash,
    ) -> Option<(TokenId, &crate::state::row::Token)> {
        let id = *self.index.token_secrets.get(secret_hash)?;
        self.tokens.get(id).map(|row| (id, row))
    }

    /// Refuses an action that the grant doesn't allow.
    pub(crate) fn permit(
        &self,
        grant: &Grant,
        principal: &Text,
        action: &Action,
        work: &Work,
    ) -> Result<(), Refusal> {
        let Some((verb, target)) = action.permission() else { return Ok(()) };
        check_permission(grant, principal, verb, target)?;
        self.permit_affected(grant, action, work)?;
        match action {
            Action::Allocate(request) | Action::AllocateOnLinks(OnLinks(request)) => {
                self.permit_allocate(request, Search { grant, work })
            }
            Action::PutReservation(put) => {
                put.spec.endpoint.as_ref().map_or(Ok(()), |endpoint| permit_realm(grant, &endpoint.realm))
            }
            Action::ReleaseAttachment(release) => self.permit_release_attachment(grant, release),
            Action::ReleaseAttachmentOf(of) => {
                self.permit_release_attachment(grant, &of.release)?;
                self.permit_labels_of(grant, &self.adopted_for(of))
            }
            Action::Heartbeat(heartbeat) => {
                permit_realm(grant, &heartbeat.node.realm)?;
                permit_report(grant, &heartbeat.node)
            }
            Action::ReportProbes(report) => {
                permit_realm(grant, &report.node.realm)?;
                permit_report(grant, &report.node)
            }
            Action::ReportPods(report) => permit_realm(grant, &report.realm),
            Action::EndQuarantine(end) => match self.quarantine_at(&end.network, end.address) {
                Some((_, row)) => self.permit_pool(grant, row.pool),
                None => Ok(()),
            },
            Action::Reclaim(reclaim) => {
                permit_realm(grant, &reclaim.node.realm)?;
                self.permit_labels_of(grant, &self.present_of(&reclaim.allocations))
            }
            Action::ReleaseOrphans(request) => {
                permit_realm(grant, &request.node.realm)?;
                permit_report(grant, &request.node)?;
                let rows = request.orphans.iter().map(|orphan| self.attachment(&orphan.key(&request.node)));
                let mut held = rows.flatten().map(|(_, row)| &row.allocations);
                held.try_for_each(|ids| self.permit_labels_of(grant, ids))
            }
            Action::ReleaseAllocation { id } => self.permit_release(grant, *id),
            Action::Renew(request) => self.permit_renew(grant, request),
            Action::ReleaseEndpoint { key }
            | Action::EndIncarnation(EndIncarnation { endpoint: key, .. }) => {
                permit_realm(grant, &key.realm)?;
                self.permit_host(grant, key)?;
                let incarnations = self.incarnations(key).map(|id| self.endpoints.named(id));
                incarnations
                    .map(|row| self.permit_labels_of(grant, &row.allocations))
                    .find(Result::is_err)
                    .unwrap_or(Ok(()))
            }
            Action::ScaleController(scale) => self.permit_scale(scale, Search { grant, work }),
            Action::EndController(end) => self.permit_scale(&end.to_none(), Search { grant, work }),
            Action::Delegate(request) | Action::DelegateOrWait(request) => {
                permit_realm(grant, &request.realm)?;
                self.permit_source(grant, &request.from)
            }
            Action::SetPrefixes(request) => {
                check_permission(grant, principal, Verb::Release, Target::Prefix)?;
                permit_realm(grant, &request.realm)?;
                self.permit_source(grant, &request.from)
            }
            Action::ReleasePrefix { id } => self.permit_prefix(grant, *id),
            _ => Ok(()),
        }
    }

    fn permit_release_attachment(&self, grant: &Grant, release: &ReleaseAttachment) -> Result<(), Refusal> {
        permit_realm(grant, &release.key.realm)?;
        permit_attachment(grant, &release.key)?;
        let held = self.attachment(&release.key).map(|(_, row)| row.allocations.as_slice());
        self.permit_labels_of(grant, held.unwrap_or_default())
    }

    fn permit_allocate(&self, request: &Allocate, search: Search<'_>) -> Result<(), Refusal> {
        let Search { grant, work } = search;
        permit_realm(grant, &request.endpoint.realm)?;
        if let Some(key) = &request.attachment {
            permit_realm(grant, &key.realm)?;
            permit_attachment(grant, key)?;
        }
        if request.options.adopt && grant.role == Role::Node {
            // Adoption would let a stolen node token allocate addresses that selectors and reservations
            // protect.
            return Err(Cause::AdoptionByNode.into());
        }
        let Some(node) = &grant.node else { return Ok(()) };
        if request.endpoint.realm != node.realm {
            return Err(foreign(node, &request.endpoint));
        }
        let elsewhere = |named: &ipam_api::ObjectName| *named != node.name;
        // Without an attachment the node must be named, or the owner of the addresses would be unknown later.
        if request.node.as_ref().map_or(request.attachment.is_none(), elsewhere) {
            return Err(Cause::NodeElsewhere { node: node.clone() }.into());
        }
        if request.endpoint.kind == EndpointKind::Host {
            return self.permit_host(grant, &request.endpoint);
        }
        // The closure also returns true above the work budget.
        let is_refused = |id: EndpointId| {
            let row = self.endpoints.named(id);
            let is_fixed = request.attachment.is_none() || row.sticky.is_none();
            let mut held = row.allocations.iter().map(|id| self.allocations.named(*id));
            !work.take_reads(1 + row.allocations.len())
                || (is_fixed && held.any(|row| !self.is_on(row, node)))
        };
        let is_refused = match request.attachment {
            None => self.incarnations(&request.endpoint).any(is_refused),
            // A sticky endpoint may move to any node; but its present node must declare it sticky.
            Some(_) if request.stickiness.is_sticky() => {
                self.incarnation_for(request, work).is_some_and(is_refused)
            }
            Some(_) => false,
        };
        work.check()?;
        if is_refused { Err(foreign(node, &request.endpoint)) } else { Ok(()) }
    }

    /// Refuses a node's access to an endpoint, unless it is its own host's and attached nowhere else.
    fn permit_host(&self, grant: &Grant, key: &EndpointKey) -> Result<(), Refusal> {
        let Some(node) = &grant.node else { return Ok(()) };
        let mut rows = self.held_by(key);
        match *key == node.host() && !rows.any(|row| self.is_attached_elsewhere(row, node)) {
            true => Ok(()),
            false => Err(foreign(node, key)),
        }
    }

    /// Allocations of all incarnations of an endpoint.
    fn held_by(&self, key: &EndpointKey) -> impl Iterator<Item = &Allocation> {
        let rows = self.incarnations(key).map(|id| self.endpoints.named(id));
        rows.flat_map(|row| &row.allocations).map(|id| self.allocations.named(*id))
    }

    fn permit_scale(&self, scale: &ScaleController, search: Search<'_>) -> Result<(), Refusal> {
        let grant = search.grant;
        permit_realm(grant, &scale.realm)?;
        self.permit_scale_of_node(scale, search)?;
        let touched: Vec<AllocationId> = self.touched_by(scale).collect();
        self.permit_labels_of(grant, &touched)?;
        self.permit_pools_of(grant, scale)
    }

    fn permit_release(&self, grant: &Grant, id: AllocationId) -> Result<(), Refusal> {
        let Some(row) = self.allocations.get(id) else { return Ok(()) };
        let endpoint = self.endpoints.named(row.endpoint);
        permit_realm(grant, &endpoint.key.realm)?;
        self.permit_labels_of(grant, &[id])?;
        self.permit_free(grant, id)
    }

    /// Refuses a prefix beyond the rights. The plan of a delegation refuses such a pool.
    fn permit_source(&self, grant: &Grant, from: &PrefixSource) -> Result<(), Refusal> {
        match from {
            PrefixSource::Prefix(id) => self.permit_prefix(grant, *id),
            PrefixSource::Pool(_) => Ok(()),
        }
    }

    fn permit_prefix(&self, grant: &Grant, id: PrefixId) -> Result<(), Refusal> {
        let (realm, pool) = match (self.prefixes.get(id), self.prefix_claims.get(id.claim())) {
            (Some(row), _) => (&row.owner.realm, row.pool),
            (None, Some(claim)) => (&claim.request.realm, claim.pool),
            (None, None) => return Ok(()),
        };
        permit_realm(grant, realm)?;
        self.permit_pool(grant, pool)
    }

    /// Refuses access to resources of a pool without the labels of the rights.
    pub(crate) fn permit_pool(&self, grant: &Grant, pool: PoolId) -> Result<(), Refusal> {
        match self.pools.get(pool) {
            Some(pool) if !fits(grant, &pool.spec.metadata) => {
                Err(not_labelled(grant, Kind::Pool, &pool.spec.name))
            }
            _ => Ok(()),
        }
    }

    fn permit_renew(&self, grant: &Grant, request: &Renew) -> Result<(), Refusal> {
        let key = match &request.which {
            Leases::Allocation(id) => return self.permit_lease(grant, *id, request.ttl_ms),
            Leases::Endpoint(key) => key,
        };
        permit_realm(grant, &key.realm)?;
        let rows = self.incarnations(key).map(|id| self.endpoints.named(id));
        let mut ids = rows.flat_map(|row| row.allocations.iter());
        ids.try_for_each(|id| self.permit_lease(grant, *id, request.ttl_ms))
    }

    /// Refuses to renew leases beyond the grant. A node may not shorten a lease that it may not end.
    pub(crate) fn permit_lease(
        &self,
        grant: &Grant,
        id: AllocationId,
        ttl_ms: Option<u64>,
    ) -> Result<(), Refusal> {
        let Some(row) = self.allocations.get(id) else { return Ok(()) };
        let endpoint = self.endpoints.named(row.endpoint);
        permit_realm(grant, &endpoint.key.realm)?;
        self.permit_labels_of(grant, &[id])?;
        let Some(node) = &grant.node else { return Ok(()) };
        if !self.is_on(row, node) && endpoint.key != node.host() {
            return Err(foreign(node, &endpoint.key));
        }
        let shortens = row.lease.as_ref().is_some_and(|lease| ttl_ms.is_some_and(|ttl| ttl < lease.ttl_ms));
        if shortens { self.permit_free(grant, id) } else { Ok(()) }
    }

    /// Returns true if all attachments of an allocation, or its node without one, are of `node`.
    pub(crate) fn is_on(&self, row: &Allocation, node: &NodeKey) -> bool {
        let own = |key: &AttachmentKey| key.realm == node.realm && key.node == node.name;
        match row.attachment {
            Some(_) => self.attachments_of(row).all(|(_, attachment)| own(&attachment.key)),
            None => {
                let realm = self.endpoints.get(row.endpoint).map(|endpoint| &endpoint.key.realm);
                row.node.as_ref() == Some(&node.name) && realm == Some(&node.realm)
            }
        }
    }

    pub(crate) fn permit_labels_of(
        &self,
        grant: &Grant,
        allocations: &[AllocationId],
    ) -> Result<(), Refusal> {
        if grant.labels.is_empty() {
            return Ok(());
        }
        let mut rows = allocations.iter().map(|id| self.allocations.named(*id));
        rows.try_for_each(|row| self.permit_pool(grant, row.pool))
    }
}

impl Step<'_> {
    /// Refuses a change by another manager than the resource's.
    pub(crate) fn check_manager(&self, kind: Kind, name: impl Into<ResourceName>) -> Result<(), Refusal> {
        let name = name.into();
        let managed_by = self.state.metadata(kind, &name).and_then(|metadata| metadata.managed_by.clone());
        let Some(by) = managed_by else { return Ok(()) };
        match self.manager {
            Manager::TakeOver => Ok(()),
            Manager::Named(manager) if *manager == by => Ok(()),
            Manager::Named(_) | Manager::Nobody => Err(Cause::ManagedElsewhere { kind, name, by }.into()),
        }
    }

    /// Refuses a request beyond the rights of the caller, whose role permits allocations.
    pub(crate) fn permit_request(&self, request: &Allocate) -> Result<(), Refusal> {
        let (grant, _) = self.rights.as_ref().map_err(Clone::clone)?;
        self.state.permit_allocate(request, Search { grant, work: self.work })
    }

    pub(crate) fn permitted(&self, action: &Action) -> Result<(), Refusal> {
        let (grant, _) = self.rights.as_ref().map_err(Clone::clone)?;
        self.state.permit(grant, &self.origin.principal, action, self.work)
    }
}

/// Returns true if a resource's labels satisfy the label limit of a grant.
pub(crate) fn fits(grant: &Grant, metadata: &Metadata) -> bool {
    grant.labels.is_empty() || grant.labels.fits(|key| metadata.labels.get(key).map(|value| &**value))
}

/// Refuses an operation that the table of roles doesn't allow.
///
/// # Errors
/// `forbidden`.
pub fn check_permission(grant: &Grant, principal: &Text, verb: Verb, target: Target) -> Result<(), Refusal> {
    if may(grant.role, verb, target) {
        return check_limits(grant, verb, target);
    }
    Err(Cause::MayNot { principal: principal.excerpt(), role: grant.role, verb, target }.into())
}

/// Refuses an operation that the limits of the rights never permit.
pub(crate) fn check_limits(grant: &Grant, verb: Verb, target: Target) -> Result<(), Refusal> {
    let mut effects = grant.effects(verb, target);
    let refused = effects.find_map(|effect| match effect {
        Effect::Refused => Some(Cause::ClusterBeyondLimits { verb, target }),
        Effect::Shared if !grant.allow_shared => Some(Cause::SharedByRealms { verb, target }),
        _ => None,
    });
    refused.map_or(Ok(()), |cause| Err(cause.into()))
}

pub(crate) fn permit_realm(grant: &Grant, realm: &Name) -> Result<(), Refusal> {
    if let Some(node) = grant.node.as_ref().filter(|node| node.realm != *realm) {
        return Err(Cause::RealmElsewhere { realm: realm.clone(), node: node.clone() }.into());
    }
    if grant.realms.is_empty() || grant.realms.contains(realm) {
        return Ok(());
    }
    Err(Cause::RealmForbidden { realm: realm.clone() }.into())
}

fn permit_attachment(grant: &Grant, key: &AttachmentKey) -> Result<(), Refusal> {
    match &grant.node {
        Some(node) if node.realm != key.realm || node.name != key.node => {
            Err(Cause::AttachmentElsewhere { attachment: key.clone(), node: node.clone() }.into())
        }
        _ => Ok(()),
    }
}

fn permit_report(grant: &Grant, reported: &NodeKey) -> Result<(), Refusal> {
    match &grant.node {
        Some(node) if node != reported => {
            Err(Cause::ReportElsewhere { reported: reported.clone(), node: node.clone() }.into())
        }
        _ => Ok(()),
    }
}

fn foreign(node: &NodeKey, endpoint: &EndpointKey) -> Refusal {
    Cause::EndpointElsewhere { endpoint: endpoint.clone(), node: node.clone() }.into()
}

pub(crate) fn not_labelled(grant: &Grant, kind: Kind, name: impl Into<ResourceName>) -> Refusal {
    Cause::NotLabelled { kind, name: name.into(), labels: grant.labels.clone() }.into()
}
