//! Conditions: the reason why an endpoint waits, and the readiness of a pool.

use serde::{Deserialize, Serialize};

/// Why an endpoint waits. Variants are only ever appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// Nothing is free in its pools.
    PoolExhausted,
    /// Its pools give nothing for now: disabled, terminating, drained, or not confirmed since a restore.
    PoolNotReady,
    /// Something else is wrong, and no freed address helps.
    AllocationFailed,
    /// A quota leaves too little.
    QuotaExceeded,
}

impl Why {
    /// Its word in conditions.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Why::PoolExhausted => "PoolExhausted",
            Why::PoolNotReady => "PoolNotReady",
            Why::AllocationFailed => "AllocationFailed",
            Why::QuotaExceeded => "QuotaExceeded",
        }
    }
}

/// Whether a pool can give, and if not, why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Readiness {
    /// It gives.
    #[default]
    Serving,
    /// Nothing is free.
    Exhausted,
    /// Somebody disabled it.
    Disabled,
    /// It goes once it is empty.
    Terminating,
    /// It was restored, and nobody has confirmed yet that it may give.
    Unconfirmed,
    /// Another pool stands in for it.
    Drained,
}

impl Readiness {
    /// All of them.
    pub const ALL: [Readiness; 6] = [
        Readiness::Serving,
        Readiness::Exhausted,
        Readiness::Disabled,
        Readiness::Terminating,
        Readiness::Unconfirmed,
        Readiness::Drained,
    ];

    /// What it means, for whoever reads a condition.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Readiness::Serving => "It gives.",
            Readiness::Exhausted => "Nothing is free.",
            Readiness::Disabled => "Somebody disabled it; it gives nothing until it is enabled.",
            Readiness::Terminating => "It goes once it is empty.",
            Readiness::Unconfirmed => "It was restored; it gives nothing until somebody confirms it.",
            Readiness::Drained => "It gives nothing more; another pool stands in for it.",
        }
    }

    /// Its word in conditions.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Readiness::Serving => "Serving",
            Readiness::Exhausted => "Exhausted",
            Readiness::Disabled => "Disabled",
            Readiness::Terminating => "Terminating",
            Readiness::Unconfirmed => "Unconfirmed",
            Readiness::Drained => "Drained",
        }
    }
}
