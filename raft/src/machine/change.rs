//! What has changed in an intention, in words that people read.

use std::fmt::Display;

use ipam_api::Family;
use ipam_api::limits::FIELD_CHANGE_CHARS_MAX;
use ipam_api::resource::Route;
use serde::{Deserialize, Serialize};

use super::command::{
    AddressLimits, Dns, NamespaceIntention, NetworkIntention, NodeIntention, PoolIntention, Quota, Remarks,
    ReservationIntention, SubnetIntention,
};

/// Characters shown of what two long values have in common.
const COMMON_CHARS: usize = 16;

/// One field that has changed. Values are cut to a bounded length, with `…` where something is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldChange {
    /// Its name, as in the API.
    pub field: String,
    /// What it was; empty for nothing.
    pub from: String,
    /// What it is.
    pub to: String,
}

/// A field's name and its value in words.
pub(super) type Field = (&'static str, String);

/// Something with fields that people set.
pub(super) trait Fields {
    /// All of them, in the same order for every value.
    fn fields(&self) -> Vec<Field>;
}

/// The fields that differ.
pub(super) fn changes<Intention: Fields>(old: &Intention, new: &Intention) -> Vec<FieldChange> {
    let differ = |((field, from), (_, to)): (Field, Field)| {
        (from != to).then(|| {
            let (from, to) = shortened(&from, &to);
            FieldChange { field: field.to_owned(), from, to }
        })
    };
    old.fields().into_iter().zip(new.fields()).filter_map(differ).collect()
}

/// Both values short enough to keep; of long ones the part from where they differ.
fn shortened(from: &str, to: &str) -> (String, String) {
    let long = |text: &str| text.chars().count() > FIELD_CHANGE_CHARS_MAX;
    let skipped = if long(from) || long(to) {
        let common = from.chars().zip(to.chars()).take_while(|(one, other)| one == other).count();
        common.saturating_sub(COMMON_CHARS)
    } else {
        0
    };
    let cut = |text: &str| {
        let mut kept = String::new();
        if skipped > 0 {
            kept.push('…');
        }
        let mut rest = text.chars().skip(skipped);
        kept.extend(rest.by_ref().take(FIELD_CHANGE_CHARS_MAX.saturating_sub(2)));
        if rest.next().is_some() {
            kept.push('…');
        }
        kept
    };
    (cut(from), cut(to))
}

fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(", ")
}

fn optional<T: Display>(value: Option<&T>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

fn routes(routes: &[Route]) -> String {
    list(routes.iter().map(|route| format!("{} via {}", route.destination, route.gateway)))
}

fn pairs<'a>(
    pairs: impl IntoIterator<Item = (&'a super::command::Text, &'a super::command::Text)>,
) -> String {
    list(pairs.into_iter().map(|(key, value)| format!("{key}={value}")))
}

impl Fields for Remarks {
    fn fields(&self) -> Vec<Field> {
        vec![
            ("description", self.description.to_string()),
            ("labels", pairs(&self.labels)),
            ("annotations", pairs(&self.annotations)),
            ("managed_by", optional(self.managed_by.as_ref())),
        ]
    }
}

impl Fields for Dns {
    fn fields(&self) -> Vec<Field> {
        vec![
            ("dns.nameservers", list(&self.nameservers)),
            ("dns.domain", optional(self.domain.as_ref())),
            ("dns.search", list(&self.search)),
            ("dns.options", list(&self.options)),
        ]
    }
}

impl Fields for NetworkIntention {
    fn fields(&self) -> Vec<Field> {
        self.remarks.fields()
    }
}

impl Fields for SubnetIntention {
    fn fields(&self) -> Vec<Field> {
        let mut fields = vec![
            ("gateway", optional(self.gateway.as_ref())),
            ("vlan", optional(self.vlan.as_ref())),
            ("mtu", optional(self.mtu.as_ref())),
            ("routes", routes(&self.routes)),
        ];
        fields.extend(self.dns.fields());
        fields.extend(self.remarks.fields());
        fields
    }
}

impl Fields for PoolIntention {
    fn fields(&self) -> Vec<Field> {
        let mut fields = vec![
            ("ranges", list(&self.ranges)),
            ("exclude", list(&self.exclude)),
            ("strategy", self.strategy.to_string()),
            ("cooling_ms", self.cooling_ms.to_string()),
            ("strict_cooling", self.strict_cooling.to_string()),
            ("allow_edges", self.allow_edges.to_string()),
            ("gateway", optional(self.gateway.as_ref())),
            ("routes", routes(&self.routes)),
            ("default", self.default.to_string()),
            ("realms", list(&self.takers.realms)),
            ("node_names", list(&self.takers.node_names)),
            ("node_selector", self.takers.node_selector.to_string()),
            ("namespaces", list(&self.takers.namespaces)),
            ("namespace_selector", self.takers.namespace_selector.to_string()),
            ("endpoint_selector", self.takers.endpoint_selector.to_string()),
            ("network_attachments", list(&self.takers.network_attachments)),
            ("scale_down", self.scale_down.to_string()),
            ("disabled", self.disabled.to_string()),
            ("terminating", self.terminating.to_string()),
            ("drains_to", optional(self.drains_to.as_ref())),
            ("reclaim", optional(self.reclaim.as_ref())),
        ];
        fields.extend(self.remarks.fields());
        fields
    }
}

impl Fields for NodeIntention {
    fn fields(&self) -> Vec<Field> {
        self.remarks.fields()
    }
}

impl Fields for Quota {
    fn fields(&self) -> Vec<Field> {
        let applications =
            self.applications.iter().map(|(name, limits)| format!("{name} {}", limits_in_words(*limits)));
        vec![
            ("quota", limits_in_words(self.whole)),
            ("quota.per_application", limits_in_words(self.per_application)),
            ("quota.applications", list(applications)),
        ]
    }
}

fn limits_in_words(limits: AddressLimits) -> String {
    let words =
        Family::BOTH.into_iter().filter_map(|family| Some(format!("{family} {}", limits.of(family)?)));
    words.collect::<Vec<_>>().join(" and ")
}

impl Fields for NamespaceIntention {
    fn fields(&self) -> Vec<Field> {
        let mut fields = vec![
            ("default_ipv4_pools", list(&self.default_pools.ipv4)),
            ("default_ipv6_pools", list(&self.default_pools.ipv6)),
        ];
        fields.extend(self.quota.fields());
        fields.extend(self.remarks.fields());
        fields
    }
}

impl Fields for ReservationIntention {
    fn fields(&self) -> Vec<Field> {
        let mut fields = vec![("addresses", list(&self.addresses))];
        fields.extend(self.remarks.fields());
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_said_and_long_values_are_shown_where_they_differ() {
        let old = Remarks { description: "front".into(), ..Remarks::default() };
        let mut new = old.clone();
        assert!(changes(&old, &new).is_empty());
        new.labels.insert("team".into(), "web".into());
        let change = |field: &str, from: &str, to: &str| FieldChange {
            field: field.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
        };
        assert_eq!(changes(&old, &new), [change("labels", "", "team=web")]);

        let long = "ä".repeat(FIELD_CHANGE_CHARS_MAX);
        let (old, new) = (format!("{long}one"), format!("{long}two{long}{long}"));
        let (from, to) = shortened(&old, &new);
        let common = "ä".repeat(COMMON_CHARS);
        assert_eq!(from, format!("…{common}one"));
        assert!(to.starts_with(&format!("…{common}two")) && to.ends_with('…'));
        assert!(to.chars().count() <= FIELD_CHANGE_CHARS_MAX);
        assert_eq!(
            shortened(&"x".repeat(FIELD_CHANGE_CHARS_MAX + 1), "y").0.chars().count(),
            FIELD_CHANGE_CHARS_MAX - 1
        );
    }
}
