//! Many allocations in one request, all or none.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use ipam_api::client::Call as ApiCall;
use serde_json::{Value, json};

use super::allocate::answer;
use super::names::next_number;
use crate::bench::lab::Ipamd;
use crate::bench::load::{Call, Client};
use crate::bench::wire::{Connection, request};

/// Allocations of one request.
pub(in crate::bench) const PER_REQUEST: u64 = 1000;
/// Number of concurrent requests while a pool is filled.
const FILLERS: usize = 4;
/// Time for one request while a pool is filled.
const PATIENCE: Duration = Duration::from_secs(60);

/// Path and body of one request for many allocations from one pool.
fn bulk_request(pool: &str, count: u64) -> (&'static str, String) {
    let names: Vec<String> = (0..count).map(|_| format!("b{:016x}", next_number())).collect();
    let interface = json!({"name": "eth0", "ipv4_pools": [pool]});
    ("/v1/allocations/bulk", json!({"kind": "host", "names": names, "interface": interface}).to_string())
}

/// Client that allocates [`PER_REQUEST`] addresses with each call.
#[derive(Debug)]
pub(in crate::bench) struct Bulk {
    connection: Connection,
    server: SocketAddr,
    pool: &'static str,
}

impl Bulk {
    /// Client of a server that allocates from one pool.
    pub(in crate::bench) fn new(server: SocketAddr, pool: &'static str) -> Self {
        Self { connection: Connection::new(server), server, pool }
    }
}

impl Client for Bulk {
    fn call(&mut self) -> Call<'_> {
        Box::pin(async {
            let (path, body) = bulk_request(self.pool, PER_REQUEST);
            let bytes = request("POST", self.server, path, &body);
            answer(&self.connection.exchange(&bytes).await?, PER_REQUEST)
        })
    }
}

/// Allocates a number of addresses from a pool, outside of any measurement.
pub(in crate::bench) async fn fill(cluster: &Ipamd, pool: &str, count: u64) -> Result<()> {
    let client = cluster.client()?;
    let left = std::cell::Cell::new(count);
    let filler = || async {
        loop {
            let now = left.get().min(PER_REQUEST);
            if now == 0 {
                return Ok::<(), anyhow::Error>(());
            }
            left.set(left.get() - now);
            let (path, body) = bulk_request(pool, now);
            let body: Value = serde_json::from_str(&body)?;
            // The request is idempotent: an endpoint that has addresses keeps them.
            let call = ApiCall::post(path).json(&body)?.repeatable().within(PATIENCE);
            client.send(call).await.context("the pool can't be filled")?;
        }
    };
    futures::future::try_join_all((0..FILLERS).map(|_| filler())).await?;
    Ok(())
}
