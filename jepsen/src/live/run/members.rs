//! Members that the driver and clients use at present: some members join and leave during a run.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use anyhow::Result;
use futures::future::BoxFuture;
use ipam_api::Problem;
use ipam_api::client::{Answer, Call, Client};

use super::bench::{Bench, Reachable};
use crate::sync::held;
use crate::workload::{Seen, Server, Servers};

/// Control clients of all present members, by name. Clones share the clients.
#[derive(Clone, Default)]
pub(super) struct Controls {
    clients: Arc<Mutex<BTreeMap<String, Arc<Client>>>>,
}

impl Controls {
    /// Adds the members that have joined, and drops those that have left.
    pub(super) fn update<B: Bench + ?Sized>(&self, bench: &B) -> Result<()> {
        let names = bench.names();
        let mut clients = held(&self.clients);
        clients.retain(|name, _| names.contains(name));
        for name in names {
            if let Entry::Vacant(place) = clients.entry(name) {
                let client = bench.control(place.key())?;
                place.insert(Arc::new(client));
            }
        }
        Ok(())
    }

    /// The present members.
    pub(super) fn all(&self) -> Vec<(String, Arc<Client>)> {
        held(&self.clients).iter().map(|(name, client)| (name.clone(), Arc::clone(client))).collect()
    }
}

/// Server that represents all present members.
///
/// A client has a fixed list of servers, so it is replaced when the membership changes.
struct Present {
    client: RwLock<Arc<Client>>,
}

impl Present {
    fn client(&self) -> Arc<Client> {
        Arc::clone(&self.client.read().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

impl Server for Present {
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, Problem>> {
        let client = self.client();
        Box::pin(async move { client.send(call).await })
    }

    fn follow<'a>(
        &'a self,
        path: &'a str,
        after: String,
        time: Duration,
        seen: Seen<'a>,
    ) -> BoxFuture<'a, Result<String, Problem>> {
        let client = self.client();
        Box::pin(async move { client.follow(path, after, time, seen).await })
    }
}

/// Servers of the clients on one host.
pub(super) struct HostServers {
    known: Vec<Reachable>,
    present: Arc<Present>,
    servers: Servers,
}

impl HostServers {
    /// Servers of a host.
    pub(super) fn new<B: Bench + ?Sized>(bench: &B, host: &str) -> Result<Self> {
        let members = bench.members(host);
        let present = Arc::new(Present { client: RwLock::new(Arc::new(client(bench, &members)?)) });
        let one = |member: &Reachable| {
            let client: Arc<dyn Server> = Arc::new(client(bench, std::slice::from_ref(member))?);
            anyhow::Ok((member.name.clone(), client))
        };
        let each = members.iter().map(one).collect::<Result<_>>()?;
        let all: Arc<dyn Server> = Arc::<Present>::clone(&present);
        Ok(Self { known: members, present, servers: Servers { all, each } })
    }

    /// Servers of new sessions.
    pub(super) fn servers(&self) -> Servers {
        self.servers.clone()
    }

    /// Replaces the client of all members if the membership has changed.
    pub(super) fn update<B: Bench + ?Sized>(&mut self, bench: &B, host: &str) -> Result<()> {
        let members = bench.members(host);
        if self.known == members {
            return Ok(());
        }
        let next = Arc::new(client(bench, &members)?);
        self.known = members;
        *self.present.client.write().unwrap_or_else(std::sync::PoisonError::into_inner) = next;
        Ok(())
    }
}

fn client<B: Bench + ?Sized>(bench: &B, members: &[Reachable]) -> Result<Client> {
    let urls: Vec<&str> = members.iter().map(|member| member.url.as_str()).collect();
    bench.client(&urls)
}
