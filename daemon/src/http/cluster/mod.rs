//! The cluster: its status and members, tokens, backups, epochs, health.

pub(super) mod backup;
pub(super) mod epoch;
pub(super) mod health;
pub(super) mod member;
pub(super) mod status;
pub(super) mod task;
pub(super) mod token;
