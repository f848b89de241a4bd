//! Wording of causes, for display only: it is never stored.

use std::fmt::{self, Display, Formatter};

use ipam_api::limits::REASONS_MAX;
use ipam_api::name::ResourceName;
use ipam_api::{Code, Family, address};
use ipnet::IpNet;

#[cfg(feature = "testing")]
use crate::testing::TestOption;
use crate::value::Kind;
use crate::value::cause::parts::{
    Closed, Constant, Counted, HeldBy, KeyedField, NamedController, NamedPrefix, NeverGiven, RejectReason,
    SpecialUse, TextField, Unserved, UsedBy, Verdict,
};
use crate::value::cause::{Cause, Rule};
use crate::value::field_name::FieldName;
use crate::value::quota::QuotaScope;

impl Cause {
    /// One sentence with the names and numbers, for display only.
    #[must_use]
    pub fn detail(&self) -> String {
        worded(self.sentence())
    }

    /// Remedy, if it is more specific than that of the code; for display only.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        self.remedy().map(worded)
    }
}

/// Describes the objects that labels withhold from a token.
pub(crate) fn beyond_labels(kind: Kind, name: &ResourceName, field: Option<FieldName>) -> String {
    match field {
        Some(field) => {
            format!(
                "a token with labels may not change {field} of {kind} {name} to this value: it affects other resources"
            )
        }
        None => format!("a token with labels may not create or delete {kind} {name}"),
    }
}

/// Rewords text on its way to display, in tests only. Every sentence and fragment passes through here.
pub(crate) fn worded(text: String) -> String {
    #[cfg(feature = "testing")]
    if TestOption::RewordSentences.is_on() {
        return format!("in other words: {text}");
    }
    text
}

/// Displays each type by its words, which are reworded like any sentence.
macro_rules! worded {
    ($($type:ty),*) => {
        $(impl Display for $type {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str(&worded(self.as_str().into()))
            }
        })*
    };
}

worded!(RejectReason, Closed, NeverGiven, SpecialUse, TextField, KeyedField);

impl Display for Counted {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&worded(self.words()))
    }
}

impl Display for NamedPrefix {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { id, cidr, owner } = self;
        write!(f, "prefix {cidr} of {}/{} ({id})", owner.realm, owner.name)
    }
}

impl Display for NamedController {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

impl Display for HeldBy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(endpoint) => endpoint.fmt(f),
            None => f.write_str("another endpoint"),
        }
    }
}

impl Display for UsedBy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endpoint(holder) => write!(f, "{holder} holds it"),
            Self::Prefix(prefix) => write!(f, "it is inside {prefix}"),
        }
    }
}

impl Display for Constant {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(name) => name.fmt(f),
            Self::Subnet(name) => name.fmt(f),
            Self::Cidr(cidr) => cidr.fmt(f),
            Self::Realm(name) => name.fmt(f),
        }
    }
}

impl Constant {
    pub(crate) fn field(&self) -> &'static str {
        match self {
            Self::Network(_) => "network",
            Self::Subnet(_) => "subnet",
            Self::Cidr(_) => "cidr",
            Self::Realm(_) => "realm",
        }
    }
}

impl Rule {
    /// The reason why a rule has no pool of a family.
    pub(crate) fn names_none(self) -> &'static str {
        match self {
            Rule::Subnets => "the subnets of the request have no pool",
            Rule::Automatic => "the request names no subnet",
            Rule::Request => "the request names no pool",
            Rule::Namespace => "the namespace has no default pool",
            Rule::Configuration => "the configuration names no pool",
            Rule::Default => "no pool is marked as default",
        }
    }

    /// The reason why a rule has no pool at all.
    pub(crate) fn gets_nothing(self) -> &'static str {
        match self {
            Rule::Default => "names no pool, and no pool is marked as default",
            Rule::Subnets => "names subnets without pools",
            Rule::Automatic => "names no subnet of a required family",
            Rule::Request | Rule::Namespace | Rule::Configuration => "names pools of other families only",
        }
    }

    pub(crate) fn help(self) -> &'static str {
        match self {
            Rule::Default => "Name a pool in the request, or mark one: ipamctl pool set NAME --default.",
            _ => "Create a pool there, or request other pools.",
        }
    }

    /// The end of a sentence about a pool that the request itself may not name.
    pub(crate) fn names_it(self) -> &'static str {
        match self {
            Rule::Request => "",
            Rule::Subnets | Rule::Automatic => "; the request names it",
            Rule::Namespace => "; the namespace names it",
            Rule::Configuration => "; the configuration names it",
            Rule::Default => "; the cluster names it",
        }
    }
}

impl Display for Verdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { pool, why, counts } = self;
        match why {
            RejectReason::Exhausted => write!(
                f,
                "0 free in {pool} ({}: {} held, {} cooling, {} reserved, {} excluded)",
                counts.size, counts.allocated, counts.cooling, counts.reserved, counts.excluded
            ),
            why => write!(f, "{pool} is {why}"),
        }
    }
}

impl Display for Unserved {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.interface, self.family, listed(&self.pools, self.count, "; "))
    }
}

/// Lists several things in one sentence, up to a readable number; `count` is their total.
pub(crate) fn listed<T: Display>(things: &[T], count: u64, separator: &str) -> String {
    let mut parts: Vec<String> = things.iter().take(REASONS_MAX).map(ToString::to_string).collect();
    let more = count.saturating_sub(parts.len() as u64);
    if more > 0 {
        parts.push(format!("and {more} more"));
    }
    parts.join(separator)
}

pub(crate) fn addresses_are(count: u64) -> String {
    if count == 1 { "1 address is".to_owned() } else { format!("{count} addresses are") }
}

/// The IPv4 network of an IPv4-mapped IPv6 network.
pub(crate) fn unmapped(cidr: IpNet) -> String {
    match cidr {
        IpNet::V6(net) => {
            let address = net.addr().to_ipv4_mapped().map(|address| address.to_string()).unwrap_or_default();
            format!("{address}/{}", net.prefix_len().saturating_sub(96))
        }
        IpNet::V4(net) => net.to_string(),
    }
}

/// Sentence for a CIDR with host bits, by the parser of resources.
pub(crate) fn host_bits(cidr: IpNet) -> String {
    address::check_cidr(cidr).err().map(|problem| problem.detail).unwrap_or_default()
}

/// Sentence for a label that no selector could match, by the parser of selectors.
pub(crate) fn bad_label(key: &str, value: &str) -> String {
    ipam_api::selector::check_label(key, value).err().map(|problem| problem.detail).unwrap_or_default()
}

/// Remedy for a change of a field that an automatic pool derives from its application.
pub(crate) fn how_to_change(field: FieldName) -> &'static str {
    match field {
        FieldName::DrainsTo => "Request another subnet for the application.",
        FieldName::Default => "Create another default pool.",
        _ => "Request another size for the application, or set its replicas: ipamctl endpoint scale.",
    }
}

/// The field of a namespace that has a limit.
pub(crate) fn quota_field(scope: &QuotaScope, family: Family, is_own: bool) -> String {
    let family = match family {
        Family::V4 => "ipv4",
        Family::V6 => "ipv6",
    };
    match &scope.application {
        None => format!("quota.{family}"),
        Some(application) if is_own => format!("quota.applications of {application}, {family}"),
        Some(_) => format!("quota.per_application.{family}"),
    }
}

/// Remedy for a pool that has no address left.
pub(crate) fn more_addresses(unserved: &Unserved, automatic: bool) -> Option<String> {
    let first = unserved.pools.first().filter(|pool| pool.why.code() == Code::PoolExhausted)?;
    Some(match automatic {
        true => "Request a larger automatic pool, or delete unused pools of its subnet.".to_owned(),
        false => format!(
            "Add addresses: ipamctl pool set {} --add-range FIRST-LAST, or release unused addresses.",
            first.pool
        ),
    })
}
