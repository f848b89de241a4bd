//! The most expensive requests that limits allow, from clients on one host.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use ipam_api::Problem;
use ipam_api::client::{Call, Client};
use ipam_api::limits::{PAGE_ITEMS_MAX, TRANSACTION_STEPS_MAX};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use crate::nemesis::Cost;
use crate::sync::held;

/// Time limit of one request.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause after a refusal.
const PAUSE: Duration = Duration::from_millis(50);
/// Pause of a slow reader between two events.
const SLOW: Duration = Duration::from_millis(20);
/// Events until a slow reader begins again.
const EVENTS: usize = 200;
/// Characters of a description: all steps together stay below the limit of a request.
const DESCRIPTION: usize = 800;

/// Size and rate of the requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Intensity {
    /// Steps of a transaction.
    steps: usize,
    /// Pause of a client after each request.
    pause: Duration,
}

impl Intensity {
    /// The most that limits allow.
    pub(crate) const MOST: Self = Self { steps: TRANSACTION_STEPS_MAX, pause: Duration::ZERO };
    /// Lower intensity for a simulation, in which work takes no simulated time.
    pub(crate) const SIMULATED: Self = Self { steps: 64, pause: Duration::from_millis(300) };
}

/// Clients in progress. Dropping them ends them.
#[derive(Default)]
pub(crate) struct Costs {
    tasks: Vec<AbortHandle>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    answered: AtomicU64,
    refused: AtomicU64,
    /// Code of the last refusal.
    refusal: Mutex<String>,
}

impl Drop for Costs {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Costs {
    /// Starts one task for each client.
    pub(crate) fn begin(
        cost: Cost,
        clients: Vec<Client>,
        intensity: Intensity,
        start: impl Fn(BoxFuture<'static, ()>) -> AbortHandle,
    ) -> Self {
        let counts = Arc::new(Counts::default());
        let tasks = clients.into_iter().zip(0..).map(|(client, number)| {
            start(Box::pin(spend(client, cost, number, intensity, Arc::clone(&counts))))
        });
        Self { tasks: tasks.collect(), counts }
    }

    /// Evidence of the requests so far; none without an answer.
    pub(crate) fn evidence(&self) -> Vec<String> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (answered, refused) = (read(&self.counts.answered), read(&self.counts.refused));
        if answered + refused == 0 {
            return Vec::new();
        }
        let mut evidence = vec![format!("answered requests: {answered}")];
        if refused > 0 {
            let last = held(&self.counts.refusal).clone();
            evidence.push(format!("refused requests: {refused}, last by {last}"));
        }
        evidence
    }
}

/// One client, until it is aborted.
async fn spend(client: Client, cost: Cost, number: u8, intensity: Intensity, counts: Arc<Counts>) {
    let Intensity { steps, pause } = intensity;
    for round in 0_u64.. {
        let done = match cost {
            Cost::Transactions => write(&client, number, round, steps, false).await,
            Cost::DryRuns => dry_run(&client, number, round, steps).await,
            Cost::Reads => read(&client, round).await,
            Cost::Streams => stream(&client, &counts).await,
        };
        match done {
            Ok(()) => _ = counts.answered.fetch_add(1, Ordering::Relaxed),
            Err(problem) => {
                counts.refused.fetch_add(1, Ordering::Relaxed);
                *held(&counts.refusal) = format!("{} ({})", problem.code, problem.detail);
                tokio::time::sleep(PAUSE).await;
            }
        }
        tokio::time::sleep(pause).await;
    }
}

/// Transaction over namespaces of this client alone.
async fn write(client: &Client, number: u8, round: u64, steps: usize, is_dry: bool) -> Result<(), Problem> {
    let text = format!("{round} {}", "x".repeat(DESCRIPTION));
    let steps: Vec<Value> = (0..steps)
        .map(|step| {
            let name = format!("costly-{number}-{step}");
            json!({
                "method": "PUT", "path": format!("/v1/namespaces/default/{name}"),
                "body": {"realm": "default", "name": name, "description": text},
            })
        })
        .collect();
    let mut call = Call::post("/v1/transactions").json(&json!({"steps": steps}))?.within(PATIENCE);
    if is_dry {
        call = call.query("dry_run", "true");
    }
    client.send(call).await.map(drop)
}

async fn dry_run(client: &Client, number: u8, round: u64, steps: usize) -> Result<(), Problem> {
    if round.is_multiple_of(2) {
        return write(client, number, round, steps, true).await;
    }
    let body = json!({
        "endpoint": {"kind": "host", "name": format!("costly-{number}")},
        "interfaces": [{"name": "eth0"}],
    });
    let call = Call::post("/v1/allocations/explain").json(&body)?.query("all_skipped", "true");
    client.send(call.within(PATIENCE)).await.map(drop)
}

async fn read(client: &Client, round: u64) -> Result<(), Problem> {
    let items = PAGE_ITEMS_MAX;
    let paths = [
        format!("/v1/allocations?limit={items}&count=true&sort=-updated_at"),
        format!("/v1/networks/default/map?limit={items}"),
        format!("/v1/events?limit={items}&reverse=true"),
        format!("/v1/endpoints?limit={items}&q=a"),
        "/metrics".to_owned(),
    ];
    let at = usize::try_from(round).unwrap_or_default() % paths.len();
    let Some(path) = paths.into_iter().nth(at) else { return Ok(()) };
    client.send(Call::get(path).within(PATIENCE)).await.map(drop)
}

/// Follows all events from the first revision, slowly; each event counts as an answer.
async fn stream(client: &Client, counts: &Counts) -> Result<(), Problem> {
    let mut events = client.events("/v1/events", Some("0.0".to_owned()), PATIENCE);
    for _ in 0..EVENTS {
        events.next().await?;
        counts.answered.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(SLOW).await;
    }
    Ok(())
}
