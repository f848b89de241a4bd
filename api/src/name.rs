//! Names, validated when they are parsed.

mod foreign;
mod shared;
mod wildcard;

use std::fmt;
use std::str::FromStr;

use arcstr::ArcStr;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use self::shared::SharedText;

use crate::limits::{
    INTERFACE_NAME_CHARS_MAX, NAME_CHARS_MAX, OBJECT_NAME_CHARS_MAX, SPIFFE_PATTERN_CHARS_MAX,
};
use crate::problem::{Code, Problem};

/// A string that follows the rule of its type. Cheap to clone.
macro_rules! checked_string {
    ($(#[$doc:meta])* $type:ident, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(ArcStr);

        impl $type {
            /// Creates a value from text that follows the rule.
            ///
            /// # Errors
            /// `invalid-field`, with the rule of the type.
            pub fn new(text: &str) -> Result<Self, Problem> {
                $check(text)?;
                Ok(Self(ArcStr::from(text)))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl FromStr for $type {
            type Err = Problem;
            fn from_str(text: &str) -> Result<Self, Problem> {
                Self::new(text)
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(shared::NameVisitor(Self::new))
            }
        }

        impl SharedText for $type {
            fn text(&self) -> &ArcStr {
                &self.0
            }

            fn share(&mut self, text: &ArcStr) {
                if self.0 == *text {
                    self.0 = ArcStr::clone(text);
                }
            }
        }
    };
}

checked_string! {
    /// The name of a network, subnet, pool, reservation or realm:
    /// `[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?`.
    Name, check_name
}

checked_string! {
    /// Name given by another system to an endpoint, node, namespace, container or network configuration. Up
    /// to 253 of `[A-Za-z0-9_.:-]`, the first one a letter or digit.
    ObjectName, check_object_name
}

checked_string! {
    /// Unique name of a resource within its kind: a [`Name`], or `realm/name` for foreign objects. There the
    /// realm is a [`Name`] and the name an [`ObjectName`].
    ResourceName, check_resource_name
}

checked_string! {
    /// Name of a network interface: at most 15 bytes, not `.` or `..`, no `/`, `:` or white space. The kernel
    /// and the CNI library have the same rule.
    InterfaceName, check_interface_name
}

impl InterfaceName {
    /// Returns the default name that Multus gives to a pod's interface at this index.
    ///
    /// # Errors
    /// `invalid-field` for an index whose name would be too long.
    pub fn usual(place: usize) -> Result<Self, Problem> {
        Self::new(&if place == 0 { "eth0".to_owned() } else { format!("net{place}") })
    }
}

checked_string! {
    /// Pattern of pool names: a [`Name`] with the wildcards `*`, `?` and classes: `[abc]`, `[^a-z]`. The
    /// syntax is Go's `filepath.Match`, as in Spiderpool, without its escapes.
    NamePattern, check_name_pattern
}

checked_string! {
    /// Pattern of SPIFFE ids, such as `spiffe://example.org/ns/*`, with the wildcards of a [`NamePattern`]. A
    /// `*` also stands for slashes.
    SpiffePattern, check_spiffe_pattern
}

impl SpiffePattern {
    /// True if the pattern matches the id. Takes at most time proportional to the product of both lengths.
    #[must_use]
    pub fn fits(&self, id: &str) -> bool {
        wildcard::fits(&self.0, id)
    }
}

checked_string! {
    /// Name of a network attachment: `name` or `namespace/name`, each as an [`ObjectName`], as with Multus.
    /// Without Multus it is the `name` of a CNI configuration.
    NetworkAttachment, check_network_attachment
}

impl From<&Name> for ResourceName {
    fn from(name: &Name) -> Self {
        Self(ArcStr::clone(&name.0))
    }
}

impl From<&ResourceName> for ResourceName {
    fn from(name: &ResourceName) -> Self {
        Self(ArcStr::clone(&name.0))
    }
}

impl ResourceName {
    /// Returns the name of the object `name` in `realm`.
    #[must_use]
    pub fn in_realm(realm: &Name, name: &ObjectName) -> Self {
        Self(ArcStr::from(format!("{realm}/{name}")))
    }

    /// Returns the name, if it has no realm.
    #[must_use]
    pub fn name(&self) -> Option<Name> {
        (!self.0.contains('/')).then(|| Name(ArcStr::clone(&self.0)))
    }

    /// Returns the realm, and the name within it.
    #[must_use]
    pub fn parts(&self) -> Option<(Name, ObjectName)> {
        let (realm, name) = self.0.split_once('/')?;
        Some((Name(ArcStr::from(realm)), ObjectName(ArcStr::from(name))))
    }

    /// Lower bound of all names with this prefix; not always a valid name.
    #[must_use]
    pub fn lowest_beginning(prefix: &str) -> Self {
        Self(ArcStr::from(prefix))
    }
}

impl Name {
    /// Lower bound of all names; not itself a valid name.
    #[must_use]
    pub fn lower_bound() -> Self {
        Self(ArcStr::from(""))
    }
}

impl ObjectName {
    /// Lower bound of all names; not itself a valid name.
    #[must_use]
    pub fn lower_bound() -> Self {
        Self(ArcStr::from(""))
    }
}

impl From<&Name> for NamePattern {
    fn from(name: &Name) -> Self {
        Self(ArcStr::clone(&name.0))
    }
}

impl From<&ObjectName> for NetworkAttachment {
    fn from(name: &ObjectName) -> Self {
        Self(ArcStr::clone(&name.0))
    }
}

impl NamePattern {
    /// Returns the pattern as a name, if it has no wildcard.
    #[must_use]
    pub fn name(&self) -> Option<Name> {
        (self.prefix().len() == self.0.len()).then(|| Name(ArcStr::clone(&self.0)))
    }

    /// Literal prefix of the pattern, which all matching names share.
    #[must_use]
    pub fn prefix(&self) -> &str {
        let end = self.0.find(WILDCARDS).unwrap_or(self.0.len());
        self.0.get(..end).unwrap_or_default()
    }

    /// True if the pattern matches the name. Takes at most time proportional to the product of both lengths.
    #[must_use]
    pub fn fits(&self, name: &impl AsRef<str>) -> bool {
        wildcard::fits(&self.0, name.as_ref())
    }
}

impl Name {
    /// The default name: `default`.
    #[must_use]
    pub fn default_name() -> Self {
        Self(ArcStr::from(crate::brand::DEFAULT))
    }
}

impl Default for Name {
    fn default() -> Self {
        Self::default_name()
    }
}

impl Name {
    /// First name in sort order.
    #[must_use]
    pub fn lowest() -> Self {
        Self(ArcStr::from("0"))
    }
}

impl ObjectName {
    /// The default namespace: `default`.
    #[must_use]
    pub fn default_name() -> Self {
        Self(ArcStr::from(crate::brand::DEFAULT))
    }
}

fn check_name(text: &str) -> Result<(), Problem> {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    if text.len() <= NAME_CHARS_MAX
        && edge(text.chars().next())
        && edge(text.chars().last())
        && text.chars().all(inner)
    {
        return Ok(());
    }
    let rule =
        format!("a name: up to {NAME_CHARS_MAX} of {NAME_CHARACTERS}, with a letter or digit at both ends");
    Err(is_not(text, &rule))
}

/// Characters of a [`Name`], as messages list them.
const NAME_CHARACTERS: &str = r#"a-z, 0-9, "-" and ".""#;
const WILDCARDS: [char; 3] = ['*', '?', '['];

fn check_name_pattern(text: &str) -> Result<(), Problem> {
    if !text.contains(WILDCARDS) {
        return check_name(text);
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.*?[]^".contains(c);
    if text.len() <= NAME_CHARS_MAX && text.chars().all(plain) && wildcard::is_sound(text) {
        return Ok(());
    }
    let rule = format!(
        "a pattern of names: up to {NAME_CHARS_MAX} of {NAME_CHARACTERS}, with \"*\", \"?\" or [a-z]"
    );
    Err(is_not(text, &rule))
}

fn check_spiffe_pattern(text: &str) -> Result<(), Problem> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._/*?[]^".contains(c);
    let rest = text.strip_prefix("spiffe://").filter(|rest| !rest.is_empty());
    if text.len() <= SPIFFE_PATTERN_CHARS_MAX
        && rest.is_some_and(|rest| rest.chars().all(plain) && wildcard::is_sound(rest))
    {
        return Ok(());
    }
    let rule = format!(
        "a pattern of SPIFFE ids: spiffe://TRUST-DOMAIN/PATH, up to {SPIFFE_PATTERN_CHARS_MAX} characters, \
         with \"*\", \"?\" or [a-z]"
    );
    Err(is_not(text, &rule))
}

fn check_network_attachment(text: &str) -> Result<(), Problem> {
    let (namespace, name) = text.split_once('/').unwrap_or(("default", text));
    if check_object_name(namespace).and_then(|()| check_object_name(name)).is_ok() {
        return Ok(());
    }
    Err(is_not(text, "a network attachment; write name or namespace/name"))
}

fn check_resource_name(text: &str) -> Result<(), Problem> {
    match text.split_once('/') {
        Some((realm, name)) => check_name(realm).and_then(|()| check_object_name(name)),
        None => check_name(text),
    }
}

fn check_object_name(text: &str) -> Result<(), Problem> {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '-');
    if text.len() <= OBJECT_NAME_CHARS_MAX
        && text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric())
        && text.chars().all(inner)
    {
        return Ok(());
    }
    let rule = format!(
        "an object's name: up to {OBJECT_NAME_CHARS_MAX} letters, digits, \"_\", \".\", \":\" and \"-\", the \
         first one a letter or digit"
    );
    Err(is_not(text, &rule))
}

fn check_interface_name(text: &str) -> Result<(), Problem> {
    if text.len() > INTERFACE_NAME_CHARS_MAX && text.chars().count() <= INTERFACE_NAME_CHARS_MAX {
        let detail = format!(
            "{} has {} bytes; an interface's name has at most {INTERFACE_NAME_CHARS_MAX}",
            shown(text),
            text.len()
        );
        return Err(Problem::new(Code::LimitExceeded, detail));
    }
    if !text.is_empty()
        && text.len() <= INTERFACE_NAME_CHARS_MAX
        && text != "."
        && text != ".."
        && !text.chars().any(|c| c == '/' || c == ':' || c.is_whitespace() || c.is_control())
    {
        return Ok(());
    }
    let rule = format!(
        "an interface's name: up to {INTERFACE_NAME_CHARS_MAX} bytes, not \".\" or \"..\", without \"/\", \
         \":\" and white space"
    );
    Err(is_not(text, &rule))
}

/// Problem of a text that breaks a rule.
pub(crate) fn is_not(text: &str, rule: &str) -> Problem {
    Problem::new(Code::InvalidField, format!("{} is not {rule}", shown(text)))
}

/// Quotes, escapes and truncates input, so that it is safe to print.
#[must_use]
pub fn shown(text: &str) -> String {
    const SHOWN_CHARS: usize = 80;
    let head: String = text.chars().take(SHOWN_CHARS).collect();
    let more = if head.len() < text.len() { "…" } else { "" };
    format!("{head:?}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_rule() {
        for good in ["a", "web", "lan-10", "10.20", "a.b-c"] {
            assert!(Name::new(good).is_ok(), "{good}");
        }
        let long = "a".repeat(64);
        for bad in ["", "-a", "a-", ".a", "A", "a/b", "a b", "é", "a\n", "..", &long] {
            assert!(Name::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn patterns_are_names_with_wildcards() {
        for good in ["web", "*", "web-*", "w?b", "web-[a-c]", "[^0-9]*"] {
            assert!(NamePattern::new(good).is_ok(), "{good}");
        }
        for bad in ["", "web-", "W*", "a b*", "[", "[]", "[^]", "a]*", "[c-a]", "*é", &"*".repeat(64)] {
            assert!(NamePattern::new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(NamePattern::new("web-*-a").unwrap().prefix(), "web-");
        assert_eq!(NamePattern::new("web").unwrap().name(), Some(Name::new("web").unwrap()));
        assert_eq!(NamePattern::new("we?").unwrap().name(), None);
    }

    #[test]
    fn patterns_of_spiffe_ids_have_their_scheme() {
        for good in ["spiffe://example.org/ns/*", "spiffe://a/B_c-1", "spiffe://*", "spiffe://a/[a-c]?"] {
            assert!(SpiffePattern::new(good).is_ok(), "{good}");
        }
        let long = format!("spiffe://{}", "a".repeat(SPIFFE_PATTERN_CHARS_MAX - 8));
        for bad in ["", "*", "spiffe://", "https://a/b", "spiffe://a b", "spiffe://a/[", "spiffe://ä", &long]
        {
            assert!(SpiffePattern::new(bad).is_err(), "{bad:?}");
        }
        let pattern = SpiffePattern::new("spiffe://example.org/ns/*/sa/proxy-?").unwrap();
        assert!(pattern.fits("spiffe://example.org/ns/red/blue/sa/proxy-1"));
        for other in ["spiffe://example.org/ns/red/sa/proxy-10", "spiffe://example.com/ns/red/sa/proxy-1"] {
            assert!(!pattern.fits(other), "{other}");
        }
    }

    #[test]
    fn resources_may_be_in_a_realm() {
        let node = ResourceName::new("prod-eu/Worker_1").unwrap();
        assert_eq!(
            node.parts().map(|(realm, name)| ResourceName::in_realm(&realm, &name)),
            Some(node.clone())
        );
        assert_eq!(node.name(), None);
        let pool = Name::new("web").unwrap();
        assert_eq!(ResourceName::from(&pool).name(), Some(pool));
        for bad in ["", "/", "a/", "/a", "A/b", "a/b/c", "Web"] {
            assert!(ResourceName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn network_attachments_may_have_a_namespace() {
        for good in ["net1", "kube-system/macvlan_a"] {
            assert!(NetworkAttachment::new(good).is_ok(), "{good}");
        }
        for bad in ["", "/", "a/", "/a", "a/b/c", "a b"] {
            assert!(NetworkAttachment::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn object_names_allow_what_runtimes_send() {
        for good in ["web-0", "9c1fA_x.y", "k8s:pod"] {
            assert!(ObjectName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "../x", "a/b", "_a", "é", "a\0", &"a".repeat(254)] {
            assert!(ObjectName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn interface_names_follow_the_kernel() {
        assert!(InterfaceName::new("eth0").is_ok());
        for bad in ["", ".", "..", "a/b", "a b", "a:b", "sixteen-chars-xx"] {
            assert!(InterfaceName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn shown_input_is_escaped_and_truncated() {
        assert_eq!(shown("a\nb"), "\"a\\nb\"");
        assert!(shown(&"x".repeat(500)).chars().count() < 90);
    }
}
