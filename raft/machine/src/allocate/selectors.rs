//! Who may take from which pool: what a pool asks of those who take, and how its demands rank it.

use crate::state::key::{Anchor, Rank};
use std::cmp::Reverse;
use std::collections::BTreeMap;

use ipam_api::Selector;
use ipam_api::name::{Name, NetworkAttachment, ObjectName};

use crate::command::{Allocate, Controller, InterfaceWish, NamespaceIntention, PoolPatterns, Takers, Text};
use crate::state::State;
use crate::state::key::Application;
use crate::value::cause::WhyNot;

/// Who wants to take, for one interface.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taker<'a> {
    realm: &'a Name,
    namespace: &'a ObjectName,
    node: Option<&'a ObjectName>,
    /// Nothing if nobody has described the node.
    node_labels: Option<&'a BTreeMap<Text, Text>>,
    /// Nothing if nobody has described it.
    described_namespace: Option<&'a NamespaceIntention>,
    labels: &'a BTreeMap<Text, Text>,
    made_by: MadeBy<'a>,
    /// What makes the endpoint.
    controller: Option<&'a Controller>,
    /// Whether its application has pools for itself.
    has_own_pools: bool,
}

/// What makes the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MadeBy<'a> {
    Nobody,
    Attachment(&'a NetworkAttachment),
    Config(&'a ObjectName),
}

impl<'a> Taker<'a> {
    pub(crate) fn of(state: &'a State, wish: &'a Allocate, interface: &'a InterfaceWish) -> Self {
        let attachment = wish.attachment.as_ref();
        let config = attachment.filter(|key| key.interface == interface.name).map(|key| &key.config);
        let (realm, namespace) = (&wish.endpoint.realm, &wish.endpoint.namespace);
        let node = wish.node.as_ref().or(attachment.map(|key| &key.node));
        let realm_of_node = attachment.map_or(realm, |key| &key.realm);
        Self {
            realm,
            namespace,
            node,
            node_labels: node
                .and_then(|node| state.node(realm_of_node, node))
                .map(|row| &row.intention.remarks.labels),
            described_namespace: state.namespace(realm, namespace).map(|row| &row.intention),
            labels: &wish.labels,
            made_by: match (&interface.network_attachment, config) {
                (Some(attachment), _) => MadeBy::Attachment(attachment),
                (None, Some(config)) => MadeBy::Config(config),
                (None, None) => MadeBy::Nobody,
            },
            controller: wish.stickiness.controller.as_ref(),
            has_own_pools: wish.automatic_pool.is_some(),
        }
    }

    /// The application that it is of.
    pub(crate) fn application(&self) -> Option<Application<'a>> {
        let (realm, namespace) = (self.realm, self.namespace);
        self.controller.map(|controller| Application { realm, namespace, controller })
    }

    /// Whether it takes from pools of its application, where it names subnets.
    pub(crate) fn has_own_pools(&self) -> bool {
        self.has_own_pools
    }

    /// Whether pools make no difference between the two, both of one request.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.made_by == other.made_by
    }

    fn is_made_by(&self, wanted: &NetworkAttachment) -> bool {
        match self.made_by {
            MadeBy::Nobody => false,
            MadeBy::Attachment(attachment) => attachment == wanted,
            MadeBy::Config(config) => config.as_str() == wanted.as_str(),
        }
    }

    /// What the namespace's endpoints take from, where nobody names anything.
    pub(crate) fn default_pools(&self) -> Option<&'a PoolPatterns> {
        self.described_namespace.map(|namespace| &namespace.default_pools).filter(|pools| !pools.is_empty())
    }

    fn namespace_labels(&self) -> Option<&'a BTreeMap<Text, Text>> {
        self.described_namespace.map(|namespace| &namespace.remarks.labels)
    }

    fn label(&self, key: &str) -> Option<&'a str> {
        self.labels.get(key).map(|value| &**value)
    }

    /// Under which pools that may be for this one are found.
    pub(crate) fn anchors(&self) -> Vec<Anchor> {
        let mut anchors = vec![
            Anchor::Anyone,
            Anchor::Realm(self.realm.clone()),
            Anchor::Namespace(self.namespace.clone()),
        ];
        anchors.extend(self.node.cloned().map(Anchor::Node));
        anchors.extend(match self.made_by {
            MadeBy::Nobody => None,
            MadeBy::Attachment(attachment) => Some(Anchor::Attachment(attachment.clone())),
            MadeBy::Config(config) => Some(Anchor::Attachment(config.into())),
        });
        let labels = |labels: &BTreeMap<Text, Text>, of: fn(Text, Text) -> Anchor| {
            let anchors = labels.iter().map(|(key, value)| of(key.clone(), value.clone()));
            anchors.collect::<Vec<Anchor>>()
        };
        anchors.extend(labels(self.labels, Anchor::Label));
        anchors.extend(self.node_labels.map(|own| labels(own, Anchor::NodeLabel)).unwrap_or_default());
        anchors.extend(
            self.namespace_labels().map(|own| labels(own, Anchor::NamespaceLabel)).unwrap_or_default(),
        );
        anchors
    }
}

impl Takers {
    /// What the pool is found by: one of its demands, the one that most likely tells it from others.
    pub(crate) fn anchors(&self) -> Vec<Anchor> {
        let labels = |selector: &Selector, of: fn(Text, Text) -> Anchor| {
            let (key, values) = selector.telling()?;
            let label = |value: &String| of(Text::identifier(key), Text::identifier(value.as_str()));
            Some(values.iter().map(label).collect::<Vec<Anchor>>())
        };
        if let Some(anchors) = labels(&self.endpoint_selector, Anchor::Label) {
            return anchors;
        }
        if !self.node_names.is_empty() {
            return self.node_names.iter().cloned().map(Anchor::Node).collect();
        }
        if let Some(anchors) = labels(&self.node_selector, Anchor::NodeLabel) {
            return anchors;
        }
        if !self.namespaces.is_empty() {
            return self.namespaces.iter().cloned().map(Anchor::Namespace).collect();
        }
        if let Some(anchors) = labels(&self.namespace_selector, Anchor::NamespaceLabel) {
            return anchors;
        }
        if !self.network_attachments.is_empty() {
            return self.network_attachments.iter().cloned().map(Anchor::Attachment).collect();
        }
        if !self.realms.is_empty() {
            return self.realms.iter().cloned().map(Anchor::Realm).collect();
        }
        vec![Anchor::Anyone]
    }

    /// Why somebody may not take, if so: the first that doesn't fit.
    pub(crate) fn why_not(&self, taker: &Taker<'_>) -> Option<WhyNot> {
        if !self.node_names.is_empty() {
            if taker.node.is_none_or(|node| !self.node_names.contains(node)) {
                return Some(WhyNot::OtherNodes);
            }
        } else if let Some(why) = why_not_selected(
            &self.node_selector,
            taker.node_labels,
            [WhyNot::NodeLabels, WhyNot::NodeUnknown],
        ) {
            return Some(why);
        }
        if !self.namespaces.is_empty() {
            if !self.namespaces.contains(taker.namespace) {
                return Some(WhyNot::OtherNamespaces);
            }
        } else if let Some(why) = why_not_selected(
            &self.namespace_selector,
            taker.namespace_labels(),
            [WhyNot::NamespaceLabels, WhyNot::NamespaceUnknown],
        ) {
            return Some(why);
        }
        if !self.endpoint_selector.fits(|key| taker.label(key)) {
            Some(WhyNot::EndpointLabels)
        } else if !self.realms.is_empty() && !self.realms.contains(taker.realm) {
            Some(WhyNot::OtherRealms)
        } else if !self.network_attachments.is_empty()
            && !self.network_attachments.iter().any(|wanted| taker.is_made_by(wanted))
        {
            Some(WhyNot::OtherAttachments)
        } else {
            None
        }
    }

    /// By what is asked for, not by how much of it.
    pub(crate) fn rank(&self) -> Rank {
        [
            !self.endpoint_selector.is_empty(),
            !self.node_names.is_empty(),
            self.node_names.is_empty() && !self.node_selector.is_empty(),
            !self.namespaces.is_empty(),
            self.namespaces.is_empty() && !self.namespace_selector.is_empty(),
            !self.network_attachments.is_empty(),
            !self.realms.is_empty(),
        ]
        .map(Reverse)
    }
}

/// Why labels are not those that are asked for, if so: they are others, or nobody has said which they are. Of what is
/// not described nothing is known, not even that a label is missing.
fn why_not_selected(
    selector: &Selector,
    labels: Option<&BTreeMap<Text, Text>>,
    [others, unknown]: [WhyNot; 2],
) -> Option<WhyNot> {
    match labels {
        _ if selector.is_empty() => None,
        None => Some(unknown),
        Some(labels) => {
            let fits = selector.fits(|key| labels.get(key).map(|value| &**value));
            (!fits).then_some(others)
        }
    }
}
