//! Clients that write with a short timeout and try all servers in turn; the times of accepted writes.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;
use ipam_api::brand::HEADER_BUDGET_MS;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::sync::held;

/// Time for one write at one server.
const PATIENCE: Duration = Duration::from_millis(250);
/// Pause of a client between two writes.
const PAUSE: Duration = Duration::from_millis(20);
/// Pause between two checks of the accepted writes.
const LOOK: Duration = Duration::from_millis(2);

/// Running clients. Dropping the value ends them.
pub(super) struct Clients {
    accepted: Arc<Mutex<Vec<Instant>>>,
    _tasks: JoinSet<()>,
}

impl Clients {
    /// Starts `count` clients; each begins at another server.
    pub(super) fn start(count: usize, urls: &[String], body: fn() -> Value) -> Result<Self> {
        let accepted = Arc::default();
        let mut tasks = JoinSet::new();
        for number in 0..count {
            let mut urls = urls.to_vec();
            let first = number % urls.len().max(1);
            urls.rotate_left(first);
            let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
            tasks.spawn(write(http, urls, body, Arc::clone(&accepted)));
        }
        Ok(Self { accepted, _tasks: tasks })
    }

    /// Times of all accepted writes, in order.
    pub(super) fn accepted(&self) -> Vec<Instant> {
        held(&self.accepted).clone()
    }

    /// Waits until a number of writes after an instant is accepted; false at the deadline.
    pub(super) async fn wait(&self, count: usize, after: Instant, deadline: Instant) -> bool {
        while Instant::now() < deadline {
            if held(&self.accepted).iter().rev().take_while(|at| **at > after).count() >= count {
                return true;
            }
            tokio::time::sleep(LOOK).await;
        }
        false
    }
}

async fn write(
    http: reqwest::Client,
    urls: Vec<String>,
    body: fn() -> Value,
    accepted: Arc<Mutex<Vec<Instant>>>,
) {
    let mut servers = urls.iter().cycle();
    let mut server = servers.next();
    while let Some(url) = server {
        let request = http.post(url).header("content-type", "application/json");
        // ipamd then drops the request in time; etcd ignores it.
        let request = request.header(HEADER_BUDGET_MS, PATIENCE.as_millis().to_string());
        let answer = request.body(body().to_string()).send().await;
        if answer.is_ok_and(|answer| answer.status().is_success()) {
            held(&accepted).push(Instant::now());
        } else {
            server = servers.next();
        }
        tokio::time::sleep(PAUSE).await;
    }
}
