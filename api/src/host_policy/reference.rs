//! References to captures, as nmpolicy writes them: `{{ capture.NAME.FIELD }}`.

use crate::name::Name;

/// Pool of a capture whose value is `ippool.POOL.allocate`; `None` for any other capture.
#[must_use]
pub fn pool_of(expression: &str) -> Option<Name> {
    let pool = expression.strip_prefix("ippool.")?.strip_suffix(".allocate")?;
    Name::new(pool).ok()
}

/// Reference to a field of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reference<'a> {
    /// Name of the capture.
    pub capture: &'a str,
    /// Path in the captured value, without the first dot; empty for the value itself.
    pub path: &'a str,
}

impl<'a> Reference<'a> {
    /// Reads the text between the braces.
    fn inner(text: &'a str) -> Option<Self> {
        let (capture, path) = {
            let rest = text.trim().strip_prefix("capture.")?;
            rest.split_once('.').unwrap_or((rest, ""))
        };
        Some(Self { capture, path })
    }

    /// Reads a string that is a reference as a whole.
    pub(super) fn whole(text: &'a str) -> Option<Self> {
        let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
        if inner.contains("{{") || inner.contains("}}") {
            return None;
        }
        Self::inner(inner)
    }

    /// Finds all references inside a longer string.
    pub(super) fn all(text: &'a str) -> impl Iterator<Item = Self> {
        text.split("{{").skip(1).filter_map(|rest| Self::inner(rest.split("}}").next().unwrap_or(rest)))
    }
}

/// True for the name of a capture: a letter, then letters, digits and `-`.
pub(super) fn is_capture_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// True if an expression of nmpolicy reads the capture `name`.
pub(super) fn reads(expression: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    expression.match_indices("capture.").any(|(at, word)| {
        let before = expression.get(..at).unwrap_or_default();
        let rest = expression.get(at + word.len()..).unwrap_or_default();
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        !before.ends_with(|c: char| is_word(c) || c == '.') && rest.get(..end) == Some(name)
    })
}
