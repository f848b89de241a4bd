//! Idempotency keys, and the command line that repeats a command with its key.

use ipam_api::limits::{IDEMPOTENCY_KEY_BYTES_MAX, TEXT_CHARS_MAX};
use ipam_api::name::shown;
use uuid::Uuid;

/// Creates a unique key that sorts by its time of creation.
pub(crate) fn new_key() -> String {
    Uuid::now_v7().simple().to_string()
}

/// Reads a key: visible ASCII, since it travels in a header.
pub(crate) fn parse_key(text: &str) -> Result<String, String> {
    if !text.is_empty()
        && text.len() <= IDEMPOTENCY_KEY_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_graphic())
    {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "{} is not a valid key: 1 to {IDEMPOTENCY_KEY_BYTES_MAX} visible ASCII characters",
            shown(text)
        ))
    }
}

/// Reads a comment: one line, since it travels in a header.
pub(crate) fn parse_comment(text: &str) -> Result<String, String> {
    let fits = text.chars().count() <= TEXT_CHARS_MAX && !text.chars().any(char::is_control);
    if fits {
        Ok(text.to_owned())
    } else {
        Err(format!("a comment is one line of up to {TEXT_CHARS_MAX} characters"))
    }
}

/// Quotes a command line for a shell, and adds the idempotency key.
pub(crate) fn repeated(words: &[String], key: &str) -> String {
    let mut line = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let given =
        words.iter().any(|word| word == "--idempotency-key" || word.starts_with("--idempotency-key="));
    if !given {
        line.push_str(&format!(" --idempotency-key {key}"));
    }
    line
}

/// Quotes a word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_repeated_as_it_was_typed() {
        let words = ["ipamctl", "pool", "create", "web", "--comment", "it's new"].map(str::to_owned);
        assert_eq!(
            repeated(&words, "k1"),
            r"ipamctl pool create web --comment 'it'\''s new' --idempotency-key k1"
        );
        let words = ["ipamctl", "--idempotency-key", "k1", "release", ""].map(str::to_owned);
        assert_eq!(repeated(&words, "k1"), "ipamctl --idempotency-key k1 release ''");
    }

    #[test]
    fn keys_and_comments_fit_into_a_header() {
        assert!(parse_key(&new_key()).is_ok());
        assert_ne!(new_key(), new_key());
        for bad in ["", "a b", "ä", "a\n"] {
            assert!(parse_key(bad).is_err(), "{bad:?}");
        }
        assert!(parse_comment("NET-4711: größer").is_ok());
        assert!(parse_comment("two\nlines").is_err());
    }
}
