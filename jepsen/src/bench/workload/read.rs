//! Reads of single addresses that are held.

use std::net::SocketAddr;
use std::rc::Rc;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::allocate::{allocation, answer};
use super::names::next_number;
use crate::bench::lab::Ipamd;
use crate::bench::load::{Call, Client};
use crate::bench::wire::{Connection, request};

/// Addresses that are read in turn.
const ADDRESSES: usize = 500;

/// Client that reads one address after the other.
#[derive(Debug)]
pub(in crate::bench) struct Read {
    connection: Connection,
    requests: Rc<Vec<Vec<u8>>>,
    next: usize,
}

impl Read {
    /// Allocates addresses from a pool; returns clients of the leader that read them.
    pub(in crate::bench) async fn clients(
        cluster: &Ipamd,
        count: usize,
        is_stale: bool,
    ) -> Result<Vec<Box<dyn Client>>> {
        let server = *cluster.servers().await?.first().context("no server")?;
        let requests = Rc::new(requests(cluster, server, is_stale).await?);
        let client = |number: usize| {
            let (connection, requests) = (Connection::new(server), Rc::clone(&requests));
            Box::new(Self { connection, requests, next: number * 7 }) as Box<dyn Client>
        };
        Ok((0..count).map(client).collect())
    }
}

async fn requests(cluster: &Ipamd, server: SocketAddr, is_stale: bool) -> Result<Vec<Vec<u8>>> {
    let client = cluster.client()?;
    let query = if is_stale { "?consistency=stale" } else { "" };
    let mut requests = Vec::new();
    let names: Vec<u64> = (0..ADDRESSES).map(|_| next_number()).collect();
    let steps: Vec<Value> = names
        .iter()
        .map(|name| {
            let body = allocation(&format!("b{name:016x}"), &["large"], &Value::Null);
            json!({"method": "POST", "path": "/v1/allocations", "body": body})
        })
        .collect();
    let call =
        ipam_api::client::Call::post("/v1/transactions").json(&json!({ "steps": steps }))?.repeatable();
    let answer = client.send(call).await?;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    for (_, rest) in text.match_indices("\"address\":\"").map(|(at, found)| text.split_at(at + found.len())) {
        if let Some((address, _)) = rest.split_once('/') {
            requests.push(request("GET", server, &format!("/v1/addresses/{address}{query}"), ""));
        }
    }
    anyhow::ensure!(requests.len() == ADDRESSES, "the answer has {} addresses: {text}", requests.len());
    Ok(requests)
}

impl Client for Read {
    fn call(&mut self) -> Call<'_> {
        Box::pin(async {
            self.next = (self.next + 1) % self.requests.len().max(1);
            let bytes = self.requests.get(self.next).context("no addresses")?;
            answer(&self.connection.exchange(bytes).await?, 1)
        })
    }
}
