//! Foreign station: a host whose kernel answers ARP and NDP at addresses that the cluster considers free.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use ipam_api::Problem;
use ipam_api::address::{AddressRange, number};
use ipam_api::client::Call;
use ipam_api::resource::{Address, Allocation, Page};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::script::run;
use crate::workload::Server;

/// Adds addresses to the host's interface.
const ADD: &str = r#"for one in "$@"; do echo "address add $one dev eth0 nodad"; done | ip -batch -"#;
/// Removes addresses from the host's interface.
const REMOVE: &str = r#"for one in "$@"; do echo "address del $one dev eth0"; done | ip -force -batch -"#;
/// Addresses of a pool that are examined to find free ones.
const LOOKED_AT_MAX: u128 = 64;
/// Time for the servers to answer.
const RECOVERY: Duration = Duration::from_secs(10);
/// Pause between two questions.
const LOOK: Duration = Duration::from_millis(200);

/// Endpoint farm on a host without an agent. Its addresses answer with the MAC address of the host.
#[derive(Debug)]
pub struct Station {
    netns: PathBuf,
    addresses: Mutex<BTreeSet<IpAddr>>,
}

impl Station {
    /// The farm on the host of a network namespace.
    #[must_use]
    pub fn new(netns: PathBuf) -> Self {
        Self { netns, addresses: Mutex::default() }
    }

    /// Adds the gateways of the probed subnets to the host, permanently. Their answers prove that a link
    /// works; without this proof, the silence of a node proves nothing.
    ///
    /// # Errors
    /// If the kernel refuses an address.
    pub async fn be_gateway(&self) -> Result<()> {
        self.batch(ADD, &crate::workload::gateways()).await
    }

    /// Lets the host answer at addresses, from now on.
    ///
    /// # Errors
    /// If the kernel refuses an address.
    pub async fn answer(&self, addresses: &[IpAddr]) -> Result<()> {
        let mut present = self.addresses.lock().await;
        let new: Vec<IpAddr> = addresses.iter().copied().filter(|one| !present.contains(one)).collect();
        present.extend(&new);
        self.batch(ADD, &new).await
    }

    /// Ends all answers; returns the addresses that answered.
    ///
    /// # Errors
    /// If the script can't be run.
    pub async fn silence(&self) -> Result<BTreeSet<IpAddr>> {
        let gone = std::mem::take(&mut *self.addresses.lock().await);
        self.batch(REMOVE, &gone.iter().copied().collect::<Vec<_>>()).await?;
        Ok(gone)
    }

    async fn batch(&self, script: &str, addresses: &[IpAddr]) -> Result<()> {
        if addresses.is_empty() {
            return Ok(());
        }
        let on_link = |address: &IpAddr| format!("{address}/{}", if address.is_ipv4() { 16 } else { 64 });
        let texts: Vec<String> = addresses.iter().map(on_link).collect();
        run(&self.netns, script, &texts.iter().map(OsStr::new).collect::<Vec<_>>()).await.map(drop)
    }
}

/// Finds addresses that probed pools would allocate next. After a fault, the servers get some time to answer.
///
/// # Errors
/// The problem of the cluster, or an answer that this program can't use.
pub(crate) async fn free_addresses(server: &dyn Server, count: usize) -> Result<Vec<IpAddr>> {
    let until = Instant::now() + RECOVERY;
    loop {
        match look_for(server, count).await {
            Err(error) if error.is::<Problem>() && Instant::now() < until => sleep(LOOK).await,
            done => return done,
        }
    }
}

async fn look_for(server: &dyn Server, count: usize) -> Result<Vec<IpAddr>> {
    let mut chosen = Vec::new();
    let pools: Page<Json> = read(server, Call::get("/v1/pools?limit=1000")).await?;
    let probed: Vec<&Json> = pools.items.iter().filter(|pool| is_probed(pool)).collect();
    for (pool, left) in probed.iter().zip((1..=probed.len()).rev()) {
        let name = pool.get("name").and_then(Json::as_str).unwrap_or_default();
        let range = pool.pointer("/ranges/0").and_then(Json::as_str).unwrap_or_default();
        // A problem would count as one of the cluster.
        let range = range.parse::<AddressRange>();
        let range = range.map_err(|problem| anyhow!("the pool {name:?}: {problem}"))?;
        let candidates = next(range, newest(server, name).await?);
        let share = count.saturating_sub(chosen.len()).div_ceil(left);
        chosen.extend(free(server, candidates, share).await?);
    }
    Ok(chosen)
}

/// Sends a read. An answer that can't be read is an error of this program, not a problem of the cluster.
async fn read<T: DeserializeOwned>(server: &dyn Server, call: Call) -> Result<T> {
    let answer = server.send(call).await?;
    answer.read().map_err(|problem| anyhow!("{problem}"))
}

/// Returns true for a pool of the workload whose subnets are probed.
fn is_probed(pool: &Json) -> bool {
    pool.get("name").and_then(Json::as_str).is_some_and(|name| name.starts_with("gc-probe"))
}

/// The first free addresses of a list.
async fn free(server: &dyn Server, candidates: Vec<IpAddr>, count: usize) -> Result<Vec<IpAddr>> {
    let mut free = Vec::new();
    for address in candidates {
        if free.len() == count {
            break;
        }
        let known: Address = read(server, Call::get(format!("/v1/addresses/{address}"))).await?;
        if known.state == "free" {
            free.push(address);
        }
    }
    Ok(free)
}

/// Address that a pool has allocated last.
async fn newest(server: &dyn Server, pool: &str) -> Result<Option<IpAddr>> {
    let call = Call::get("/v1/allocations?limit=1000").query("pool", pool);
    let page: Page<Allocation> = read(server, call).await?;
    let newest = page.items.iter().max_by_key(|allocation| allocation.id);
    Ok(newest.map(|allocation| allocation.address.addr()))
}

/// Addresses of a range after the newest one, then the addresses before it.
fn next(range: AddressRange, newest: Option<IpAddr>) -> Vec<IpAddr> {
    let size = range.last().saturating_sub(range.first()).saturating_add(1).min(LOOKED_AT_MAX);
    let behind = newest.map(|newest| number(newest).saturating_sub(range.first()).saturating_add(1));
    let offset = |step| behind.unwrap_or_default().saturating_add(step).checked_rem(size).unwrap_or_default();
    (0..size).map(|step| range.family().address(range.first().saturating_add(offset(step)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_behind_the_newest_one_come_first() {
        let range = "10.0.0.10-10.0.0.13".parse().unwrap();
        let shown = |newest: Option<&str>| {
            let all = next(range, newest.map(|newest| newest.parse().unwrap()));
            all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown(None), "10.0.0.10 10.0.0.11 10.0.0.12 10.0.0.13");
        assert_eq!(shown(Some("10.0.0.11")), "10.0.0.12 10.0.0.13 10.0.0.10 10.0.0.11");
        assert_eq!(shown(Some("10.0.0.13")), "10.0.0.10 10.0.0.11 10.0.0.12 10.0.0.13");
    }
}
