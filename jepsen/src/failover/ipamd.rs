//! ipamd with its default settings.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use futures::future::BoxFuture;
use rustix::process::Signal;
use serde_json::Value;

use super::system::System;
use crate::slow_disks::{Cluster, allocation};

/// Cluster of ipamd.
pub(crate) struct Ipamd(Cluster);

impl Ipamd {
    /// Starts three members in a directory.
    pub(crate) fn start(dir: &Path, program: PathBuf) -> Result<Self> {
        let mut cluster = Cluster::make(dir, &[program])?;
        cluster.start_all()?;
        Ok(Self(cluster))
    }
}

impl System for Ipamd {
    fn name(&self) -> &'static str {
        "ipamd"
    }

    fn urls(&self) -> Vec<String> {
        self.0.urls().iter().map(|url| format!("{url}/v1/allocations")).collect()
    }

    fn body(&self) -> fn() -> Value {
        allocation
    }

    fn prepare(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            self.0.ready().await?;
            self.0.make_pool().await
        })
    }

    fn leader(&self) -> BoxFuture<'_, Result<usize>> {
        Box::pin(async { self.0.leader().await.map(|(at, _)| at).context("ipamd has no leader") })
    }

    fn kill(&mut self, at: usize) -> Result<()> {
        self.0.kill(at)
    }

    fn pause(&mut self, at: usize, is_paused: bool) -> Result<()> {
        self.0.signal(at, if is_paused { Signal::STOP } else { Signal::CONT })
    }

    fn restart(&mut self, at: usize) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.0.start(at)?;
            self.0.ready().await
        })
    }
}
