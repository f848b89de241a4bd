//! Conversion of Kubernetes fields to values of ipamd, shared by the agent and the watcher.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::limits::TEXT_CHARS_MAX;
use crate::name::ObjectName;
use crate::resource::{Controller, Labels};
use crate::selector::check_label;

/// Characters of a uid.
const UID_CHARS_MAX: usize = 128;
const _: () = assert!(UID_CHARS_MAX <= TEXT_CHARS_MAX);

/// True for a text that can be the uid of a workload.
#[must_use]
pub fn is_uid(text: &str) -> bool {
    (1..=UID_CHARS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Characters of a controller's kind and of its API group, as the servers accept them.
const KIND_CHARS_MAX: usize = 63;
const GROUP_CHARS_MAX: usize = 253;

/// Controller that a reference names; `None` if the servers would refuse it.
#[must_use]
pub fn controller(api_version: &str, kind: &str, name: &str, uid: &str) -> Option<Controller> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let is_plain = |text: &str, also: &[u8]| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || also.contains(&byte))
    };
    let is_kind = (1..=KIND_CHARS_MAX).contains(&kind.len()) && is_plain(kind, b"");
    let is_group = group.len() <= GROUP_CHARS_MAX && is_plain(group, b".-");
    let name = ObjectName::new(name).ok().filter(|_| is_kind && is_group)?;
    let uid = is_uid(uid).then(|| uid.to_owned());
    Some(Controller { group: group.to_owned(), kind: kind.to_owned(), name, uid })
}

/// Labels by which pools can select: at most the first `N` by key. `null` equals an empty map, as in Go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsableLabels<const N: usize>(pub Labels);

struct LabelsVisitor<const N: usize>;

impl<'de, const N: usize> Visitor<'de> for LabelsVisitor<N> {
    type Value = UsableLabels<N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("labels")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(UsableLabels::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut labels = Labels::new();
        while let Some(key) = map.next_key::<String>()? {
            if check_label(&key, "").is_err() {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = map.next_value::<String>()?;
            if check_label(&key, &value).is_ok() {
                labels.insert(key, value);
            }
            // The last label by key is dropped, so that the order of the input has no effect.
            if labels.len() > N {
                labels.pop_last();
            }
        }
        Ok(UsableLabels(labels))
    }
}

impl<'de, const N: usize> Deserialize<'de> for UsableLabels<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LabelsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn labels_are_bounded_and_usable() {
        const KEPT: usize = 1000;
        let read = |value| serde_json::from_value::<UsableLabels<KEPT>>(value).unwrap().0;
        assert!(read(json!(null)).is_empty());
        let kept = read(json!({"a": "1", "b c": "2", "d": "x".repeat(5000)}));
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["a"]);
        let many = (0..5000).map(|number| (format!("k{number:04}"), json!("v"))).collect();
        let kept = read(Value::Object(many));
        assert_eq!(kept.len(), KEPT);
        assert!(kept.contains_key("k0000") && kept.contains_key("k0999"));
    }

    #[test]
    fn a_uid_is_a_short_text_without_spaces() {
        for (text, is_one) in [("u1", true), ("", false), ("a b", false), ("é", false)] {
            assert_eq!(is_uid(text), is_one, "{text}");
        }
        assert!(is_uid(&"x".repeat(UID_CHARS_MAX)) && !is_uid(&"x".repeat(UID_CHARS_MAX + 1)));
    }
}
