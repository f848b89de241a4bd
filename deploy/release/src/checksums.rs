//! `SHA256SUMS`: a line for each artifact, as `sha256sum --check` reads it.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Name of the file.
pub(crate) const NAME: &str = "SHA256SUMS";

/// Lines for artifacts with their contents, in the order of names.
pub(crate) fn lines<'a>(artifacts: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut lines: Vec<String> = artifacts
        .into_iter()
        .map(|(name, content)| format!("{}  {name}\n", hexadecimal(&Sha256::digest(content))))
        .collect();
    lines.sort_by(|one, other| one.get(64..).cmp(&other.get(64..)));
    lines.concat()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_sorted_by_name() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(lines([("b", &b""[..]), ("a", &b""[..])]), format!("{empty}  a\n{empty}  b\n"));
    }
}
