//! Pool selectors: matching a request against a pool, and ranking pools by specificity.

use crate::command::{Allocate, InterfaceRequest, NamespaceSpec, PoolPatterns, PoolSelectors, Text};
use crate::state::State;
use crate::state::id::SubnetId;
use crate::state::key::{Application, SelectorKey};
use crate::state::row::Pool;
use crate::value::cause::RejectReason;
use ipam_api::Selector;
use ipam_api::name::{NetworkAttachment, ObjectName};
use ipam_api::resource::EndpointKey;
use std::collections::BTreeMap;

/// Endpoint that requests addresses for one interface.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Requester<'a> {
    state: &'a State,
    request: &'a Allocate,
    pub(super) interface: &'a InterfaceRequest,
    /// Labels of the node; none if the node has no resource.
    node_labels: Option<&'a BTreeMap<Text, Text>>,
    /// Spec of the namespace; none if it has no resource.
    described_namespace: Option<&'a NamespaceSpec>,
    created_by: CreatedBy<'a>,
}

/// Network attachment or CNI configuration that created the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CreatedBy<'a> {
    Unknown,
    Attachment(&'a NetworkAttachment),
    Config(&'a ObjectName),
}

impl<'a> Requester<'a> {
    pub(crate) fn of(state: &'a State, request: &'a Allocate, interface: &'a InterfaceRequest) -> Self {
        let attachment = request.attachment.as_ref();
        let config = attachment.filter(|key| key.interface == interface.name).map(|key| &key.config);
        let (realm, namespace) = (&request.endpoint.realm, &request.endpoint.namespace);
        let realm_of_node = attachment.map_or(realm, |key| &key.realm);
        let node = request.place().and_then(|node| state.node(realm_of_node, node));
        Self {
            state,
            request,
            interface,
            node_labels: node.map(|row| &row.spec.metadata.labels),
            described_namespace: state.namespace(realm, namespace).map(|row| &row.spec),
            created_by: match (&interface.network_attachment, config) {
                (Some(attachment), _) => CreatedBy::Attachment(attachment),
                (None, Some(config)) => CreatedBy::Config(config),
                (None, None) => CreatedBy::Unknown,
            },
        }
    }

    /// The application of the endpoint.
    pub(crate) fn application(&self) -> Option<Application<'a>> {
        Application::of(self.request)
    }

    /// Returns true if the interface uses automatic pools of its application in the named subnets.
    pub(super) fn has_own_pools(&self) -> bool {
        self.request.automatic_pool.is_some()
    }

    /// Returns true if pools can't distinguish two interfaces of one request.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let (one, another) = (self.interface, other.interface);
        self.created_by == other.created_by
            && (&one.subnets, &one.pools, &one.default_pools, &one.families)
                == (&another.subnets, &another.pools, &another.default_pools, &another.families)
            && one.link_addresses == another.link_addresses
    }

    /// Returns true if a subnet is on the link of the host's interface, or if the request names no link.
    fn is_on_link(&self, subnet: SubnetId) -> bool {
        let addresses = &self.interface.link_addresses;
        addresses.is_empty()
            || self
                .state
                .subnets
                .get(subnet)
                .is_some_and(|row| addresses.iter().any(|address| row.spec.cidr.contains(address)))
    }

    fn is_created_by(&self, wanted: &NetworkAttachment) -> bool {
        match self.created_by {
            CreatedBy::Unknown => false,
            CreatedBy::Attachment(attachment) => attachment == wanted,
            CreatedBy::Config(config) => config.as_str() == wanted.as_str(),
        }
    }

    /// Default pools of the namespace, for requests that name no pools.
    pub(crate) fn default_pools(&self) -> Option<&'a PoolPatterns> {
        self.described_namespace.map(|namespace| &namespace.default_pools).filter(|pools| !pools.is_empty())
    }

    fn namespace_labels(&self) -> Option<&'a BTreeMap<Text, Text>> {
        self.described_namespace.map(|namespace| &namespace.metadata.labels)
    }

    /// Index keys of the pools that may select the requester.
    pub(crate) fn selector_keys(&self) -> Vec<SelectorKey> {
        let mut selector_keys = vec![
            SelectorKey::Any,
            SelectorKey::Realm(self.request.endpoint.realm.clone()),
            SelectorKey::Namespace(self.request.endpoint.namespace.clone()),
        ];
        selector_keys.extend(self.request.place().cloned().map(SelectorKey::Node));
        selector_keys.extend(match self.created_by {
            CreatedBy::Unknown => None,
            CreatedBy::Attachment(attachment) => Some(SelectorKey::Attachment(attachment.clone())),
            CreatedBy::Config(config) => Some(SelectorKey::Attachment(config.into())),
        });
        let labels = |labels: &BTreeMap<Text, Text>, of: fn(Text, Text) -> SelectorKey| {
            let selector_keys = labels.iter().map(|(key, value)| of(key.clone(), value.clone()));
            selector_keys.collect::<Vec<SelectorKey>>()
        };
        selector_keys.extend(labels(&self.request.labels, SelectorKey::Label));
        selector_keys
            .extend(self.node_labels.map(|own| labels(own, SelectorKey::NodeLabel)).unwrap_or_default());
        selector_keys.extend(
            self.namespace_labels().map(|own| labels(own, SelectorKey::NamespaceLabel)).unwrap_or_default(),
        );
        selector_keys
    }
}

impl PoolSelectors {
    /// Reason for which the pool doesn't select the requester: its first requirement that fails.
    pub(crate) fn reject_reason(&self, requester: &Requester<'_>) -> Option<RejectReason> {
        let EndpointKey { realm, namespace, .. } = &requester.request.endpoint;
        if !self.node_names.is_empty() {
            if requester.request.place().is_none_or(|node| !self.node_names.contains(node)) {
                return Some(RejectReason::OtherNodes);
            }
        } else if let Some(why) = unselected_reason(
            &self.node_selector,
            requester.node_labels,
            [RejectReason::NodeLabels, RejectReason::NodeUnknown],
        ) {
            return Some(why);
        }
        if !self.namespaces.is_empty() {
            if !self.namespaces.contains(namespace) {
                return Some(RejectReason::OtherNamespaces);
            }
        } else if let Some(why) = unselected_reason(
            &self.namespace_selector,
            requester.namespace_labels(),
            [RejectReason::NamespaceLabels, RejectReason::NamespaceUnknown],
        ) {
            return Some(why);
        }
        if !self.endpoint_selector.fits(|key| requester.request.labels.get(key).map(|value| &**value)) {
            Some(RejectReason::EndpointLabels)
        } else if !self.realms.is_empty() && !self.realms.contains(realm) {
            Some(RejectReason::OtherRealms)
        } else if !self.network_attachments.is_empty()
            && !self.network_attachments.iter().any(|wanted| requester.is_created_by(wanted))
        {
            Some(RejectReason::OtherAttachments)
        } else {
            None
        }
    }
}

/// Reason for which labels don't match a selector: they differ, or the object has no resource. Labels of an
/// object without a resource are unknown, so not even a requirement of absence matches.
fn unselected_reason(
    selector: &Selector,
    labels: Option<&BTreeMap<Text, Text>>,
    [others, unknown]: [RejectReason; 2],
) -> Option<RejectReason> {
    match labels {
        _ if selector.is_empty() => None,
        None => Some(unknown),
        Some(labels) => {
            let fits = selector.fits(|key| labels.get(key).map(|value| &**value));
            (!fits).then_some(others)
        }
    }
}

impl Pool {
    /// Reason for which the requester may not use the pool: another application's, or a failed selector.
    pub(crate) fn reject_reason(&self, requester: &Requester<'_>) -> Option<RejectReason> {
        match &self.automatic {
            Some(automatic) if !requester.application().is_some_and(|own| own.has(automatic)) => {
                Some(RejectReason::OtherApplication)
            }
            _ => self
                .spec
                .selectors
                .reject_reason(requester)
                .or_else(|| (!requester.is_on_link(self.subnet)).then_some(RejectReason::OtherLink)),
        }
    }
}
