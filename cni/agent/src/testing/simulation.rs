//! Simulation: time and randomness of agents, in place of those of the kernel.

use std::cell::Cell;

/// Sources of a simulation, in place of those of the kernel.
#[derive(Debug, Clone, Copy)]
pub struct Simulation {
    /// Draws a random number.
    pub random: fn() -> u64,
    /// Returns the microseconds since the boot of the machine.
    pub boot_us: fn() -> u64,
}

thread_local! {
    /// Simulation that runs on this thread.
    static SIMULATION: Cell<Option<Simulation>> = const { Cell::new(None) };
}

/// Makes all agents of this thread use the sources of a simulation, and no blocking thread.
///
/// A result of another thread would arrive at a time that the simulation does not control.
pub fn simulate(simulation: Simulation) {
    SIMULATION.set(Some(simulation));
}

/// Simulation that runs on this thread, if one does.
pub(crate) fn present() -> Option<Simulation> {
    SIMULATION.get()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;
    use ipam_api::agent::Netns;

    use super::*;
    use crate::backoff::jittered;
    use crate::boot;
    use crate::netns::is_gone;

    #[test]
    fn an_agent_in_a_simulation_has_the_sources_and_the_thread_of_the_simulation() {
        // The simulation ends with the thread.
        let simulated = std::thread::spawn(|| {
            simulate(Simulation { random: || 255, boot_us: || 7 });
            assert_eq!(boot::now("b1").at_us, 7);
            assert_eq!(jittered(Duration::from_secs(2)), Duration::from_secs(2));
            simulate(Simulation { random: || 0, boot_us: || 8 });
            assert_eq!(jittered(Duration::from_secs(2)), Duration::from_secs(1));
            // Without a runtime, there is no blocking thread.
            let netns = Netns { device: 0, inode: 0, path: "/".to_owned() };
            assert_eq!(is_gone(&netns).now_or_never(), Some(true));
        });
        simulated.join().unwrap();
    }
}
