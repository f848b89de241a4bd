//! System under comparison: three members on loopback whose leader can be lost.

use anyhow::Result;
use futures::future::BoxFuture;
use serde_json::Value;

/// Three members of one system. Dropping the value kills all of its processes.
pub(crate) trait System {
    /// Name in the table.
    fn name(&self) -> &'static str;

    /// URLs that accept writes by POST, one for each member.
    fn urls(&self) -> Vec<String>;

    /// Function that makes the body of a write; each call returns the body of another write.
    fn body(&self) -> fn() -> Value;

    /// Waits until all members serve, and prepares them for writes.
    fn prepare(&mut self) -> BoxFuture<'_, Result<()>>;

    /// Position of the leader.
    fn leader(&self) -> BoxFuture<'_, Result<usize>>;

    /// Kills a member (SIGKILL).
    fn kill(&mut self, at: usize) -> Result<()>;

    /// Stops a member (SIGSTOP), or lets it continue (SIGCONT).
    fn pause(&mut self, at: usize, is_paused: bool) -> Result<()>;

    /// Starts a killed member and waits until it serves.
    fn restart(&mut self, at: usize) -> BoxFuture<'_, Result<()>>;
}
