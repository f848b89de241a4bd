//! System: executes faults.

use anyhow::Result;
use futures::future::BoxFuture;

use super::{Fault, View};

/// System under test, as a nemesis sees it. Several faults may be active at the same time.
pub trait System: Send {
    /// Returns its present state.
    fn view(&mut self) -> BoxFuture<'_, View>;

    /// Injects a fault and returns the evidence that it took hold, such as an exit status.
    fn inject<'a>(&'a mut self, fault: &'a Fault) -> BoxFuture<'a, Result<Vec<String>>>;

    /// Heals a fault and returns further evidence, such as the number of dropped frames.
    fn heal<'a>(&'a mut self, fault: &'a Fault) -> BoxFuture<'a, Result<Vec<String>>>;
}
