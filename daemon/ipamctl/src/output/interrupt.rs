//! Words that follow Ctrl-C.

use std::sync::{Mutex, PoisonError};

const USUAL: &str =
    "interrupted: nobody waits any more, but a change that was already sent is still carried out.";

static WORDS: Mutex<Option<String>> = Mutex::new(None);

/// From now on this is said, by a command that changes nothing and knows better.
pub(crate) fn say_instead(words: String) {
    *WORDS.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
}

/// The words.
pub(crate) fn words() -> String {
    let words = WORDS.lock().unwrap_or_else(PoisonError::into_inner).take();
    words.unwrap_or_else(|| USUAL.to_owned())
}
