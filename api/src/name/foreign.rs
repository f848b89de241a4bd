//! Names of other systems, converted to [`Name`]s.

use arcstr::ArcStr;
use std::iter;

use super::{Name, ObjectName, check_name};
use crate::limits::NAME_CHARS_MAX;

/// Characters of the hash at the end of a converted name, with the hyphen before it.
const ENDING_CHARS: usize = 1 + 8;

impl Name {
    /// Converts a name of another system, which may be longer and have other characters.
    ///
    /// A valid [`Name`] stays as it is. Any other name becomes its first 54 characters, in lower case and
    /// with `-` for each other character, then `-` and the 32-bit FNV-1a hash of the whole name in
    /// hexadecimal. The conversion never changes, so a name finds its resource in every release.
    ///
    /// Two names with the same beginning collide with a probability of 2⁻³², or on purpose. The creator of a
    /// resource stores the original in the annotation [`FOREIGN_NAME`](crate::brand::FOREIGN_NAME), so that
    /// a collision shows as a change of that annotation.
    #[must_use]
    pub fn from_foreign(foreign: &ObjectName) -> Self {
        if check_name(foreign.as_str()).is_ok() {
            Self(ArcStr::clone(&foreign.0))
        } else {
            converted(&foreign.0)
        }
    }

    /// Converts a text of any length as [`from_foreign`](Self::from_foreign) does, such as several names with
    /// `:` between them.
    ///
    /// The text should begin with an ASCII letter or digit; any other first character becomes `0`.
    #[must_use]
    pub fn from_foreign_text(text: &str) -> Self {
        Self::new(text).unwrap_or_else(|_| converted(text))
    }
}

/// Name of a text that is no [`Name`] itself.
fn converted(text: &str) -> Name {
    let permitted = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_alphanumeric() || c == '.' => c,
        _ => '-',
    };
    let (first, rest) = match text.chars().next() {
        Some(first) if first.is_ascii_alphanumeric() => (permitted(first), text.get(1..)),
        Some(first) => ('0', text.get(first.len_utf8()..)),
        None => ('0', None),
    };
    let rest = rest.unwrap_or_default().chars().map(permitted);
    let beginning: String = iter::once(first).chain(rest).take(NAME_CHARS_MAX - ENDING_CHARS).collect();
    Name(ArcStr::from(format!("{beginning}-{:08x}", fnv1a(text.as_bytes()))))
}

/// The 32-bit FNV-1a hash (IETF draft-eastlake-fnv).
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn converted(foreign: &str) -> String {
        Name::from_foreign(&ObjectName::new(foreign).unwrap()).to_string()
    }

    proptest! {
        #[test]
        fn a_converted_name_is_valid_and_stays(foreign in "[A-Za-z0-9][A-Za-z0-9_.:-]{0,252}") {
            let name = converted(&foreign);
            prop_assert!(Name::new(&name).is_ok(), "{}", name);
            prop_assert_eq!(&converted(&name), &name);
            prop_assert_eq!(&converted(&foreign), &name);
            prop_assert_eq!(Name::from_foreign_text(&foreign).to_string(), name);
        }

        #[test]
        fn a_converted_text_is_valid(text in "\\PC{0,400}") {
            let name = Name::from_foreign_text(&text);
            prop_assert!(Name::new(name.as_str()).is_ok(), "{}", name);
        }

        #[test]
        fn a_valid_name_is_unchanged(name in "[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?") {
            prop_assert_eq!(converted(&name), name);
        }
    }

    #[test]
    fn conversions_are_fixed() {
        let long = "a".repeat(253);
        for (foreign, name) in [
            ("lan-12", "lan-12"),
            ("Lan_12", "lan-12-9cdc9be2"),
            ("lan-", "lan--36e9e007"),
            ("10.12.0.0:24", "10.12.0.0-24-01369d63"),
            (&long, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-df1f7590"),
        ] {
            assert_eq!(converted(foreign), name);
        }
        // Test vectors of the draft.
        assert_eq!([fnv1a(b""), fnv1a(b"a"), fnv1a(b"foobar")], [0x811c_9dc5, 0xe40c_292c, 0xbf9c_f968]);
    }

    #[test]
    fn texts_of_several_long_parts_stay_apart() {
        let text = |kind: &str, last: &str| {
            let (part, name) = ("a".repeat(63), "b".repeat(253));
            Name::from_foreign_text(&format!("{kind}:{part}:{part}:{name}{last}")).to_string()
        };
        assert_eq!(text("ippool", "1"), format!("ippool-{}-7f6bbb05", "a".repeat(47)));
        assert_ne!(text("ippool", "1"), text("ippool", "2"));
        assert_ne!(text("ippool", ""), text("prefixpool", ""));
    }

    #[test]
    fn a_text_that_begins_otherwise_gets_a_valid_name() {
        for (text, name) in [
            ("web", "web"),
            ("Web:a", "web-a-e4498290"),
            ("", "0-811c9dc5"),
            (":web", "0web-3fda97c9"),
            (".web", "0web-86d91375"),
            ("éa", "0a-d29533e0"),
        ] {
            assert_eq!(Name::from_foreign_text(text).as_str(), name, "{text:?}");
        }
    }

    #[test]
    fn many_similar_names_stay_apart() {
        let mut seen = BTreeMap::new();
        for number in 0..10_000 {
            for foreign in [
                format!("{}-{number}", "shop.web".repeat(20)),
                format!("Pool_{number}"),
                format!("pool-{number}"),
                format!("pool-{number}:"),
            ] {
                let other = seen.insert(converted(&foreign), foreign.clone());
                assert_eq!(other, None, "{foreign}");
            }
        }
    }
}
