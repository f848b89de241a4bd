//! Hosts without an orchestrator: their agents, and the configuration files that are rendered for them.

mod agent;
mod tools;
