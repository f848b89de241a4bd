//! Expensive requests, from clients on one host.

use anyhow::{Context as _, Result};
use tokio::runtime::Runtime;

use crate::cluster::{Costs, Intensity};
use crate::live::lab::Lab;
use crate::nemesis::Cost;

/// Host of the clients.
const HOST: &str = "x1";

/// Clients in progress, with the runtime on their host.
#[derive(Default)]
pub(in crate::live::lab) struct CostClients {
    costs: Costs,
    runtime: Option<Runtime>,
}

impl Drop for CostClients {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Lab {
    pub(in crate::live::lab) fn begin_costs(&mut self, cost: Cost, clients: u8) -> Result<Vec<String>> {
        if self.costs.runtime.is_none() {
            self.costs.runtime = Some(self.host(HOST)?.runtime(1)?);
        }
        let runtime = self.costs.runtime.as_ref().context("no runtime")?;
        let all = (0..clients).map(|_| self.servers(HOST).all()).collect::<Result<_>>()?;
        self.costs.costs =
            Costs::begin(cost, all, Intensity::MOST, |task| runtime.spawn(task).abort_handle());
        Ok(vec![format!("clients: {clients}")])
    }

    pub(in crate::live::lab) fn end_costs(&mut self) -> Vec<String> {
        std::mem::take(&mut self.costs.costs).evidence()
    }
}
