//! The cluster: its status and members, tokens, backups, generations, health.

pub(super) mod backup;
pub(super) mod generation;
pub(super) mod health;
pub(super) mod member;
pub(super) mod status;
pub(super) mod token;
