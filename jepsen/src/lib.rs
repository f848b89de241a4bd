//! Chaos for ipamd: workloads, nemeses, checkers. Nothing is here yet; see this folder's README.
