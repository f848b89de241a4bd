//! Clients that allocate without a pause, and the times of accepted writes.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;
use ipam_api::client::{Call, Client};
use ipam_api::problem::Applied;
use ipam_api::request::Allocated;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::POOL;
use crate::sync::held;

/// The time for one write, its repetitions included.
const PATIENCE: Duration = Duration::from_secs(8);
/// The pause after a refusal.
const PAUSE: Duration = Duration::from_millis(5);
/// The pause between two polls.
const LOOK: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
struct Seen {
    accepted: u64,
    /// The begin and the end of the accepted write that began last.
    last: Option<(Instant, Instant)>,
    refusal: String,
}

/// Running writers. Dropping the value ends them.
#[derive(Debug)]
pub(super) struct Writers {
    seen: Arc<Mutex<Seen>>,
    tasks: JoinSet<()>,
}

impl Writers {
    /// Starts `count` writers; each knows all servers, in an order of its own.
    pub(super) fn start(count: usize, urls: &[String]) -> Result<Self> {
        let seen = Arc::default();
        let mut tasks = JoinSet::new();
        for number in 0..count {
            let mut urls = urls.to_vec();
            let first = number % urls.len().max(1);
            urls.rotate_left(first);
            tasks.spawn(write(Client::new(&urls)?, Arc::clone(&seen)));
        }
        Ok(Self { seen, tasks })
    }

    /// Waits for this many accepted writes; returns the time of the last one, or nothing at the deadline.
    pub(super) async fn accepted(&self, more: u64, deadline: Instant) -> Result<Option<Instant>> {
        let goal = held(&self.seen).accepted + more;
        self.until(deadline, |seen| seen.accepted >= goal).await
    }

    /// Waits for an accepted write that began after a time. Returns the time of its answer, or nothing at the
    /// deadline.
    pub(super) async fn accepted_after(&self, after: Instant, deadline: Instant) -> Result<Option<Instant>> {
        self.until(deadline, |seen| seen.last.is_some_and(|(begun, _)| begun >= after)).await
    }

    async fn until(&self, deadline: Instant, reached: impl Fn(&Seen) -> bool) -> Result<Option<Instant>> {
        while Instant::now() < deadline {
            {
                let seen = held(&self.seen);
                if reached(&seen) {
                    return Ok(seen.last.map(|(_, ended)| ended));
                }
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(None)
    }

    /// The answer to the write that was refused last.
    pub(super) fn refusal(&self) -> String {
        held(&self.seen).refusal.clone()
    }

    /// Stops them in the middle of their writes.
    pub(super) async fn stop(&mut self) {
        self.tasks.shutdown().await;
    }
}

async fn write(client: Client, seen: Arc<Mutex<Seen>>) {
    loop {
        let begun = Instant::now();
        let Ok(call) = Call::post("/v1/allocations").json(&allocation()) else { return };
        match client.call::<Allocated>(call.within(PATIENCE)).await {
            Ok(_) => {
                let mut seen = held(&seen);
                seen.accepted += 1;
                if seen.last.is_none_or(|(last, _)| last < begun) {
                    seen.last = Some((begun, Instant::now()));
                }
            }
            Err(problem) => {
                held(&seen).refusal = problem.to_string();
                let unknown = problem.applied != Applied::No;
                tokio::time::sleep(if unknown { LOOK } else { PAUSE }).await;
            }
        }
    }
}

/// Request for one address of [`POOL`] for another endpoint each time.
pub(crate) fn allocation() -> Value {
    let name = uuid::Uuid::new_v4().to_string();
    let interfaces = json!([{"name": "eth0", "ipv4_pools": [POOL]}]);
    json!({"endpoint": {"kind": "host", "name": name}, "interfaces": interfaces})
}
