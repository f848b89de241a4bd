//! Annotations of namespaces: their default pools.

use super::PREFIX;
use super::read::wrong;
use crate::Problem;
use crate::limits::POOLS_NAMED_MAX;
use crate::name::NamePattern;
use crate::{Code, name::shown};

/// Default pools by family, each with its older name.
const IPV4: [&str; 2] = ["default-ipv4-ippool", "defaultv4ippool"];
const IPV6: [&str; 2] = ["default-ipv6-ippool", "defaultv6ippool"];

/// Default pools of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefaultPools {
    /// IPv4 pools.
    pub ipv4: Vec<NamePattern>,
    /// IPv6 pools.
    pub ipv6: Vec<NamePattern>,
}

/// True for an annotation that [`default_pools`] reads.
#[must_use]
pub fn is_of_namespaces(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|word| IPV4.contains(&word) || IPV6.contains(&word))
}

/// Reads the default pools of a namespace by its annotations. An older annotation counts if its successor is
/// missing.
///
/// # Errors
/// `invalid-field` or `limit-exceeded`, with the annotation.
pub fn default_pools<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> Result<DefaultPools, Problem> {
    let read = |words: [&str; 2]| {
        let found = words.into_iter().find_map(|word| Some((word, annotation(&super::key(word))?)));
        found.map_or_else(|| Ok(Vec::new()), |(word, text)| pools(word, text))
    };
    Ok(DefaultPools { ipv4: read(IPV4)?, ipv6: read(IPV6)? })
}

/// Reads a JSON list of names. An empty text is an empty list, as in Spiderpool.
fn pools(word: &str, text: &str) -> Result<Vec<NamePattern>, Problem> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let names: Option<Vec<NamePattern>> =
        serde_json::from_str(text).map_err(|error| wrong(word, &format!("can't be read: {error}")))?;
    let names = names.unwrap_or_default();
    if names.len() > POOLS_NAMED_MAX {
        let detail = format!("{} names more than {POOLS_NAMED_MAX} pools", shown(&super::key(word)));
        return Err(Problem::new(Code::LimitExceeded, detail));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(annotations: &[(&str, &str)]) -> Result<String, Code> {
        let find = |name: &str| annotations.iter().find(|(key, _)| *key == name).map(|(_, text)| *text);
        let joined =
            |pools: Vec<NamePattern>| pools.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let DefaultPools { ipv4, ipv6 } = default_pools(find).map_err(|problem| problem.code)?;
        Ok(format!("{}/{}", joined(ipv4), joined(ipv6)))
    }

    #[test]
    fn default_pools_are_read_in_both_forms() {
        let many = format!("[{}]", vec!["\"a\""; POOLS_NAMED_MAX + 1].join(","));
        for (annotations, expected) in [
            (&[][..], Ok("/")),
            (&[("ipam.spidernet.io/default-ipv4-ippool", r#"["a","b-*"]"#)], Ok("a,b-*/")),
            (&[("ipam.spidernet.io/defaultv6ippool", r#"["c"]"#)], Ok("/c")),
            (
                &[
                    ("ipam.spidernet.io/defaultv4ippool", r#"["old"]"#),
                    ("ipam.spidernet.io/default-ipv4-ippool", r#"["new"]"#),
                ],
                Ok("new/"),
            ),
            (&[("ipam.spidernet.io/default-ipv4-ippool", "")], Ok("/")),
            (&[("ipam.spidernet.io/default-ipv4-ippool", "null")], Ok("/")),
            (&[("ipam.spidernet.io/default-ipv4-ippool", "a")], Err(Code::InvalidField)),
            (&[("ipam.spidernet.io/default-ipv4-ippool", r#"["A B"]"#)], Err(Code::InvalidField)),
            (&[("ipam.spidernet.io/default-ipv4-ippool", &many)], Err(Code::LimitExceeded)),
        ] {
            assert_eq!(read(annotations), expected.map(str::to_owned), "{annotations:?}");
        }
        assert!(is_of_namespaces("ipam.spidernet.io/defaultv4ippool"));
        assert!(!is_of_namespaces("ipam.spidernet.io/ippool"));
        assert!(!is_of_namespaces("default-ipv4-ippool"));
    }
}
