//! Cluster resources: members, tokens, the feature level, leaderships, restores and kept answers.

pub(crate) mod epoch;
pub(crate) mod leadership;
pub mod level;
pub(crate) mod member;
pub(crate) mod node_token;
pub(crate) mod replay;
pub(crate) mod token;
