//! Wildcards: `*`, `?`, `[abc]`, `[a-z]`, `[^a-z]`. ASCII only. A match takes at most time proportional to
//! the product of both lengths.

/// Element of a pattern.
enum Place<'a> {
    /// Any characters, or none.
    Any,
    /// Any single character.
    One,
    /// This character.
    Is(u8),
    /// Character class, possibly negated.
    Class { negated: bool, inside: &'a [u8] },
}

/// Returns the first element and the rest; `None` at the end, or for an unclosed class.
fn next(pattern: &[u8]) -> Option<(Place<'_>, &[u8])> {
    let (first, rest) = pattern.split_first()?;
    Some(match first {
        b'*' => (Place::Any, rest),
        b'?' => (Place::One, rest),
        b'[' => {
            let end = rest.iter().position(|byte| *byte == b']')?;
            let (inside, after) = rest.split_at_checked(end)?;
            let negated = inside.first() == Some(&b'^');
            let inside = inside.get(usize::from(negated)..)?;
            (Place::Class { negated, inside }, after.get(1..)?)
        }
        byte => (Place::Is(*byte), rest),
    })
}

/// True if every class is closed and valid.
pub(super) fn is_sound(pattern: &str) -> bool {
    let mut rest = pattern.as_bytes();
    while !rest.is_empty() {
        let Some((place, after)) = next(rest) else { return false };
        let sound = match place {
            Place::Class { inside, .. } => is_class(inside),
            Place::Is(byte) => byte != b']' && byte != b'^',
            Place::Any | Place::One => true,
        };
        if !sound {
            return false;
        }
        rest = after;
    }
    true
}

fn is_class(inside: &[u8]) -> bool {
    let member = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'.';
    !inside.is_empty() && spans(inside).all(|(from, to)| member(&from) && member(&to) && from <= to)
}

/// Characters of a class as spans: `a-c` is one span, and `x` a span of one character.
fn spans(inside: &[u8]) -> impl Iterator<Item = (u8, u8)> + '_ {
    let mut rest = inside;
    std::iter::from_fn(move || {
        let (span, after) = match rest {
            [from, b'-', to, after @ ..] => ((*from, *to), after),
            [one, after @ ..] => ((*one, *one), after),
            [] => return None,
        };
        rest = after;
        Some(span)
    })
}

impl Place<'_> {
    fn takes(&self, byte: u8) -> bool {
        match self {
            Place::Any | Place::One => true,
            Place::Is(wanted) => *wanted == byte,
            Place::Class { negated, inside } => {
                spans(inside).any(|(from, to)| (from..=to).contains(&byte)) != *negated
            }
        }
    }
}

/// True if the pattern matches the text.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.as_bytes(), text.as_bytes());
    // Position after the last `*`, and the position in the text of its last attempt.
    let mut again: Option<(&[u8], &[u8])> = None;
    loop {
        let step = next(pattern);
        if let Some((Place::Any, rest)) = step {
            again = Some((rest, text));
            pattern = rest;
            continue;
        }
        match (step, text.split_first()) {
            (None, None) => return true,
            (Some((place, rest)), Some((byte, left))) if place.takes(*byte) => {
                (pattern, text) = (rest, left);
            }
            // The match is retried with one more character for the last `*`.
            _ => match again {
                Some((behind, [_, left @ ..])) => {
                    again = Some((behind, left));
                    (pattern, text) = (behind, left);
                }
                _ => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_what_they_say() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "web", true),
            ("web", "web", true),
            ("web", "web1", false),
            ("web*", "web", true),
            ("web*", "we", false),
            ("*b", "web", true),
            ("*b", "web1", false),
            ("w*-*-1", "web-a-1", true),
            ("w*-*-1", "web-1", false),
            ("w?b", "web", true),
            ("w?b", "wb", false),
            ("?", "", false),
            ("web-[a-c]", "web-b", true),
            ("web-[a-c]", "web-d", false),
            ("web-[^a-c]", "web-d", true),
            ("web-[^a-c]", "web-", false),
            ("web-[xa-b]*", "web-x9", true),
            ("*[0-9][0-9]", "rack-12", true),
            ("*[0-9][0-9]", "rack-1x", false),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn the_worst_pattern_ends_soon() {
        assert!(!fits(&"*a".repeat(31), &"a".repeat(30)));
        assert!(!fits(&format!("{}b", "*a".repeat(31)), &"a".repeat(63)));
    }

    #[test]
    fn classes_must_mean_something() {
        for bad in ["[", "[a", "[]", "[^]", "[c-a]", "[a-]", "[A]", "]", "a^"] {
            assert!(!is_sound(bad), "{bad}");
        }
        for good in ["[a]", "[^a]", "[a-c0-9.]", "*?[a]x"] {
            assert!(is_sound(good), "{good}");
        }
    }
}
