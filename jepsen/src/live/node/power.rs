//! Power of a host with an agent. Live and simulated hosts lose it in the same way.

use anyhow::{Result, bail};
use tokio::sync::watch;

/// Power of a host, which workloads and faults share.
#[derive(Debug)]
pub(crate) struct Power(watch::Sender<State>);

#[derive(Debug, Clone, Copy)]
struct State {
    is_on: bool,
    /// Number of losses so far.
    losses: u64,
}

impl Default for Power {
    /// Power that is on.
    fn default() -> Self {
        Self(watch::Sender::new(State { is_on: true, losses: 0 }))
    }
}

impl Power {
    /// Returns true unless the power is lost.
    pub(crate) fn is_on(&self) -> bool {
        self.0.borrow().is_on
    }

    /// Fails while the power is lost.
    pub(crate) fn check(&self, host: &str) -> Result<()> {
        if !self.is_on() {
            bail!("the host {host} has no power");
        }
        Ok(())
    }

    /// Turns the power off. Work of [`Self::run`] ends at once.
    pub(crate) fn lose(&self) {
        self.0.send_modify(|state| {
            state.is_on = false;
            state.losses += 1;
        });
    }

    /// Turns the power on.
    pub(crate) fn restore(&self) {
        self.0.send_modify(|state| state.is_on = true);
    }

    /// Number of losses so far.
    pub(crate) fn losses(&self) -> u64 {
        self.0.borrow().losses
    }

    /// Runs work of a host, which is dropped if the power is lost meanwhile.
    pub(crate) async fn run<T>(&self, host: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
        let mut power = self.0.subscribe();
        self.check(host)?;
        tokio::select! {
            biased;
            _ = power.wait_for(|state| !state.is_on) => bail!("the host {host} lost its power"),
            done = work => done,
        }
    }
}
