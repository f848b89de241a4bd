//! Simulation: a whole run in one thread, with time, network and randomness from a seed.
//!
//! Members are the daemon's own node, handlers and tasks; only sockets, threads, clocks and reboots are
//! simulated ([turmoil](https://docs.rs/turmoil)). Agents are likewise their own tasks, routes and journals,
//! and a run of the plugin is its own operation. Workloads, nemeses, driver and checkers are those of live
//! runs. A seed determines a run, so a failure is repeated by its seed.
//!
//! The kernel of a node is a model: power, a file for each network namespace, and a link whose stations
//! answer probes.

mod agent;
mod agent_socket;
mod bench;
mod case;
mod coverage;
mod disks;
mod faults;
mod lan;
mod machines;
mod member;
mod network;
mod node;
mod node_faults;
mod plugin;
mod process;
mod replay;
mod run;
mod series;
mod shrink;
mod supervisor;
mod throttle;

pub use self::case::{Case, idle_nemeses, workloads};
pub use self::coverage::shortfalls;
pub use self::disks::sweep;
pub use self::faults::NEMESES;
pub use self::process::{SimulatedRun, run_case, simulate};
pub use self::replay::compare;
pub use self::series::{Series, read_all};
pub use self::shrink::smaller;

/// Version of the programs under test in the settings of a run.
const VERSION: &str = "simulated";
