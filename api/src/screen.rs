//! Filter for terminal output: escapes characters that move the cursor, change state or reorder text.
//!
//! Names, descriptions, comments and error texts come from other people, servers and files. All text that a
//! program of this project prints passes [`clean`], and JSON passes [`json`].

use std::borrow::Cow;
use std::fmt::Write as _;

/// Replacement of a character that must not reach a terminal.
const REPLACEMENT: char = '\u{fffd}';

/// Returns true for a printable character, a line end or a tab.
#[must_use]
pub fn is_harmless(character: char) -> bool {
    match character {
        '\n' | '\t' => true,
        // Direction marks and isolates, and line separators that only some programs recognise.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
        _ => !character.is_control(),
    }
}

/// Replaces every harmful character by U+FFFD.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let shown = |character| if is_harmless(character) { character } else { REPLACEMENT };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Escapes every harmful character of JSON. The value stays the same, since only strings contain them.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_harmless(character) {
            escaped.push(character);
        } else {
            // All harmful characters are below U+10000. Writing to a string doesn't fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that a terminal could act on.
    fn harmful() -> Vec<char> {
        let ranges = [
            0..=8,
            0xb..=0x1f,
            0x7f..=0x9f,
            0x200e..=0x200f,
            0x2028..=0x202e,
            0x2066..=0x2069,
            0x61c..=0x61c,
        ];
        ranges.into_iter().flatten().filter_map(char::from_u32).collect()
    }

    #[test]
    fn no_harmful_character_is_left_and_no_other_one_is_changed() {
        for character in harmful() {
            assert_eq!(clean(&format!("a{character}b")), "a\u{fffd}b", "{character:?}");
        }
        for text in ["", "a\tb\n", "naïve · 网络 · \u{1F980}", "\u{200b}", "שלום"] {
            assert!(matches!(clean(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn json_says_the_same_when_it_is_escaped() {
        let text: String = harmful().into_iter().chain("\u{1F980}\"\\\n".chars()).collect();
        let written = serde_json::to_string(&[&text]).unwrap();
        let escaped = json(&written);
        assert!(escaped.chars().all(is_harmless), "{escaped:?}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&escaped).unwrap(), [text]);
    }
}
