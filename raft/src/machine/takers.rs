//! Who may take from which pool: what a pool asks of those who take, and how its demands rank it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ipam_api::name::{Name, NetworkAttachment, ObjectName};

use super::command::{Allocate, InterfaceWish, Takers, Text};

/// Who wants to take, for one interface.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taker<'a> {
    realm: &'a Name,
    namespace: &'a ObjectName,
    node: Option<&'a ObjectName>,
    labels: &'a BTreeMap<Text, Text>,
    made_by: MadeBy<'a>,
}

/// What makes the interface.
#[derive(Debug, Clone, Copy)]
enum MadeBy<'a> {
    Nobody,
    Attachment(&'a NetworkAttachment),
    Config(&'a ObjectName),
}

impl<'a> Taker<'a> {
    pub(super) fn of(wish: &'a Allocate, interface: &'a InterfaceWish) -> Self {
        let attachment = wish.attachment.as_ref();
        let config = attachment.filter(|key| key.interface == interface.name).map(|key| &key.config);
        Self {
            realm: &wish.endpoint.realm,
            namespace: &wish.endpoint.namespace,
            node: wish.node.as_ref().or(attachment.map(|key| &key.node)),
            labels: &wish.labels,
            made_by: match (&interface.network_attachment, config) {
                (Some(attachment), _) => MadeBy::Attachment(attachment),
                (None, Some(config)) => MadeBy::Config(config),
                (None, None) => MadeBy::Nobody,
            },
        }
    }

    fn is_made_by(&self, wanted: &NetworkAttachment) -> bool {
        match self.made_by {
            MadeBy::Nobody => false,
            MadeBy::Attachment(attachment) => attachment == wanted,
            MadeBy::Config(config) => config.as_str() == wanted.as_str(),
        }
    }

    fn label(&self, key: &str) -> Option<&'a str> {
        self.labels.get(key).map(|value| &**value)
    }

    /// Under which pools that may be for this one are found.
    pub(super) fn anchors(&self) -> Vec<Anchor> {
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
        anchors.extend(self.labels.iter().map(|(key, value)| Anchor::Label(key.clone(), value.clone())));
        anchors
    }
}

/// Something without which nobody takes from a pool. A pool that is found by one of its own need not be looked at
/// for all those who don't have it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Anchor {
    Anyone,
    Label(Text, Text),
    Node(ObjectName),
    Namespace(ObjectName),
    Attachment(NetworkAttachment),
    Realm(Name),
}

/// How specific a pool is. The more specific one sorts first.
pub(super) type Rank = [Reverse<bool>; 5];

/// What no other sorts before.
pub(super) const MOST_SPECIFIC: Rank = [Reverse(true); 5];

impl Takers {
    /// What the pool is found by: one of its demands, the one that most likely tells it from others.
    pub(super) fn anchors(&self) -> Vec<Anchor> {
        if let Some((key, values)) = self.endpoint_selector.telling() {
            let label = |value: &String| Anchor::Label(Text::from(key), Text::from(value.as_str()));
            return values.iter().map(label).collect();
        }
        if !self.node_names.is_empty() {
            return self.node_names.iter().cloned().map(Anchor::Node).collect();
        }
        if !self.namespaces.is_empty() {
            return self.namespaces.iter().cloned().map(Anchor::Namespace).collect();
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
    pub(super) fn why_not(&self, taker: &Taker<'_>) -> Option<&'static str> {
        let is_among = |names: &[ObjectName], name: &ObjectName| names.is_empty() || names.contains(name);
        if !self.node_names.is_empty() && taker.node.is_none_or(|node| !self.node_names.contains(node)) {
            Some("for other nodes")
        } else if !is_among(&self.namespaces, taker.namespace) {
            Some("for other namespaces")
        } else if !self.endpoint_selector.fits(|key| taker.label(key)) {
            Some("for endpoints with other labels")
        } else if !self.realms.is_empty() && !self.realms.contains(taker.realm) {
            Some("for other realms")
        } else if !self.network_attachments.is_empty()
            && !self.network_attachments.iter().any(|wanted| taker.is_made_by(wanted))
        {
            Some("for other network attachments")
        } else {
            None
        }
    }

    /// By what is asked for, not by how much of it.
    pub(super) fn rank(&self) -> Rank {
        [
            !self.endpoint_selector.is_empty(),
            !self.node_names.is_empty(),
            !self.namespaces.is_empty(),
            !self.network_attachments.is_empty(),
            !self.realms.is_empty(),
        ]
        .map(Reverse)
    }
}
