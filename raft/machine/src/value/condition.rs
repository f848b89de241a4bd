//! Conditions: the reason why an endpoint waits, and the readiness of a pool.

use serde::{Deserialize, Serialize};

use crate::value::cause::Closed;
use crate::value::words::words;

words! {
    /// Reason of a wait. Variants are only ever appended.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum WaitReason {
        /// Its pools have no free address.
        PoolExhausted = "PoolExhausted",
        /// Its pools are closed: disabled, terminating, drained, or unconfirmed after a restore.
        PoolNotReady = "PoolNotReady",
        /// Another reason, which no freed address removes.
        AllocationFailed = "AllocationFailed",
        /// A quota leaves too little.
        QuotaExceeded = "QuotaExceeded",
    }
}

words! {
    /// Readiness of a pool to allocate, or the reason against it.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Readiness {
        /// Ready.
        #[default]
        Serving = "Serving",
        /// No address is free.
        Exhausted = "Exhausted",
        /// An operator disabled it.
        Disabled = "Disabled",
        /// Deleted once it is empty.
        Terminating = "Terminating",
        /// It was restored, and is not confirmed yet.
        Unconfirmed = "Unconfirmed",
        /// Another pool stands in for it.
        Drained = "Drained",
    }
}

impl From<Closed> for Readiness {
    fn from(closed: Closed) -> Self {
        match closed {
            Closed::Terminating => Self::Terminating,
            Closed::Disabled => Self::Disabled,
            Closed::Drained => Self::Drained,
            Closed::Unconfirmed => Self::Unconfirmed,
        }
    }
}

impl Readiness {
    /// Meaning, for readers of a condition.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Readiness::Serving => "The pool allocates addresses.",
            Readiness::Exhausted => "No address is free.",
            Readiness::Disabled => "The pool was disabled; it allocates nothing until it is enabled.",
            Readiness::Terminating => "The pool is deleted when its last address is released.",
            Readiness::Unconfirmed => "The pool was restored; it allocates nothing until it is confirmed.",
            Readiness::Drained => "The pool is drained; another pool serves its requests.",
        }
    }
}
