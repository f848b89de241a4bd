//! Message that Ctrl-C prints.

use std::sync::{Mutex, PoisonError};

/// Message before the first change is sent.
const UNCHANGED: &str = "interrupted: nothing was changed.";
/// Message once a change is sent.
const SENT: &str = "interrupted: stopped waiting; the request that was sent may still be applied.";

static WORDS: Mutex<Option<String>> = Mutex::new(None);

/// Replaces the message from now on.
pub(crate) fn say_instead(words: String) {
    *WORDS.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
}

/// Announces that a change is being sent.
pub(crate) fn change_is_sent() {
    say_instead(SENT.to_owned());
}

/// Present message.
pub(crate) fn words() -> String {
    let words = WORDS.lock().unwrap_or_else(PoisonError::into_inner).take();
    words.unwrap_or_else(|| UNCHANGED.to_owned())
}
