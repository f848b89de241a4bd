//! Members of JSON objects, found as Go's `encoding/json` finds them.
//!
//! Case makes no difference, the last of several equal keys counts, `null` equals a missing member, and
//! unknown keys are ignored. One difference: an unknown key that resembles a known key which is missing is
//! rejected as misspelt.

use std::fmt;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::name::shown;
use crate::strict::nearest;

/// Members of one object, in their order.
#[derive(Debug)]
pub(super) struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

impl Members {
    /// Rejects an unknown key that resembles a missing key of `known`.
    ///
    /// # Errors
    /// The misspelt key, with the nearest known key.
    pub(super) fn check(&self, known: &[&str]) -> Result<(), Misspelt> {
        let is_known = |key: &str| known.iter().any(|name| name.eq_ignore_ascii_case(key));
        let has = |name: &str| self.0.iter().any(|(key, _)| name.eq_ignore_ascii_case(key));
        for (key, _) in self.0.iter().filter(|(key, _)| !is_known(key)) {
            let missing = known.iter().copied().filter(|name| !has(name));
            if let Some(near) = nearest(&key.to_ascii_lowercase(), missing) {
                return Err(Misspelt(format!("unknown field {}; did you mean \"{near}\"?", shown(key))));
            }
        }
        Ok(())
    }

    /// Reads a member; the default if it is missing or `null`.
    ///
    /// # Errors
    /// The reason with the key, for a value of another type.
    pub(super) fn get<T: DeserializeOwned + Default>(&self, name: &str) -> Result<T, String> {
        let found = self.0.iter().rev().find(|(key, _)| name.eq_ignore_ascii_case(key));
        let Some((_, value)) = found else { return Ok(T::default()) };
        let read: Result<Option<T>, _> = serde_json::from_str(value.get());
        read.map(Option::unwrap_or_default).map_err(|error| format!("{name}: {error}"))
    }
}

/// Reason for the rejection of a key that resembles a known one.
#[derive(Debug)]
pub(super) struct Misspelt(pub(super) String);

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Members {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn keys_are_those_of_go() {
        for (text, value) in [
            (r#"{"ipv4":["a"]}"#, Ok(vec!["a"])),
            (r#"{"IPv4":["a"]}"#, Ok(vec!["a"])),
            (r#"{"ipv4":["a"],"IPV4":["b"]}"#, Ok(vec!["b"])),
            (r#"{"IPV4":["b"],"ipv4":["a"]}"#, Ok(vec!["a"])),
            (r#"{"ipv4":null}"#, Ok(vec![])),
            (r#"{}"#, Ok(vec![])),
            (r#"{"ipv4":"a"}"#, Err("ipv4: invalid type")),
        ] {
            let read: Result<Vec<String>, String> = members(text).get("ipv4");
            match value {
                Ok(value) => assert_eq!(read.unwrap(), value, "{text}"),
                Err(why) => assert!(read.unwrap_err().starts_with(why), "{text}"),
            }
        }
    }

    #[test]
    fn only_misspelt_keys_are_refused() {
        let known = ["interface", "ipv4", "ipv6", "cleangateway"];
        for fine in [
            r#"{"Interface":1,"note":2,"": 3}"#,
            r#"{"cleanGateway":true,"description":"x"}"#,
            r#"{"interface":"eth0","interfaces":["eth0"]}"#,
        ] {
            assert!(members(fine).check(&known).is_ok(), "{fine}");
        }
        for (bad, near) in
            [(r#"{"ip4":[]}"#, "ipv4"), (r#"{"interfaces":1}"#, "interface"), (r#"{"IPV5":1}"#, "ipv4")]
        {
            let Misspelt(detail) = members(bad).check(&known).unwrap_err();
            assert!(detail.ends_with(&format!("did you mean \"{near}\"?")), "{detail}");
        }
    }
}
