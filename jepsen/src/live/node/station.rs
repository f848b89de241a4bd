//! Foreign station: a host whose kernel answers ARP and NDP at addresses that the cluster takes for free.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Result;
use ipam_api::address::AddressRange;
use ipam_api::client::Call;
use ipam_api::resource::{Address, Page};
use serde_json::Value as Json;
use tokio::sync::Mutex;

use super::script::run;
use crate::workload::Server;

/// Adds addresses to the host's interface.
const ADD: &str = r#"for one in "$@"; do echo "address add $one dev eth0 nodad"; done | ip -batch -"#;
/// Removes addresses from it.
const REMOVE: &str = r#"for one in "$@"; do echo "address del $one dev eth0"; done | ip -force -batch -"#;
/// Addresses of a pool that are looked at to find free ones.
const LOOKED_AT_MAX: u32 = 64;

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

    /// Lets the host answer at addresses, from now on.
    ///
    /// # Errors
    /// If the kernel refuses one of them.
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

    /// Answers at some of the addresses that probed pools would allocate next. Returns them.
    ///
    /// # Errors
    /// If no server answers, or the kernel refuses an address.
    pub async fn answer_for_free(&self, server: &dyn Server, count: usize) -> Result<Vec<IpAddr>> {
        let mut chosen = Vec::new();
        let pools: Page<Json> = server.send(Call::get("/v1/pools?limit=1000")).await?.read()?;
        let probed: Vec<&Json> = pools.items.iter().filter(|pool| is_probed(pool)).collect();
        for (pool, left) in probed.iter().zip((1..=probed.len()).rev()) {
            let first = pool.pointer("/ranges/0").and_then(Json::as_str).unwrap_or_default();
            let candidates = next(first.parse::<AddressRange>()?.first_address(), LOOKED_AT_MAX);
            let share = count.saturating_sub(chosen.len()).div_ceil(left);
            chosen.extend(free(server, candidates, share).await?);
        }
        self.answer(&chosen).await?;
        Ok(chosen)
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
        let known: Address = server.send(Call::get(format!("/v1/addresses/{address}"))).await?.read()?;
        if known.state == "free" {
            free.push(address);
        }
    }
    Ok(free)
}

/// Addresses from one on.
fn next(first: IpAddr, count: u32) -> Vec<IpAddr> {
    (0..count)
        .filter_map(|offset| match first {
            IpAddr::V4(first) => first.to_bits().checked_add(offset).map(|bits| IpAddr::V4(bits.into())),
            IpAddr::V6(first) => {
                first.to_bits().checked_add(offset.into()).map(|bits| IpAddr::V6(bits.into()))
            }
        })
        .collect()
}
