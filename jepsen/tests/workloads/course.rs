//! Course of a run without faults: sessions work, settle and end; then the states are collected.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use ipam_api::client::{Call, Client};
use ipam_api::cluster::Cluster as Shown;
use ipam_api::event::{Event, EventPage};
use ipam_api::resource::Page;
use ipam_jepsen::Random;
use ipam_jepsen::checker::{Final, Record, Settings};
use ipam_jepsen::history::{Operation, Recorder};
use ipam_jepsen::store;
use ipam_jepsen::workload::{Phase, Session, Workload};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::cluster::Cluster;

/// Longest time of work, on a slow and busy machine.
const TIME_MAX: Duration = Duration::from_secs(180);
/// Time in which sessions must return after their work.
const SETTLE: Duration = Duration::from_secs(30);
/// Time in which all members reach one state.
const EQUAL: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(10);

/// Lines of a history in memory.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// Complete lines until now.
    fn history(&self) -> Result<Vec<Operation>> {
        let mut text = self.0.lock().map_err(|_| anyhow::anyhow!("a writer has panicked"))?.clone();
        text.truncate(text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
        let lines = serde_json::Deserializer::from_slice(&text).into_iter();
        Ok(lines.collect::<Result<_, _>>()?)
    }
}

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut lines = self.0.lock().map_err(|_| std::io::Error::other("a writer has panicked"))?;
        lines.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs all sessions of these workloads until their history is `enough`, at most for [`TIME_MAX`].
pub(crate) async fn run(
    cluster: &Cluster,
    workloads: Vec<Box<dyn Workload>>,
    enough: impl Fn(&[Operation]) -> bool,
) -> Result<Record> {
    let lines = Lines::default();
    let recorder = Recorder::new(Box::new(lines.clone()));
    let servers = cluster.servers()?;
    let (phases, phase) = watch::channel(Phase::Work);
    let seed = u64::from(std::process::id());
    let mut random = Random::new(seed);
    let mut sessions = JoinSet::new();
    let settings = Settings {
        seed,
        workloads: workloads.iter().map(|workload| workload.name().to_owned()).collect(),
        members: servers.each.len(),
        is_complete: true,
        ..Settings::default()
    };
    for workload in &workloads {
        workload.prepare(&*servers.all).await.with_context(|| workload.name())?;
    }
    for workload in workloads.into_iter().map(Arc::<dyn Workload>::from) {
        for number in 0..workload.sessions() {
            let random = Random::new(random.number());
            let (recorder, servers, phase) = (recorder.clone(), servers.clone(), phase.clone());
            let session = Session::new(workload.name(), number, random, recorder, servers, None, phase);
            let workload = Arc::clone(&workload);
            sessions.spawn(async move { workload.run(session).await });
        }
    }
    let deadline = tokio::time::Instant::now() + TIME_MAX;
    while tokio::time::Instant::now() < deadline && !enough(&lines.history()?) {
        tokio::time::sleep(LOOK * 5).await;
    }
    phases.send_replace(Phase::Settle);
    let settled = async {
        while let Some(ended) = sessions.join_next().await {
            ended?;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(SETTLE, settled).await.context("a session does not return")??;
    recorder.finish()?;
    let history = lines.history()?;
    let clients = cluster.each()?;
    let finals = finals(&clients).await?;
    let (_, first) = clients.first().context("no member")?;
    Ok(Record { settings, history, journal: journal(first).await?, finals, ..Record::default() })
}

/// Stores a run for `ipam-jepsen check`.
pub(crate) fn keep(record: &Record, dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir)?;
    let mut lines = Vec::new();
    for operation in &record.history {
        serde_json::to_writer(&mut lines, operation)?;
        lines.push(b'\n');
    }
    std::fs::write(dir.join(store::HISTORY), lines)?;
    store::write(dir, record)
}

async fn journal(client: &Client) -> Result<Vec<Event>> {
    let (mut events, mut after) = (Vec::new(), None::<String>);
    loop {
        let mut call = Call::get("/v1/events?limit=1000").within(PATIENCE);
        if let Some(after) = &after {
            call = call.query("after", after);
        }
        let page: EventPage = client.call(call).await?;
        events.extend(page.items);
        after = page.next;
        if after.is_none() {
            return Ok(events);
        }
    }
}

/// States of all members, once leases expire no more and no member has applied an entry meanwhile.
async fn finals(clients: &[(String, Client)]) -> Result<Vec<Final>> {
    let deadline = tokio::time::Instant::now() + EQUAL;
    loop {
        let mut finals = Vec::new();
        for (name, client) in clients {
            let shown: Shown = client.call(Call::get("/v1/cluster").within(PATIENCE)).await?;
            finals.push(Final {
                time_ns: 0,
                member: name.clone(),
                applied: shown.applied,
                revision: shown.revision,
                digest: shown.digest,
                allocations: list(client, "allocations").await?,
                prefixes: list(client, "prefixes").await?,
                pools: list(client, "pools").await?,
            });
        }
        let mut after = Vec::new();
        for (_, client) in clients {
            let shown: Shown = client.call(Call::get("/v1/cluster").within(PATIENCE)).await?;
            after.push((shown.applied, shown.revision));
        }
        let places: Vec<_> = finals.iter().map(|one| (one.applied, one.revision)).collect();
        if places == after && places.iter().min() == places.iter().max() {
            return Ok(finals);
        }
        if tokio::time::Instant::now() > deadline {
            bail!("the members have no common state: {places:?}, then {after:?}");
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn list<T: DeserializeOwned>(client: &Client, plural: &str) -> Result<Vec<T>> {
    let (mut items, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut call = Call::get(format!("/v1/{plural}?limit=1000&consistency=stale")).within(PATIENCE);
        if let Some(cursor) = &cursor {
            call = call.query("cursor", cursor);
        }
        let page: Page<T> = client.call(call).await?;
        items.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(items);
        }
    }
}
