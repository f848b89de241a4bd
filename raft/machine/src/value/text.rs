//! Text of rows, events and outcomes: words of requests and identifiers, no sentence of this program.
//!
//! **Invariant:** members with different programs write the same bytes. So code of the machine never creates
//! a `Text` from wording of its own: [`Text::given`] is for text from outside, and `cargo xtask test --only
//! tidy` refuses it within `raft/machine/src/`; `Text::identifier` is for the few identifiers that the
//! machine itself assigns.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use arcstr::ArcStr;
use ipam_api::name::SharedText;
use serde::{Deserialize, Serialize};

/// Characters of unbounded text in a refusal: one above the shown number, so the cut is visible.
const EXCERPT_CHARS: usize = 81;

/// Text that is shared rather than copied.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text(ArcStr);

impl Text {
    /// Text of a request, a configuration or a peer.
    #[must_use]
    pub fn given(text: impl Into<ArcStr>) -> Self {
        Self(text.into())
    }

    /// Identifier: a principal or a request id of the machine, or a label of a selector.
    pub(crate) fn identifier(text: impl Into<ArcStr>) -> Self {
        Self(text.into())
    }

    /// The beginning of a text that may be long: what a refusal keeps has a bound.
    pub(crate) fn excerpt(&self) -> Self {
        match self.0.char_indices().nth(EXCERPT_CHARS) {
            Some((end, _)) => Self(self.0.get(..end).unwrap_or_default().into()),
            None => self.clone(),
        }
    }

    /// Returns the text as a string slice.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SharedText for Text {
    fn text(&self) -> &ArcStr {
        &self.0
    }

    fn share(&mut self, text: &ArcStr) {
        if self.0 == *text {
            self.0 = ArcStr::clone(text);
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_shown_as_the_whole_text_is() {
        for text in ["", "short", &"ä".repeat(80), &"ä".repeat(81), &"ä".repeat(200)] {
            let whole = Text::given(text);
            assert_eq!(ipam_api::name::shown(&whole.excerpt()), ipam_api::name::shown(text));
            assert!(whole.excerpt().chars().count() <= EXCERPT_CHARS);
        }
    }
}
