//! One run in this process: hosts under turmoil, and the driver on the host of the clients.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, anyhow};
use ipam_raft::simulation::{Simulation, enter, new_id, simulate_next_level};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use super::agent::{self, AgentHost};
use super::bench::{CLIENT_HOST, SimBench};
use super::faults::DELAY_MAX;
use super::lan::Lan;
use super::machines::{self, EPOCH_MS, Machine, Machines};
use super::member::{self, End};
use super::node::SimNode;
use super::supervisor::{Command, Supervisor};
use super::{VERSION, disks, network};
use crate::cluster::Cause;
use crate::live::run::{Bench as _, Plan, Recorded};
use crate::sync::held;

/// Simulated time within which a run ends in any case.
const TIME_MAX: Duration = Duration::from_secs(24 * 3600);
/// Step in which the hosts take turns. Messages arrive at the begin of a step.
const TICK: Duration = Duration::from_millis(4);
/// Time limit of the founding.
const FOUNDED: Duration = Duration::from_secs(60);
/// Messages that a stream holds.
const STREAM_MESSAGES_MAX: usize = 4096;
/// Hosts with an agent, with their numbers on the link.
const NODES: [(&str, u8); 2] = [("c1", 11), ("c2", 12)];

/// Makes a run and stores it in the directory of its plan.
///
/// # Errors
/// If the run can't be made.
pub(super) fn run(plan: &Plan) -> Result<()> {
    let _logging = log(plan)?;
    let disks = disks::create()?;
    install_sources(plan);
    let mut sim = turmoil::Builder::new()
        .epoch(SystemTime::UNIX_EPOCH + Duration::from_millis(EPOCH_MS))
        .simulation_duration(TIME_MAX)
        .tick_duration(TICK)
        .max_message_latency(DELAY_MAX)
        .tcp_capacity(STREAM_MESSAGES_MAX)
        .rng_seed(plan.seed)
        .build();
    let (supervisor, machines) = (Supervisor::default(), Machines::default());
    let names: Vec<String> = (1..=plan.members).map(|number| format!("n{number}")).collect();
    let founder = |name: &String| {
        let others = names.iter().filter(|other| *other != name).cloned().collect();
        Machine { name: name.clone(), dir: disks.path().join(name), others, joins: false }
    };
    let founders: Vec<Machine> = names.iter().map(founder).collect();
    for founder in &founders {
        machines.put(founder.clone());
        add_host(&mut sim, &founder.name, &machines, &supervisor);
    }
    let (mut nodes, lan, dir) = (Vec::new(), Lan::default(), disks.path().to_owned());
    // Without such a workload, the links and ticks of these hosts would only cost time.
    if plan.chosen_workloads()?.iter().any(|workload| workload.needs_node()) {
        let servers: Vec<String> = names.iter().map(|name| network::url(name)).collect();
        nodes = add_nodes(&mut sim, &servers, &dir, &lan, &supervisor)?;
    }
    let mut bench =
        SimBench::new(&founders, (nodes, lan), machines.clone(), supervisor.clone(), dir, plan.seed);
    let result = Arc::new(Mutex::new(None));
    let (ended, plan) = (Arc::clone(&result), plan.clone());
    sim.client(CLIENT_HOST, async move {
        let done = drive(&plan, &mut bench).await;
        *held(&ended) = Some(done);
        Ok(())
    });
    while !sim.step().map_err(|error| anyhow!("{error}"))? {
        while let Some(command) = supervisor.next() {
            match command {
                Command::Add(name) => add_host(&mut sim, &name, &machines, &supervisor),
                Command::Crash(name) => sim.crash(name),
                Command::Start(name) => sim.bounce(name),
                Command::Delay(one, other, longest) => sim.set_link_max_message_latency(one, other, longest),
            }
        }
    }
    let done = held(&result).take();
    done.context("the driver has not ended")?
}

/// Replaces the time, randomness, boots and network of this thread by those of a simulation.
fn install_sources(plan: &Plan) {
    enter(Simulation { seed: plan.seed, connect: network::connect, boot_id: machines::boot_id });
    ipam_api::time::simulate(machines::wall_ms);
    simulate_next_level(machines::knows_next_level);
    ipam_api::client::simulate(Arc::new(network::Hosts));
    let random = || new_id().as_u64_pair().0;
    ipam_agent::testing::simulate(ipam_agent::testing::Simulation { random, boot_us: machines::boot_us });
}

/// Writes the log lines of all members and agents to a file of the run, as long as the guard lives.
fn log(plan: &Plan) -> Result<Option<DefaultGuard>> {
    let Some(filter) = &plan.log else { return Ok(None) };
    let dir = plan.store.join("logs");
    std::fs::create_dir_all(&dir)?;
    let file = std::fs::File::create(dir.join("simulation.log"))?;
    let filter = EnvFilter::try_new(filter).with_context(|| format!("the filter {filter}"))?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_timer(Clock);
    let lines = lines.with_writer(Mutex::new(file)).finish();
    Ok(Some(tracing::subscriber::set_default(lines)))
}

/// Simulated time in log lines.
struct Clock;

impl FormatTime for Clock {
    fn format_time(&self, line: &mut Writer<'_>) -> std::fmt::Result {
        let elapsed = turmoil::sim_elapsed().unwrap_or_default();
        write!(line, "{:9.3}", elapsed.as_secs_f64())
    }
}

fn add_host(sim: &mut turmoil::Sim<'_>, name: &str, machines: &Machines, supervisor: &Supervisor) {
    let (machines, supervisor, host) = (machines.clone(), supervisor.clone(), name.to_owned());
    sim.host(name, move || {
        let (machine, supervisor, host) = (machines.get(&host), supervisor.clone(), host.clone());
        async move {
            let end = match machine {
                Some(machine) => member::run(&machine).await,
                None => End::new(Cause::Other, "a host without a machine"),
            };
            supervisor.note_end(&host, end);
            Ok(())
        }
    });
}

/// Adds the hosts with agents, which send requests to these servers.
fn add_nodes(
    sim: &mut turmoil::Sim<'_>,
    servers: &[String],
    disks: &Path,
    lan: &Lan,
    supervisor: &Supervisor,
) -> Result<Vec<Arc<SimNode>>> {
    let mut nodes = Vec::new();
    for (name, number) in NODES {
        let host = AgentHost { name: name.to_owned(), number, dir: disks.join(name) };
        nodes.push(Arc::new(SimNode::new(host.clone(), servers, lan.clone())?));
        add_agent(sim, host, lan, supervisor);
    }
    Ok(nodes)
}

fn add_agent(sim: &mut turmoil::Sim<'_>, host: AgentHost, lan: &Lan, supervisor: &Supervisor) {
    let (name, lan, supervisor) = (host.name.clone(), lan.clone(), supervisor.clone());
    sim.host(name, move || {
        let (host, lan, supervisor) = (host.clone(), lan.clone(), supervisor.clone());
        async move {
            let end = agent::run(&host, &lan).await;
            supervisor.note_end(&host.name, end);
            Ok(())
        }
    });
}

async fn drive(plan: &Plan, bench: &mut SimBench) -> Result<()> {
    bench.ready(FOUNDED).await.context("the cluster is not founded")?;
    let mut recorded = Recorded::begin(plan, VERSION.to_owned())?;
    let done = recorded.run_on(bench).await;
    recorded.store()?;
    done
}
