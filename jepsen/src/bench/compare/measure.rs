//! One round of one measurement with one system.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::measurement::{Kind, Measurement};
use super::plan::Plan;
use crate::bench::lab::{Lab, Subject, count, run};
use crate::bench::load::{Answer, Call, Client, Load, Measured, Process, Times, burst, closed, open};
use crate::bench::wire::Channel;
use crate::bench::workload::{Allocate, Heartbeat, Put, Workload, burst_clients, million, resident_bytes};
use crate::failover::{self, Fault, System};

/// Clients of the bulk load.
const BULK_CLIENTS: usize = 4;
/// Clients of a burst.
const PODS: usize = 1000;
/// Clients of the closed loop that finds the rate for an overload.
const CLIENTS: usize = 256;
/// Clients that share the doubled rate, more than are served at a time.
const OVERLOADING_CLIENTS: usize = 900;
/// Clients of a failover.
const FAILOVER_CLIENTS: usize = 4;
/// Interval of the heartbeats of an agent.
const HEARTBEAT: Duration = Duration::from_millis(ipam_api::limits::HEARTBEAT_INTERVAL_MS);

/// Measures one system once.
pub(super) async fn measure(
    measurement: Measurement,
    subject: Subject,
    lab: &mut Lab,
    plan: Plan,
) -> Result<Measured> {
    match measurement.kind {
        Kind::Closed(workload, clients) => {
            let (clients, processes) = workload.clients(lab, subject, clients).await?;
            Ok(Measured::of(closed(clients, plan.times, &processes).await))
        }
        Kind::Bulk => bulk(lab, subject, plan.bulk).await,
        Kind::Burst => at_once(lab, subject).await,
        Kind::Add(is_many) => adds(lab, subject, if is_many { plan.attachments } else { 0 }, plan.adds).await,
        Kind::Syscalls => syscalls(lab, subject, plan.times).await,
        Kind::Overload => overload(lab, subject, plan.times).await,
        Kind::Million => million(lab, plan.held, plan.listen).await,
        Kind::Failover => failover(lab, subject).await,
        Kind::AgentAtRest => agent_at_rest(lab, plan).await,
        Kind::Heartbeats => heartbeats(lab, plan).await,
    }
}

/// Bulk load of a cluster of its own, since it leaves millions of addresses behind.
async fn bulk(lab: &mut Lab, subject: Subject, times: Times) -> Result<Measured> {
    let cluster = lab.fresh_ipamd(subject).await?;
    let clients = Workload::Bulk.of_ipamd(&cluster, BULK_CLIENTS).await?;
    Ok(Measured::of(closed(clients, times, &cluster.processes().await?).await))
}

/// One call of each of a thousand clients with open connections to all members.
async fn at_once(lab: &mut Lab, subject: Subject) -> Result<Measured> {
    let (clients, processes) = if subject == Subject::Etcd {
        let etcd = lab.etcd().await?;
        let mut clients: Vec<Box<dyn Client>> = Vec::new();
        for server in etcd.servers().await?.iter().cycle().take(PODS) {
            clients.push(Box::new(Put::new(Channel::open(*server).await?)));
        }
        (clients, etcd.processes().await?)
    } else {
        let cluster = lab.ipamd(subject).await?;
        (burst_clients(&cluster.servers().await?).await?, cluster.processes().await?)
    };
    Ok(Measured::of(burst(clients, &processes).await))
}

/// ADDs of a plugin, each followed by its DEL, so that the node holds as much as before.
async fn adds(lab: &mut Lab, subject: Subject, held: usize, adds: usize) -> Result<Measured> {
    let plugin = lab.plugin(subject, held).await?;
    let (mut load, begun) = (Load::default(), Instant::now());
    for number in 0..adds {
        let container = format!("c-{number}");
        load.latency.add(run(plugin, "ADD", &container).await?);
        load.operations += 1;
        run(plugin, "DEL", &container).await?;
    }
    load.elapsed = begun.elapsed();
    Ok(Measured::of(load))
}

/// System calls of one follower for each allocation of one client, which is an entry of its own.
async fn syscalls(lab: &mut Lab, subject: Subject, times: Times) -> Result<Measured> {
    let (clients, processes) = Workload::Allocate.clients(lab, subject, 1).await?;
    let follower = processes.iter().find(|process| process.name == "follower").context("no follower")?.pid;
    let counted = async {
        tokio::time::sleep(times.warm_up).await;
        count(follower, times.measured).await
    };
    let (load, counted) = tokio::join!(closed(clients, times, &processes), counted);
    let (tool, counts) = counted.context("system calls can't be counted")?;
    eprintln!("counted by {tool}");
    let entries = load.throughput() * times.measured.as_secs_f64();
    let mut measured = Measured::of(load);
    for (name, count) in counts {
        #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
        measured.add(&format!("{name}-per-entry"), count as f64 / entries.max(1.0));
    }
    Ok(measured)
}

/// Twice the rate that a closed loop reaches, and the latency of accepted requests.
async fn overload(lab: &mut Lab, subject: Subject, times: Times) -> Result<Measured> {
    let (clients, processes) = Workload::Allocate.clients(lab, subject, CLIENTS).await?;
    let usual = closed(clients, times, &processes).await;
    let rate = u32::try_from(2 * usual.operations / usual.elapsed.as_secs().max(1))?;
    let servers = lab.ipamd(subject).await?.servers().await?;
    let leader = *servers.first().context("no server")?;
    let client = |_| Box::new(Timed(Allocate::new(leader, &["large"]))) as Box<dyn Client>;
    let clients = (0..OVERLOADING_CLIENTS).map(client).collect();
    let overloaded = open(clients, rate, times, &processes, std::future::ready(())).await;
    let mut measured = Measured::default();
    measured.add_load("usual", usual);
    measured.add_load("overloaded", overloaded);
    Ok(measured)
}

/// Loses the leader of a cluster of its own twice, by SIGKILL and by SIGSTOP.
async fn failover(lab: &mut Lab, subject: Subject) -> Result<Measured> {
    let dir = lab.fresh_dir("failover");
    let mut system: Box<dyn System> = match subject {
        Subject::Etcd => {
            let unpacked = lab.programs.etcd.clone().context("no --etcd")?;
            Box::new(failover::Etcd::start(&dir, &unpacked)?)
        }
        Subject::Ipamd | Subject::Against => {
            Box::new(failover::Ipamd::start(&dir, lab.program(subject, "ipamd")?)?)
        }
        Subject::HostLocal => bail!("host-local has no leader"),
    };
    system.prepare().await?;
    let mut measured = Measured::default();
    for (fault, figure) in [(Fault::Kill, "kill-gap-s"), (Fault::Pause, "pause-gap-s")] {
        let gap = failover::round(&mut *system, fault, FAILOVER_CLIENTS).await?;
        measured.add(figure, gap.as_secs_f64());
    }
    Ok(measured)
}

/// Memory and CPU time of an agent with attachments and nothing to do.
async fn agent_at_rest(lab: &mut Lab, plan: Plan) -> Result<Measured> {
    lab.plugin(Subject::Ipamd, plan.attachments).await?;
    let pid = lab.agent_pid(plan.attachments).context("no agent")?;
    let agent = Process { name: "agent".to_owned(), pid };
    let before = agent.cpu();
    tokio::time::sleep(plan.rest).await;
    let share = (agent.cpu() - before).as_secs_f64() / plan.rest.as_secs_f64();
    let mut measured = Measured::default();
    measured.add("cpu-percent", share * 100.0);
    #[expect(clippy::cast_precision_loss, reason = "bytes far below 2^53")]
    measured.add("resident-mib", resident_bytes(pid)? as f64 / f64::from(1 << 20));
    Ok(measured)
}

/// CPU share of the leader with the heartbeats of many agents, less its share without them.
async fn heartbeats(lab: &mut Lab, plan: Plan) -> Result<Measured> {
    let cluster = lab.fresh_ipamd(Subject::Ipamd).await?;
    let processes = cluster.processes().await?;
    let leader = processes.iter().find(|process| process.name == "leader").context("no leader")?;
    let server = *cluster.servers().await?.first().context("no server")?;
    let before = leader.cpu();
    tokio::time::sleep(plan.rest).await;
    let idle = (leader.cpu() - before).as_secs_f64() / plan.rest.as_secs_f64();
    let agents = (0..plan.agents).map(|number| Heartbeat::new(server, number, "10.0.0.0/8"));
    let agents: Vec<Box<dyn Client>> =
        agents.map(|agent| agent.map(|agent| Box::new(agent) as _)).collect::<Result<_>>()?;
    let rate = u32::try_from(plan.agents)? * 1000 / u32::try_from(HEARTBEAT.as_millis())?;
    // The first heartbeat of each node creates rows, so that only the later heartbeats are measured.
    let warm_up = if plan.rest < HEARTBEAT { plan.rest } else { HEARTBEAT * 3 / 2 };
    let times = Times { warm_up, measured: plan.rest };
    let load = open(agents, rate.max(1), times, &processes, std::future::ready(())).await;
    let busy = load.usage.cpu_of("leader").as_secs_f64() / load.elapsed.as_secs_f64();
    let mut measured = Measured::of(load);
    measured.add("leader-percent", (busy - idle) * 100.0);
    Ok(measured)
}

/// Client that lets a refusal count as an answer: in an overload the next call is due already.
struct Timed(Allocate);

impl Client for Timed {
    fn call(&mut self) -> Call<'_> {
        Box::pin(async {
            Ok(match self.0.call().await? {
                Answer::Refused(_) => Answer::Refused(Duration::ZERO),
                done @ Answer::Done(_) => done,
            })
        })
    }
}
