//! The model's own rules about who may take from a pool.

use ipam_api::name::{Name, NamePattern, ResourceName};
use ipam_api::{Code, Selector};
use ipam_machine::command::{Allocate, InterfaceRequest, Metadata, PoolSelectors};

use crate::model::naive::{Model, Pool};

/// True if one of the patterns used here matches a name.
pub(super) fn stands_for(pattern: &NamePattern, name: &Name) -> bool {
    let (pattern, name) = (pattern.as_str(), name.as_str());
    match pattern.strip_suffix('*') {
        None => pattern == name,
        Some("") => true,
        Some(class) if class.ends_with("]?") => name.len() > 1 && name[..1] == class[1..2],
        Some(prefix) => name.starts_with(prefix),
    }
}

/// Inverse specificity of a pool, most significant criterion first.
pub(super) fn unspecific(selectors: &PoolSelectors) -> [bool; 7] {
    [
        selectors.endpoint_selector.is_empty(),
        selectors.node_names.is_empty(),
        selectors.node_selector.is_empty() || !selectors.node_names.is_empty(),
        selectors.namespaces.is_empty(),
        selectors.namespace_selector.is_empty() || !selectors.namespaces.is_empty(),
        selectors.network_attachments.is_empty(),
        selectors.realms.is_empty(),
    ]
}

fn may_take(selectors: &PoolSelectors, request: &Allocate, interface: &InterfaceRequest) -> bool {
    let node = request.node.as_ref().or(request.attachment.as_ref().map(|key| &key.node));
    let config = request.attachment.as_ref().filter(|key| key.interface == interface.name);
    let by = interface.network_attachment.as_ref().map(|by| by.as_str());
    let by = by.or(config.map(|key| key.config.as_str()));
    let among =
        |names: Vec<&str>, one: Option<&str>| names.is_empty() || one.is_some_and(|one| names.contains(&one));
    among(selectors.realms.iter().map(|name| name.as_str()).collect(), Some(request.endpoint.realm.as_str()))
        && among(
            selectors.node_names.iter().map(|name| name.as_str()).collect(),
            node.map(|name| name.as_str()),
        )
        && among(
            selectors.namespaces.iter().map(|name| name.as_str()).collect(),
            Some(request.endpoint.namespace.as_str()),
        )
        && among(selectors.network_attachments.iter().map(|name| name.as_str()).collect(), by)
        && selectors.endpoint_selector.fits(|key| request.labels.get(key).map(|value| &**value))
}

impl Model {
    /// Reason for which a pool allocates nothing now, or nothing to this endpoint.
    pub(crate) fn reject_reason(
        &self,
        pool: &Pool,
        request: &Allocate,
        interface: &InterfaceRequest,
    ) -> Option<Code> {
        if !self.may_use(pool, request, interface) {
            Some(Code::NoPoolFits)
        } else if pool.spec.terminating {
            Some(Code::Terminating)
        } else if pool.spec.disabled || pool.spec.drains_to.is_some() {
            Some(Code::PoolDisabled)
        } else {
            None
        }
    }

    /// True if a pool is for this interface of a request, whatever state it is in.
    pub(super) fn may_use(&self, pool: &Pool, request: &Allocate, interface: &InterfaceRequest) -> bool {
        let (selectors, cidr) = (&pool.spec.selectors, self.subnet_of(&pool.spec).cidr);
        let link = &interface.link_addresses;
        Model::is_for(pool, request)
            && may_take(selectors, request, interface)
            && self.is_selected(selectors, request)
            && (link.is_empty() || link.iter().any(|address| cidr.contains(address)))
    }

    /// True if the labels of node and namespace match the pool's selectors, where it names none.
    fn is_selected(&self, selectors: &PoolSelectors, request: &Allocate) -> bool {
        let selects = |selector: &Selector, metadata: Option<&Metadata>| {
            selector.is_empty()
                || metadata.is_some_and(|one| selector.fits(|key| one.labels.get(key).map(|value| &**value)))
        };
        let node = request.node.as_ref().or(request.attachment.as_ref().map(|key| &key.node));
        let realm = request.attachment.as_ref().map_or(&request.endpoint.realm, |key| &key.realm);
        let node = node.and_then(|node| self.nodes.get(&ResourceName::in_realm(realm, node)));
        let namespace = ResourceName::in_realm(&request.endpoint.realm, &request.endpoint.namespace);
        let namespace = self.namespaces.get(&namespace);
        (!selectors.node_names.is_empty() || selects(&selectors.node_selector, node.map(|one| &one.metadata)))
            && (!selectors.namespaces.is_empty()
                || selects(&selectors.namespace_selector, namespace.map(|one| &one.metadata)))
    }
}
