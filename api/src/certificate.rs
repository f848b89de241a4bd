//! Member, client or node that a certificate identifies by the DNS names of its SANs.
//!
//! **Invariant:** a DNS name identifies one subject. Hence a realm with a dot has no DNS name: its first part
//! would be ambiguous with the end of a node's name.

use std::fmt;

use crate::brand::{CERTIFICATE_CLIENT_SUFFIX, CERTIFICATE_MEMBER_SUFFIX, CERTIFICATE_NODE_SUFFIX};
use crate::name::shown;
use crate::{Code, Name, ObjectName, Problem};

/// Characters of a DNS name, and of each part between dots.
const DNS_CHARS_MAX: usize = 253;
const DNS_LABEL_CHARS_MAX: usize = 63;

/// Subject that a certificate identifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// A member of the cluster: `NAME.member.ipamd.internal`.
    Member {
        /// Name of the member.
        name: Name,
    },
    /// A person or program: `NAME.client.ipamd.internal`.
    Client {
        /// Name of the client.
        name: Name,
    },
    /// A node with its agent and plugin: `NAME.REALM.node.ipamd.internal`.
    Node {
        /// Realm of the node; without a dot.
        realm: Name,
        /// The node's name.
        name: ObjectName,
    },
}

/// Error of a certificate that identifies several subjects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ambiguous;

impl fmt::Display for Ambiguous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the certificate names more than one member, client or node")
    }
}

impl std::error::Error for Ambiguous {}

impl Identity {
    /// Parses a DNS name; `None` unless it has exactly one of the three forms, in lower case.
    #[must_use]
    pub fn parse(dns_name: &str) -> Option<Self> {
        if !is_dns_name(dns_name) {
            return None;
        }
        if let Some(name) = dns_name.strip_suffix(CERTIFICATE_MEMBER_SUFFIX) {
            return Name::new(name).ok().map(|name| Self::Member { name });
        }
        if let Some(name) = dns_name.strip_suffix(CERTIFICATE_CLIENT_SUFFIX) {
            return Name::new(name).ok().map(|name| Self::Client { name });
        }
        let (name, realm) = dns_name.strip_suffix(CERTIFICATE_NODE_SUFFIX)?.rsplit_once('.')?;
        Some(Self::Node { realm: Name::new(realm).ok()?, name: ObjectName::new(name).ok()? })
    }

    /// Returns the identity among the DNS names of one certificate; `None` if no name is an identity.
    ///
    /// # Errors
    /// If the names identify several subjects.
    pub fn of<'a>(dns_names: impl Iterator<Item = &'a str>) -> Result<Option<Self>, Ambiguous> {
        let mut found: Option<Self> = None;
        for identity in dns_names.filter_map(Self::parse) {
            if found.as_ref().is_some_and(|found| *found != identity) {
                return Err(Ambiguous);
            }
            found = Some(identity);
        }
        Ok(found)
    }

    /// Returns the DNS name by which a certificate identifies the subject.
    ///
    /// # Errors
    /// `invalid-field` for a name that DNS can't carry, or that would be the name of another identity.
    pub fn dns_name(&self) -> Result<String, Problem> {
        let dns_name = match self {
            Self::Member { name } => format!("{name}{CERTIFICATE_MEMBER_SUFFIX}"),
            Self::Client { name } => format!("{name}{CERTIFICATE_CLIENT_SUFFIX}"),
            Self::Node { realm, name } => format!("{name}.{realm}{CERTIFICATE_NODE_SUFFIX}"),
        };
        if Self::parse(&dns_name).as_ref() == Some(self) {
            return Ok(dns_name);
        }
        Err(Problem::new(Code::InvalidField, format!("no certificate can name {}", shown(&dns_name))).help(
            "Names in certificates are lower-case letters, digits, \"-\" and \".\", at most 63 characters between \
             dots; a realm has no dot.",
        ))
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member { name } => write!(f, "member {name}"),
            Self::Client { name } => write!(f, "client {name}"),
            Self::Node { realm, name } => write!(f, "node {realm}/{name}"),
        }
    }
}

/// True if every part between dots is a DNS label in lower case.
fn is_dns_name(text: &str) -> bool {
    let label = |label: &str| {
        (1..=DNS_LABEL_CHARS_MAX).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    text.len() <= DNS_CHARS_MAX && text.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn node(realm: &str, node: &str) -> Identity {
        Identity::Node { realm: name(realm), name: ObjectName::new(node).unwrap() }
    }

    #[test]
    fn an_identity_reads_back_the_same() {
        for (identity, dns_name) in [
            (Identity::Member { name: name("n1") }, "n1.member.ipamd.internal"),
            (Identity::Client { name: name("grafana.ops") }, "grafana.ops.client.ipamd.internal"),
            (node("east", "worker-3.example.org"), "worker-3.example.org.east.node.ipamd.internal"),
        ] {
            assert_eq!(identity.dns_name().unwrap(), dns_name);
            assert_eq!(Identity::parse(dns_name), Some(identity));
        }
    }

    #[test]
    fn a_name_that_reads_as_another_principals_is_refused() {
        let long = "x".repeat(64);
        for identity in [
            node("c.east", "web"),
            node("east", "Worker"),
            node("east", "a_b"),
            node("east", "a..b"),
            node("east", "10.0.0.1:7"),
            node("east", &long),
            node("east", ["abcdefg."; 31].concat().trim_end_matches('.')),
            Identity::Member { name: name("a..b") },
        ] {
            let problem = identity.dns_name().unwrap_err();
            assert_eq!(problem.code, Code::InvalidField, "{identity}");
        }
    }

    #[test]
    fn foreign_names_identify_no_principal() {
        for text in [
            "",
            ".member.ipamd.internal",
            "member.ipamd.internal",
            "*.member.ipamd.internal",
            "N1.member.ipamd.internal",
            "n1.member.ipamd.internal.",
            "n1.member.ipamd.internal.example.org",
            "n1.xmember.ipamd.internal",
            "n1xmember.ipamd.internal",
            "worker.node.ipamd.internal",
            ".east.node.ipamd.internal",
            "n1.ipam.example.org",
        ] {
            assert_eq!(Identity::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_certificate_is_of_one_of_us_at_most() {
        let (n1, n2) = ("n1.member.ipamd.internal", "n2.member.ipamd.internal");
        let of = |names: &[&str]| Identity::of(names.iter().copied());
        assert_eq!(of(&["example.org"]), Ok(None));
        assert_eq!(of(&["example.org", n1, n1]), Ok(Some(Identity::Member { name: name("n1") })));
        assert_eq!(of(&[n1, "example.org", n2]), Err(Ambiguous));
        assert_eq!(of(&[n1, "n1.client.ipamd.internal"]), Err(Ambiguous));
    }
}
