//! Who may do what, decided where it counts: in `apply`, on the state that the command meets.
//!
//! The door refuses what is hopeless; only here is it certain that a token still exists, that an allocation
//! is really the node's own, and that a pool still has the labels.

use ipam_api::access::{NodeKey, Role, Target, Verb, may};
use ipam_api::name::{Name, ResourceName};
use ipam_api::request::AttachmentKey;
use ipam_api::resource::EndpointKey;

use super::command::{
    Action, Allocate, Cause, Credential, Grant, Kind, Leases, Manager, PrefixSource, Purpose, Refusal,
    Remarks, ScaleController, Text,
};
use super::model::Allocation;
use super::state::State;
use super::step::Step;

impl Kind {
    /// What the table of roles calls it.
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
        }
    }
}

impl Action {
    /// What the table of roles must allow; nothing for what is looked at step by step, or otherwise.
    #[must_use]
    pub fn deed(&self) -> Option<(Verb, Target)> {
        match self {
            Action::PutNetwork(_) => Some((Verb::Write, Target::Network)),
            Action::PutSubnet(_) => Some((Verb::Write, Target::Subnet)),
            Action::PutPool(_) => Some((Verb::Write, Target::Pool)),
            Action::PutReservation(_) => Some((Verb::Write, Target::Reservation)),
            Action::PutNode(_) => Some((Verb::Write, Target::Node)),
            Action::PutNamespace(_) => Some((Verb::Write, Target::Namespace)),
            Action::Delete(delete) => Some((Verb::Delete, delete.kind.target())),
            Action::Allocate(_) | Action::Renew(_) => Some((Verb::Allocate, Target::Allocation)),
            Action::ReleaseAttachment(_) => Some((Verb::Release, Target::Attachment)),
            Action::ReleaseAllocation { .. } => Some((Verb::Release, Target::Allocation)),
            Action::ReleaseEndpoint { .. } | Action::ScaleController(_) | Action::EndController(_) => {
                Some((Verb::Release, Target::Endpoint))
            }
            Action::CreateToken(_) | Action::RotateToken { .. } => Some((Verb::Write, Target::Token)),
            Action::Expire | Action::TrimJournal { .. } | Action::SealJournal => {
                Some((Verb::Delete, Target::Event))
            }
            Action::RaiseLevel { .. } => Some((Verb::Write, Target::Cluster)),
            Action::SplitPool(_) => Some((Verb::Write, Target::Pool)),
            Action::ConfirmGeneration(_) => Some((Verb::Write, Target::Cluster)),
            // Each step has its own.
            Action::Transaction(_) => None,
            Action::ChangeMembers(_) => Some((Verb::Write, Target::Cluster)),
            Action::Delegate(_) => Some((Verb::Allocate, Target::Prefix)),
            Action::ReleasePrefix { .. } => Some((Verb::Release, Target::Prefix)),
            // Allowed by the join token itself.
            Action::Join { .. } | Action::JoinMember(_) => None,
        }
    }
}

impl State {
    /// What a credential allows now.
    ///
    /// # Errors
    /// `unauthenticated` for a token that is no more, `token-expired` for one whose time has passed.
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
        secret_hash: &super::command::SecretHash,
    ) -> Option<(u64, &super::model::Token)> {
        let id = *self.index.token_secrets.get(secret_hash)?;
        self.tokens.get(id).map(|row| (id, row))
    }

    /// Refuses what the rights don't allow.
    pub(super) fn permit(&self, grant: &Grant, principal: &Text, action: &Action) -> Result<(), Refusal> {
        let Some((verb, target)) = action.deed() else { return Ok(()) };
        check_deed(grant, principal, verb, target)?;
        match action {
            Action::Allocate(wish) => self.permit_allocate(grant, wish),
            Action::ReleaseAttachment(release) => {
                permit_realm(grant, &release.key.realm)?;
                permit_attachment(grant, &release.key)?;
                let held = self.attachment(&release.key).map(|(_, row)| row.allocations.as_slice());
                self.permit_labels_of(grant, held.unwrap_or_default())
            }
            Action::ReleaseAllocation { id } => self.permit_release(grant, *id),
            Action::Renew(wish) => self.permit_renew(grant, &wish.which),
            Action::ReleaseEndpoint { key } => {
                permit_realm(grant, &key.realm)?;
                let incarnations = self.incarnations(key).filter_map(|id| self.endpoints.get(id));
                incarnations
                    .map(|row| self.permit_labels_of(grant, &row.allocations))
                    .find(Result::is_err)
                    .unwrap_or(Ok(()))
            }
            Action::ScaleController(scale) => self.permit_scale(grant, scale),
            Action::EndController(end) => self.permit_scale(grant, &end.to_none()),
            Action::PutNetwork(put) => {
                self.permit_labels(grant, Kind::Network, &put.intention.name, Some(&put.intention.remarks))
            }
            Action::PutSubnet(put) => {
                self.permit_labels(grant, Kind::Subnet, &put.intention.name, Some(&put.intention.remarks))
            }
            Action::PutPool(put) => {
                self.permit_labels(grant, Kind::Pool, &put.intention.name, Some(&put.intention.remarks))
            }
            Action::PutReservation(put) => self.permit_labels(
                grant,
                Kind::Reservation,
                &put.intention.name,
                Some(&put.intention.remarks),
            ),
            // The new pool has the old one's labels.
            Action::SplitPool(split) => self.permit_labels(grant, Kind::Pool, &split.name, None),
            Action::PutNode(put) => {
                permit_realm(grant, &put.intention.realm)?;
                let name = put.intention.resource_name();
                self.permit_labels(grant, Kind::Node, name, Some(&put.intention.remarks))
            }
            Action::PutNamespace(put) => {
                permit_realm(grant, &put.intention.realm)?;
                let name = put.intention.resource_name();
                self.permit_labels(grant, Kind::Namespace, name, Some(&put.intention.remarks))
            }
            Action::Delete(delete) => {
                if let Some((realm, _)) = delete.name.parts() {
                    permit_realm(grant, &realm)?;
                }
                self.permit_labels(grant, delete.kind, &delete.name, None)
            }
            Action::Delegate(wish) => {
                permit_realm(grant, &wish.realm)?;
                match wish.from {
                    PrefixSource::Prefix(id) => self.permit_prefix(grant, id),
                    PrefixSource::Pool(_) => Ok(()),
                }
            }
            Action::ReleasePrefix { id } => self.permit_prefix(grant, *id),
            _ => Ok(()),
        }
    }

    fn permit_allocate(&self, grant: &Grant, wish: &Allocate) -> Result<(), Refusal> {
        permit_realm(grant, &wish.endpoint.realm)?;
        if let Some(key) = &wish.attachment {
            permit_realm(grant, &key.realm)?;
            permit_attachment(grant, key)?;
        }
        if wish.manner.adopt && grant.role == Role::Node {
            // Or a stolen node could take whatever selectors and reservations keep from it.
            return Err(Cause::AdoptionByNode.into());
        }
        let Some(node) = &grant.node else { return Ok(()) };
        if wish.endpoint.realm != node.realm {
            return Err(foreign(node, &wish.endpoint));
        }
        let elsewhere = |named: &ipam_api::ObjectName| *named != node.name;
        // Without an attachment the node must be named, or nobody could say later whose the addresses are.
        if wish.node.as_ref().map_or(wish.attachment.is_none(), elsewhere) {
            return Err(Cause::NodeElsewhere { node: node.clone() }.into());
        }
        let touched: Vec<u64> = match wish.attachment {
            None => self.incarnations(&wish.endpoint).collect(),
            // A sticky endpoint may go anywhere; but that it is sticky is to be said where it is.
            Some(_) if wish.stickiness.is_sticky() => self.incarnation_for(wish).into_iter().collect(),
            Some(_) => Vec::new(),
        };
        let rows = touched.into_iter().filter_map(|id| self.endpoints.get(id));
        let fixed = rows.filter(|row| wish.attachment.is_none() || row.sticky.is_none());
        let mut held =
            fixed.flat_map(|row| row.allocations.iter()).filter_map(|id| self.allocations.get(*id));
        if held.any(|row| !self.is_on(row, node)) {
            return Err(foreign(node, &wish.endpoint));
        }
        Ok(())
    }

    fn permit_scale(&self, grant: &Grant, scale: &ScaleController) -> Result<(), Refusal> {
        permit_realm(grant, &scale.realm)?;
        let touched: Vec<u64> = self.touched_by(scale).collect();
        self.permit_labels_of(grant, &touched)?;
        self.permit_pools_of(grant, scale)
    }

    fn permit_release(&self, grant: &Grant, id: u64) -> Result<(), Refusal> {
        let Some(row) = self.allocations.get(id) else { return Ok(()) };
        let Some(endpoint) = self.endpoints.get(row.endpoint) else { return Ok(()) };
        permit_realm(grant, &endpoint.key.realm)?;
        self.permit_labels_of(grant, &[id])?;
        match &grant.node {
            Some(node) if !self.is_on(row, node) => Err(foreign(node, &endpoint.key)),
            _ => Ok(()),
        }
    }

    fn permit_prefix(&self, grant: &Grant, id: u64) -> Result<(), Refusal> {
        let Some(row) = self.prefixes.get(id) else { return Ok(()) };
        permit_realm(grant, &row.owner.realm)?;
        self.permit_pool(grant, row.pool)
    }

    /// Refuses to touch what comes from a pool without the labels that the rights demand.
    pub(super) fn permit_pool(&self, grant: &Grant, pool: u64) -> Result<(), Refusal> {
        match self.pools.get(pool) {
            Some(pool) if !fits(grant, &pool.intention.remarks) => {
                Err(not_labelled(grant, Kind::Pool, &pool.intention.name))
            }
            _ => Ok(()),
        }
    }

    fn permit_renew(&self, grant: &Grant, which: &Leases) -> Result<(), Refusal> {
        let key = match which {
            Leases::Allocation(id) => return self.permit_release(grant, *id),
            Leases::Endpoint(key) => key,
        };
        permit_realm(grant, &key.realm)?;
        let rows = self.incarnations(key).filter_map(|id| self.endpoints.get(id));
        let mut ids = rows.flat_map(|row| row.allocations.iter());
        ids.try_for_each(|id| self.permit_release(grant, *id))
    }

    /// Whether an allocation is a node's own.
    fn is_on(&self, row: &Allocation, node: &NodeKey) -> bool {
        let own = |key: &AttachmentKey| key.realm == node.realm && key.node == node.name;
        match row.attachment {
            Some(_) => self.attachments_of(row).all(|(_, attachment)| own(&attachment.key)),
            None => {
                let realm = self.endpoints.get(row.endpoint).map(|endpoint| &endpoint.key.realm);
                row.node.as_ref() == Some(&node.name) && realm == Some(&node.realm)
            }
        }
    }

    /// What is changed must have the labels before and after.
    fn permit_labels(
        &self,
        grant: &Grant,
        kind: Kind,
        name: impl Into<ResourceName>,
        wanted: Option<&Remarks>,
    ) -> Result<(), Refusal> {
        let name = name.into();
        let present = self.remarks(kind, &name);
        match wanted.into_iter().chain(present).find(|remarks| !fits(grant, remarks)) {
            None => Ok(()),
            Some(_) => Err(not_labelled(grant, kind, name)),
        }
    }

    pub(super) fn permit_labels_of(&self, grant: &Grant, allocations: &[u64]) -> Result<(), Refusal> {
        if grant.labels.is_empty() {
            return Ok(());
        }
        let mut rows = allocations.iter().filter_map(|id| self.allocations.get(*id));
        rows.try_for_each(|row| self.permit_pool(grant, row.pool))
    }

    /// What people have written on a resource.
    pub(super) fn remarks(&self, kind: Kind, name: impl Into<ResourceName>) -> Option<&Remarks> {
        let id = self.id_of(kind, name)?;
        match kind {
            Kind::Network => self.networks.get(id).map(|row| &row.intention.remarks),
            Kind::Subnet => self.subnets.get(id).map(|row| &row.intention.remarks),
            Kind::Pool => self.pools.get(id).map(|row| &row.intention.remarks),
            Kind::Reservation => self.reservations.get(id).map(|row| &row.intention.remarks),
            Kind::Node => self.nodes.get(id).map(|row| &row.intention.remarks),
            Kind::Namespace => self.namespaces.get(id).map(|row| &row.intention.remarks),
            Kind::Token => None,
        }
    }
}

impl Step<'_> {
    /// Refuses to change what somebody else manages.
    pub(super) fn check_manager(&self, kind: Kind, name: impl Into<ResourceName>) -> Result<(), Refusal> {
        let name = name.into();
        let managed_by = self.state.remarks(kind, &name).and_then(|remarks| remarks.managed_by.clone());
        let Some(by) = managed_by else { return Ok(()) };
        match self.manager {
            Manager::TakeOver => Ok(()),
            Manager::Named(manager) if *manager == by => Ok(()),
            Manager::Named(_) | Manager::Nobody => Err(Cause::ManagedElsewhere { kind, name, by }.into()),
        }
    }
}

/// Whether the labels of a pool, or of whatever else, are those that the rights demand.
pub(super) fn fits(grant: &Grant, remarks: &Remarks) -> bool {
    grant.labels.is_empty() || grant.labels.fits(|key| remarks.labels.get(key).map(|value| &**value))
}

/// Refuses what the table of roles doesn't allow.
///
/// # Errors
/// `forbidden`.
pub fn check_deed(grant: &Grant, principal: &Text, verb: Verb, target: Target) -> Result<(), Refusal> {
    if may(grant.role, verb, target) {
        return Ok(());
    }
    Err(Cause::MayNot { principal: principal.excerpt(), role: grant.role, verb, target }.into())
}

fn permit_realm(grant: &Grant, realm: &Name) -> Result<(), Refusal> {
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

fn foreign(node: &NodeKey, endpoint: &EndpointKey) -> Refusal {
    Cause::EndpointElsewhere { endpoint: endpoint.clone(), node: node.clone() }.into()
}

fn not_labelled(grant: &Grant, kind: Kind, name: impl Into<ResourceName>) -> Refusal {
    Cause::NotLabelled { kind, name: name.into(), labels: grant.labels.clone() }.into()
}
