//! Writers of the load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use ipam_api::Problem;
use ipam_api::client::{Call, Client};
use ipam_api::problem::Applied;
use ipam_api::request::{Allocated, Released};
use ipam_api::transaction::TransactionAnswer;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::POOL;
use super::ledger::{Change, Given, Ledger};
use crate::sync::held;

/// Number of writers, enough that requests always wait for the log.
const WRITERS: usize = 12;
/// Addresses of one request by writer: single ones as most clients send, and many in one transaction.
const SIZES: [usize; 4] = [1, 40, 1, 8];
/// Timeout of a writer's request.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause after a refusal, so that a stopped cluster isn't flooded.
const PAUSE: Duration = Duration::from_millis(5);
/// Longest time without an acknowledgement while writers run.
const STALL: Duration = Duration::from_secs(30);

/// A ledger that all writers write into.
pub(super) type Shared = Arc<Mutex<Ledger>>;

/// Running writers. Dropping the value ends them.
#[derive(Debug)]
pub(super) struct Load {
    ledger: Shared,
    stop: Arc<AtomicBool>,
    writers: JoinSet<Result<()>>,
    /// Last refusal that a writer got.
    refusal: Arc<Mutex<String>>,
}

impl Load {
    /// Starts the writers. Each writer uses all servers, and begins with a different one.
    pub(super) fn start(urls: &[String], ledger: &Shared) -> Result<Self> {
        let (stop, refusal) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let mut writers = JoinSet::new();
        for (number, size) in (0..WRITERS).zip(SIZES.into_iter().cycle()) {
            let mut urls = urls.to_vec();
            let first = number % urls.len().max(1);
            urls.rotate_left(first);
            let writer = Writer {
                client: Client::new(&urls)?,
                size,
                ledger: Arc::clone(ledger),
                stop: Arc::clone(&stop),
                refusal: Arc::clone(&refusal),
            };
            writers.spawn(writer.run());
        }
        Ok(Self { ledger: Arc::clone(ledger), stop, writers, refusal })
    }

    /// Waits for this many further acknowledgements; returns the writers' last refusal if there are none.
    pub(super) async fn get_on(&mut self, more: u64) -> Result<Result<(), String>> {
        let goal = held(&self.ledger).acknowledged() + more;
        let (mut last, mut moved) = (0, Instant::now());
        loop {
            let reached = held(&self.ledger).acknowledged();
            if reached >= goal {
                return Ok(Ok(()));
            }
            if reached > last {
                (last, moved) = (reached, Instant::now());
            }
            if moved.elapsed() > STALL {
                return Ok(Err(held(&self.refusal).clone()));
            }
            if let Some(ended) = self.writers.try_join_next() {
                ended??;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Lets each writer end its request, without beginning another.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Stops all writers, and waits for their end.
    pub(super) async fn finish(mut self) -> Result<()> {
        self.stop();
        while let Some(ended) = self.writers.join_next().await {
            ended??;
        }
        Ok(())
    }
}

struct Writer {
    client: Client,
    size: usize,
    ledger: Shared,
    stop: Arc<AtomicBool>,
    refusal: Arc<Mutex<String>>,
}

impl Writer {
    async fn run(self) -> Result<()> {
        while !self.stop.load(Ordering::Relaxed) {
            let (number, change) = held(&self.ledger).begin(self.size);
            match self.change(&change).await {
                Ok(given) => {
                    if matches!(&change, Change::Give(names) if names.len() != given.len()) {
                        bail!("{change:?} was acknowledged with {given:?}");
                    }
                    held(&self.ledger).acknowledge(number, given);
                }
                Err(problem) => {
                    if problem.applied == Applied::No {
                        held(&self.ledger).undo(number);
                    }
                    *held(&self.refusal) = problem.to_string();
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        Ok(())
    }

    /// Sends the change: a single address in a request of its own, several in one transaction.
    async fn change(&self, change: &Change) -> Result<Vec<Given>, Problem> {
        match change {
            Change::Give(names) => {
                let answers: Vec<Allocated> = match names.as_slice() {
                    [name] => {
                        vec![self.client.call(post("/v1/allocations", &allocate_request(name))?).await?]
                    }
                    names => {
                        let step = |body| json!({"method": "POST", "path": "/v1/allocations", "body": body});
                        self.transaction(names.iter().map(|name| step(allocate_request(name))).collect())
                            .await?
                    }
                };
                Ok(names.iter().zip(&answers).filter_map(|(name, answer)| given(name, answer)).collect())
            }
            Change::TakeBack(taken) => {
                let path = |given: &Given| format!("/v1/allocations/{}", given.id);
                if let [given] = taken.as_slice() {
                    self.client.call::<Released>(Call::delete(path(given)).within(PATIENCE)).await?;
                } else {
                    let step = |path| json!({"method": "DELETE", "path": path});
                    self.transaction::<Released>(taken.iter().map(|given| step(path(given))).collect())
                        .await?;
                }
                Ok(Vec::new())
            }
        }
    }

    async fn transaction<T: serde::de::DeserializeOwned>(
        &self,
        steps: Vec<Value>,
    ) -> Result<Vec<T>, Problem> {
        let call = post("/v1/transactions", &json!({"steps": steps}))?;
        let answer: TransactionAnswer<T> = self.client.call(call).await?;
        Ok(answer.results.into_iter().filter_map(|result| result.body).collect())
    }
}

/// Returns a POST request that the client doesn't retry. The ledger determines the outcome of lost answers.
fn post(path: &str, body: &Value) -> Result<Call, Problem> {
    Ok(Call::post(path).json(body)?.within(PATIENCE))
}

fn allocate_request(name: &str) -> Value {
    json!({"endpoint": {"kind": "host", "name": name}, "interfaces": [{"name": "eth0", "ipv4_pools": [POOL]}]})
}

fn given(name: &str, answer: &Allocated) -> Option<Given> {
    let given = answer.interfaces.first()?.addresses.first()?;
    Some(Given { id: given.allocation, name: name.to_owned(), address: given.address.addr() })
}

/// All allocations as a member shows them.
pub(super) async fn allocations(client: &Client) -> Result<Vec<Given>> {
    use ipam_api::resource::{Allocation, Page};
    let mut found = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut call = Call::get("/v1/allocations?limit=1000").within(STALL);
        if let Some(cursor) = &cursor {
            call = call.query("cursor", cursor);
        }
        let page: Page<Allocation> = client.call(call).await.context("the allocations can't be read")?;
        found.extend(page.items.into_iter().map(|item| Given {
            id: item.id,
            name: item.endpoint.name.as_str().to_owned(),
            address: item.address.addr(),
        }));
        cursor = page.next;
        if cursor.is_none() {
            return Ok(found);
        }
    }
}
