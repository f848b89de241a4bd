//! Heartbeats of node agents.

use std::net::SocketAddr;

use anyhow::Result;
use ipam_api::name::Name;
use ipam_api::node_report::{HeartbeatRequest, Inventory};
use ipam_api::probe::Link;

use super::allocate::answer;
use crate::bench::load::{Call, Client};
use crate::bench::wire::{Connection, request};

/// Agent whose only work is its heartbeat.
#[derive(Debug)]
pub(in crate::bench) struct Heartbeat {
    connection: Connection,
    bytes: Vec<u8>,
}

impl Heartbeat {
    /// Agent of one node that uses one server. All agents are on the link of one subnet, which makes the
    /// selection of probers most expensive.
    pub(in crate::bench) fn new(server: SocketAddr, number: usize, cidr: &str) -> Result<Self> {
        let body = HeartbeatRequest {
            boot_id: format!("boot-{number}"),
            boot_number: 1,
            ready: true,
            problem: None,
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            inventory: Inventory::default().digest(),
            links: vec![Link { network: Name::default_name(), cidr: cidr.parse()? }],
        };
        let path = format!("/v1/nodes/default/agent-{number}/heartbeat");
        let bytes = request("POST", server, &path, &serde_json::to_string(&body)?);
        Ok(Self { connection: Connection::new(server).from(super::addresses::source(number)), bytes })
    }
}

impl Client for Heartbeat {
    fn call(&mut self) -> Call<'_> {
        Box::pin(async { answer(&self.connection.exchange(&self.bytes).await?, 1) })
    }
}
