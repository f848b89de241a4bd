//! Writers under permanent load, and a ledger of their acknowledgements.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ipam_api::client::{Call, Client};
use ipam_api::request::Released;
use ipam_api::resource::Allocation;
use tokio::task::JoinSet;

use crate::support::ask::{allocate_call, allocate_request};
use crate::support::until;

/// Timeout of a writer's request.
const PATIENCE: Duration = Duration::from_secs(2);
/// Ratio of releases: one of this many allocations.
const RELEASE_EVERY: usize = 4;

/// Requests and acknowledgements by endpoint.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Endpoints with any request.
    asked: BTreeSet<String>,
    /// Acknowledged: the allocation's id and its address.
    given: BTreeMap<String, (u64, IpAddr)>,
    /// Requested releases of unknown outcome.
    releasing: BTreeSet<String>,
    /// Acknowledged releases.
    released: BTreeSet<String>,
}

impl Ledger {
    /// Number of acknowledged requests.
    pub(crate) fn acknowledged(&self) -> usize {
        self.given.len() + self.released.len()
    }

    /// Compares the allocations with the acknowledgements. `found` may be all, or those from `first` on.
    pub(crate) fn check(&self, found: &[Allocation], first: u64) {
        let mut owners: BTreeMap<IpAddr, &str> = BTreeMap::new();
        let mut by_name: BTreeMap<&str, &Allocation> = BTreeMap::new();
        for allocation in found {
            let (name, address) = (allocation.endpoint.name.as_str(), allocation.address.addr());
            if let Some(other) = owners.insert(address, name) {
                panic!("{address} was given to {other} and to {name}");
            }
            assert!(by_name.insert(name, allocation).is_none(), "{name} has two addresses");
            assert!(self.asked.contains(name), "no writer asked for {name}");
            assert!(!self.released.contains(name), "{name} was released and is back");
        }
        for (name, (id, address)) in self.given.iter().filter(|(_, (id, _))| *id >= first) {
            match by_name.get(name.as_str()) {
                Some(found) => assert_eq!((found.id, found.address.addr()), (*id, *address), "{name}"),
                None => assert!(self.releasing.contains(name), "{name} had {address} and lost it"),
            }
        }
    }
}

/// Writers at work. They end with this value.
pub(crate) struct Writers {
    ledger: Arc<Mutex<Ledger>>,
    tasks: JoinSet<()>,
}

impl Writers {
    /// This many, each with all servers in another order. `round` makes their names unique.
    pub(crate) fn start(count: usize, round: usize, urls: &[String], ledger: &Arc<Mutex<Ledger>>) -> Self {
        let mut tasks = JoinSet::new();
        for number in 0..count {
            let mut urls = urls.to_vec();
            let first = number % urls.len();
            urls.rotate_left(first);
            let client = Client::new(&urls).unwrap();
            tasks.spawn(write(client, format!("r{round}-w{number}"), Arc::clone(ledger)));
        }
        Self { ledger: Arc::clone(ledger), tasks }
    }

    /// Waits for this many further acknowledgements.
    pub(crate) async fn get_on(&mut self, more: usize) {
        let goal = held(&self.ledger).acknowledged() + more;
        until("the writers get on", async || {
            if let Some(ended) = self.tasks.try_join_next() {
                ended.expect("a writer writes on");
            }
            let reached = held(&self.ledger).acknowledged();
            if reached >= goal { Ok(()) } else { Err(format!("{reached} of {goal}")) }
        })
        .await;
    }

    /// Stops them wherever they are: what they wait for has an unknown fate.
    pub(crate) async fn stop(mut self) {
        self.tasks.abort_all();
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                assert!(error.is_cancelled(), "a writer failed: {error}");
            }
        }
    }
}

pub(crate) fn held(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap()
}

async fn write(client: Client, who: String, ledger: Arc<Mutex<Ledger>>) {
    let mut mine: Vec<(String, u64)> = Vec::new();
    for number in 0_usize.. {
        let name = format!("{who}-{number}");
        held(&ledger).asked.insert(name.clone());
        let call = allocate_call(&allocate_request(&name, &["web"])).within(PATIENCE);
        let allocated: ipam_api::request::Allocated = match client.call(call).await {
            Ok(allocated) => allocated,
            // The outcome is unknown; the name isn't reused.
            Err(problem) if problem.exit_code() >= 5 => continue,
            Err(problem) => panic!("{name}: {problem}"),
        };
        let given = &allocated.interfaces[0].addresses[0];
        held(&ledger).given.insert(name.clone(), (given.allocation, given.address.addr()));
        mine.push((name, given.allocation));
        if number % RELEASE_EVERY == 1 {
            let (name, id) = mine.remove(mine.len() / 2);
            release(&client, &ledger, name, id).await;
        }
    }
}

async fn release(client: &Client, ledger: &Mutex<Ledger>, name: String, id: u64) {
    held(ledger).releasing.insert(name.clone());
    let call = Call::delete(format!("/v1/allocations/{id}")).within(PATIENCE);
    match client.call::<Released>(call).await {
        Ok(_) => {
            let mut ledger = held(ledger);
            ledger.given.remove(&name);
            ledger.released.insert(name);
        }
        Err(problem) if problem.exit_code() >= 5 => {}
        Err(problem) => panic!("{name}: {problem}"),
    }
}
