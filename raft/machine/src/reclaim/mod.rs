//! Reclamation: detaching, releasing, expiring and sticky endpoints.

pub(crate) mod attachment;
pub(crate) mod detach;
pub(crate) mod expire;
pub(crate) mod lease;
pub(crate) mod release;
pub(crate) mod sticky;
