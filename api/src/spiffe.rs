//! SPIFFE ids: names of workloads in URIs of certificates (`spiffe://TRUST-DOMAIN/PATH`).

use std::fmt;
use std::sync::Arc;

use crate::limits::SPIFFE_ID_BYTES_MAX;

/// Beginning of every SPIFFE id, in lower case.
const SCHEME: &str = "spiffe://";
/// Bytes of a trust domain.
const TRUST_DOMAIN_BYTES_MAX: usize = 255;

/// SPIFFE id of a workload, which has a path below its trust domain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpiffeId(Arc<str>);

impl SpiffeId {
    /// Reads an id, if it is valid in the canonical form, which certificates have.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (trust_domain, path) = text.strip_prefix(SCHEME)?.split_once('/')?;
        let is_valid = text.len() <= SPIFFE_ID_BYTES_MAX
            && (1..=TRUST_DOMAIN_BYTES_MAX).contains(&trust_domain.len())
            && trust_domain.bytes().all(|byte| is_name_byte(byte) && !byte.is_ascii_uppercase())
            && path.split('/').all(is_segment);
        is_valid.then(|| Self(text.into()))
    }

    /// The whole id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Trust domain of the id: the name of the authority that issues it.
    #[must_use]
    pub fn trust_domain(&self) -> &str {
        let rest = self.0.get(SCHEME.len()..).unwrap_or_default();
        rest.split_once('/').map_or(rest, |(trust_domain, _)| trust_domain)
    }
}

impl fmt::Display for SpiffeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// True if a URI has the scheme of SPIFFE, valid or not.
#[must_use]
pub fn is_spiffe(uri: &str) -> bool {
    let scheme = "spiffe:";
    uri.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')
}

fn is_segment(segment: &str) -> bool {
    !matches!(segment, "" | "." | "..") && segment.bytes().all(is_name_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_a_trust_domain_and_a_path() {
        let domain = "d".repeat(TRUST_DOMAIN_BYTES_MAX);
        let long = format!("{SCHEME}td/{}", "p".repeat(SPIFFE_ID_BYTES_MAX - SCHEME.len() - 3));
        for (text, trust_domain) in [
            ("spiffe://example.org/meridio/ns/default/sa/proxy", "example.org"),
            ("spiffe://example.org/A/..b/c..", "example.org"),
            ("spiffe://a_1.b-2/x", "a_1.b-2"),
            (&format!("{SCHEME}{domain}/x"), &domain),
            (&long, "td"),
        ] {
            let id = SpiffeId::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((id.as_str(), id.trust_domain()), (text, trust_domain));
        }
    }

    #[test]
    fn anything_else_is_no_id() {
        let long = format!("{SCHEME}td/{}", "p".repeat(SPIFFE_ID_BYTES_MAX - SCHEME.len() - 2));
        let domain = format!("{SCHEME}{}/x", "d".repeat(TRUST_DOMAIN_BYTES_MAX + 1));
        for text in [
            "",
            "spiffe://",
            "spiffe://example.org",
            "spiffe://example.org/",
            "spiffe:///path",
            "spiffe:/example.org/x",
            "https://example.org/x",
            "SPIFFE://example.org/x",
            "spiffe://Example.org/x",
            "spiffe://example.org:80/x",
            "spiffe://user@example.org/x",
            "spiffe://example.org/x/",
            "spiffe://example.org//x",
            "spiffe://example.org/./x",
            "spiffe://example.org/x/..",
            "spiffe://example.org/x?y",
            "spiffe://example.org/x#y",
            "spiffe://example.org/%78",
            "spiffe://example.org/x y",
            "spiffe://example.org/é",
            "spiffe://example.org/x\n",
            &long,
            &domain,
        ] {
            assert_eq!(SpiffeId::parse(text), None, "{text}");
        }
        assert!(is_spiffe("SPIFFE://x") && is_spiffe("spiffe:x"));
        assert!(!is_spiffe("spiff") && !is_spiffe("https://x") && !is_spiffe("spiffé:"));
    }
}
