//! Changed fields of a spec, with values in a fixed notation.
//!
//! **Invariant:** events store these values, so they are in the notation of the API and never worded.

use std::fmt::{self, Display};

use ipam_api::limits::FIELD_CHANGE_CHARS_MAX;
use ipam_api::resource::Route;
use ipam_api::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::command::{
    AddressLimits, AutomaticRules, Dns, HostPolicyInterface, HostPolicySpec, Metadata, NamespaceSpec,
    NetworkSpec, NodeSpec, PoolSpec, Probing, Quota, ReservationSpec, SubnetSpec,
};
use crate::state::row::{Endpoint, Token};
pub use crate::value::field_name::FieldName;

/// Characters shown of what two long values have in common.
const COMMON_CHARS: usize = 16;

/// A value in the notation of the API. Empty for no value, cut to a bounded length.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Notation(Box<str>);

impl Notation {
    /// Returns the text of the value.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Display for Notation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// One field that has changed. Values have `…` where something is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldChange {
    pub field: FieldName,
    /// Former value of the field.
    pub from: Notation,
    /// New value of the field.
    pub to: Notation,
}

/// A field and its value as the API takes it.
pub(crate) type Field = (FieldName, String);

/// Spec with its fields.
pub(crate) trait Fields {
    /// Fields in the same order for every value.
    fn fields(&self) -> Vec<Field>;
}

/// Only fields that change without the secret: the expiry.
impl Fields for Token {
    fn fields(&self) -> Vec<Field> {
        vec![(FieldName::ExpiresAt, optional(self.expires_wall_ms.map(Timestamp).as_ref()))]
    }
}

/// Only fields that a request changes without allocating.
impl Fields for Endpoint {
    fn fields(&self) -> Vec<Field> {
        vec![(FieldName::Uid, optional(self.uid.as_ref()))]
    }
}

/// Returns the fields that differ.
pub(crate) fn changes<Spec: Fields>(old: &Spec, new: &Spec) -> Vec<FieldChange> {
    let differ = |((field, from), (_, to)): (Field, Field)| {
        (from != to).then(|| {
            let (from, to) = shortened(&from, &to);
            FieldChange { field, from, to }
        })
    };
    old.fields().into_iter().zip(new.fields()).filter_map(differ).collect()
}

/// Returns both values in full if short; of long values, the part where they begin to differ.
fn shortened(from: &str, to: &str) -> (Notation, Notation) {
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
        Notation(kept.into())
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
    list(routes.iter().map(|route| format!("{}={}", route.destination, route.gateway)))
}

fn pairs<'a>(
    pairs: impl IntoIterator<Item = (&'a crate::command::Text, &'a crate::command::Text)>,
) -> String {
    list(pairs.into_iter().map(|(key, value)| format!("{key}={value}")))
}

impl Fields for Metadata {
    fn fields(&self) -> Vec<Field> {
        vec![
            (FieldName::Description, self.description.to_string()),
            (FieldName::Labels, pairs(&self.labels)),
            (FieldName::Annotations, pairs(&self.annotations)),
            (FieldName::ManagedBy, optional(self.managed_by.as_ref())),
        ]
    }
}

impl Fields for Dns {
    fn fields(&self) -> Vec<Field> {
        vec![
            (FieldName::DnsNameservers, list(&self.nameservers)),
            (FieldName::DnsDomain, optional(self.domain.as_ref())),
            (FieldName::DnsSearch, list(&self.search)),
            (FieldName::DnsOptions, list(&self.options)),
        ]
    }
}

impl Fields for Probing {
    fn fields(&self) -> Vec<Field> {
        vec![
            (FieldName::ProbingConflicts, optional(self.conflicts.as_ref())),
            (FieldName::ProbingGateway, optional(self.gateway.as_ref())),
            (FieldName::ProbingValidMs, optional(self.valid_ms.as_ref())),
        ]
    }
}

impl Fields for NetworkSpec {
    fn fields(&self) -> Vec<Field> {
        [self.probing.fields(), self.metadata.fields()].concat()
    }
}

impl Fields for SubnetSpec {
    fn fields(&self) -> Vec<Field> {
        let own = vec![
            (FieldName::Gateway, optional(self.gateway.as_ref())),
            (FieldName::Vlan, optional(self.vlan.as_ref())),
            (FieldName::Mtu, optional(self.mtu.as_ref())),
            (FieldName::Routes, routes(&self.routes)),
        ];
        let automatic = (FieldName::Automatic, self.automatic.as_ref().map(automatic).unwrap_or_default());
        [own, self.dns.fields(), vec![automatic], self.probing.fields(), self.metadata.fields()].concat()
    }
}

/// Writes `{}`, or the notation of `ipamctl`: `range=10.1.0.8-10.1.0.15, max-size=4`.
fn automatic(rules: &AutomaticRules) -> String {
    let ranges = rules.ranges.iter().map(|range| format!("range={range}"));
    let exclude = rules.exclude.iter().map(|range| format!("exclude={range}"));
    let max_size = rules.max_size.iter().map(|size| format!("max-size={size}"));
    let said = list(ranges.chain(exclude).chain(max_size));
    if said.is_empty() { "{}".to_owned() } else { said }
}

impl Fields for PoolSpec {
    fn fields(&self) -> Vec<Field> {
        let own = vec![
            (FieldName::Ranges, list(&self.ranges)),
            (FieldName::Exclude, list(&self.exclude)),
            (FieldName::Strategy, self.strategy.to_string()),
            (FieldName::CoolingMs, self.cooling_ms.to_string()),
            (FieldName::StrictCooling, self.strict_cooling.to_string()),
            (FieldName::CoolingReserve, self.cooling_reserve.to_string()),
            (FieldName::AllowEdges, self.allow_edges.to_string()),
            (FieldName::Gateway, optional(self.gateway.as_ref())),
            (FieldName::Routes, routes(&self.routes)),
            (FieldName::Default, self.default.to_string()),
            (FieldName::Realms, list(&self.selectors.realms)),
            (FieldName::NodeNames, list(&self.selectors.node_names)),
            (FieldName::NodeSelector, self.selectors.node_selector.to_string()),
            (FieldName::Namespaces, list(&self.selectors.namespaces)),
            (FieldName::NamespaceSelector, self.selectors.namespace_selector.to_string()),
            (FieldName::EndpointSelector, self.selectors.endpoint_selector.to_string()),
            (FieldName::NetworkAttachments, list(&self.selectors.network_attachments)),
            (FieldName::ScaleDown, self.scale_down.to_string()),
            (FieldName::Disabled, self.disabled.to_string()),
            (FieldName::Terminating, self.terminating.to_string()),
            (FieldName::DrainsTo, optional(self.drains_to.as_ref())),
            (FieldName::Reclaim, optional(self.reclaim.as_ref())),
        ];
        [own, self.probing.fields(), self.metadata.fields()].concat()
    }
}

impl Fields for NodeSpec {
    fn fields(&self) -> Vec<Field> {
        self.metadata.fields()
    }
}

impl Fields for Quota {
    fn fields(&self) -> Vec<Field> {
        let applications =
            self.applications.iter().map(|(name, limits)| format!("{name}: {}", limits_as_written(*limits)));
        vec![
            (FieldName::Quota, limits_as_written(self.whole)),
            (FieldName::QuotaPerApplication, limits_as_written(self.per_application)),
            (FieldName::QuotaApplications, list(applications)),
        ]
    }
}

fn limits_as_written(limits: AddressLimits) -> String {
    let of_family = |(name, limit): (&str, Option<u64>)| Some(format!("{name}={}", limit?));
    list([("ipv4", limits.ipv4), ("ipv6", limits.ipv6)].into_iter().filter_map(of_family))
}

impl Fields for NamespaceSpec {
    fn fields(&self) -> Vec<Field> {
        let pools = vec![
            (FieldName::DefaultIpv4Pools, list(&self.default_pools.ipv4)),
            (FieldName::DefaultIpv6Pools, list(&self.default_pools.ipv6)),
        ];
        [pools, self.quota.fields(), self.metadata.fields()].concat()
    }
}

impl Fields for HostPolicySpec {
    fn fields(&self) -> Vec<Field> {
        let own = vec![
            (FieldName::NodeSelector, self.node_selector.to_string()),
            (FieldName::Interfaces, list(self.interfaces.iter().map(interface))),
            (FieldName::Capture, pairs(&self.capture)),
            (FieldName::DesiredState, self.desired_state.to_string()),
            (FieldName::MaxUnavailable, self.max_unavailable.to_string()),
        ];
        [own, self.metadata.fields()].concat()
    }
}

/// Writes the notation of `ipamctl`: `eth1 ipv4-pool=lan clean-gateway`.
fn interface(interface: &HostPolicyInterface) -> String {
    let ipv4 = interface.ipv4_pools.iter().map(|pool| format!(" ipv4-pool={pool}"));
    let ipv6 = interface.ipv6_pools.iter().map(|pool| format!(" ipv6-pool={pool}"));
    let clean = if interface.clean_gateway { " clean-gateway" } else { "" };
    format!("{}{}{clean}", interface.name, ipv4.chain(ipv6).collect::<String>())
}

impl Fields for ReservationSpec {
    fn fields(&self) -> Vec<Field> {
        let own = vec![
            (FieldName::Addresses, list(&self.addresses)),
            (FieldName::Endpoint, optional(self.endpoint.as_ref())),
        ];
        [own, self.metadata.fields()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Text;

    #[test]
    fn only_what_differs_is_said_and_long_values_are_shown_where_they_differ() {
        let old = Metadata { description: Text::given("front"), ..Metadata::default() };
        let mut new = old.clone();
        assert!(changes(&old, &new).is_empty());
        new.labels.insert(Text::given("team"), Text::given("web"));
        let to = Notation("team=web".into());
        assert_eq!(
            changes(&old, &new),
            [FieldChange { field: FieldName::Labels, from: Notation::default(), to }]
        );

        let long = "ä".repeat(FIELD_CHANGE_CHARS_MAX);
        let (old, new) = (format!("{long}one"), format!("{long}two{long}{long}"));
        let (from, to) = shortened(&old, &new);
        let common = "ä".repeat(COMMON_CHARS);
        assert_eq!(from.as_str(), format!("…{common}one"));
        let to = to.as_str();
        assert!(to.starts_with(&format!("…{common}two")) && to.ends_with('…'));
        assert!(to.chars().count() <= FIELD_CHANGE_CHARS_MAX);
        assert_eq!(
            shortened(&"x".repeat(FIELD_CHANGE_CHARS_MAX + 1), "y").0.as_str().chars().count(),
            FIELD_CHANGE_CHARS_MAX - 1
        );
    }
}
