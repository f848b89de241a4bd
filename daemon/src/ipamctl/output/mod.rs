//! How things look: tables for people, JSON for programs, and the small words in both.

pub(crate) mod csv;
pub(crate) mod data;
pub(crate) mod format;
pub(crate) mod json;
pub(crate) mod jsonpath;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod yaml;

/// How a word is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// All is well.
    Good,
    /// Look at it.
    Attention,
    /// It is broken.
    Bad,
}

impl Tone {
    /// The text in its colour, where colours are wanted.
    pub(crate) fn paint(self, text: &str, color: bool) -> String {
        let number = match self {
            Tone::Good => 32,
            Tone::Attention => 33,
            Tone::Bad => 31,
        };
        if color { format!("\u{1b}[1;{number}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}
