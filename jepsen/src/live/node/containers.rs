//! Containers of a node: network namespaces on macvlan interfaces of the host's `eth0`.
//!
//! A file descriptor of this program keeps each namespace, so that all namespaces end with the program, also
//! after a kill.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::script::run;
use crate::live::network::Namespace;

/// Connects a namespace ($1) by an interface with a MAC address ($2).
const CONNECT: &str = r#"ip link add link eth0 name eth0 netns "$1" address "$2" type macvlan mode bridge"#;
/// Removes the interface.
const DISCONNECT: &str = "ip link del eth0";
/// Setting of duplicate address detection in the namespace of the calling thread.
const DAD: &str = "/proc/sys/net/ipv6/conf/default/accept_dad";
/// Replaces the addresses of a namespace. The interface is down in between, and stays down without addresses.
const ADDRESS: &str = r#"{ echo "link set eth0 down"; echo "address flush dev eth0"
for one in "$@"; do echo "address add $one dev eth0 nodad"; done
[ $# -eq 0 ] || echo "link set eth0 up"; } | ip -batch -"#;

/// Containers by id.
#[derive(Debug)]
pub(super) struct Containers {
    number: u8,
    /// Number of the newest interface.
    newest: u32,
    all: BTreeMap<String, Container>,
}

#[derive(Debug)]
struct Container {
    namespace: Namespace,
    is_connected: bool,
}

impl Containers {
    /// Empty set of containers of the node with this number.
    pub(super) fn new(number: u8) -> Self {
        Self { number, newest: 0, all: BTreeMap::new() }
    }

    /// Path of the namespace of a container, made on the first call.
    pub(super) fn namespace(&mut self, id: &str) -> Result<PathBuf> {
        if let Some(container) = self.all.get(id) {
            return Ok(container.namespace.path().to_owned());
        }
        let namespace = Namespace::make()?;
        // Without duplicate address detection, addresses answer at once.
        namespace.within(|| std::fs::write(DAD, "0").context(DAD))?;
        let path = namespace.path().to_owned();
        self.all.insert(id.to_owned(), Container { namespace, is_connected: false });
        Ok(path)
    }

    /// Gives a container these addresses and no others.
    pub(super) async fn plug_in(&mut self, host: &Path, id: &str, addresses: &[IpAddr]) -> Result<()> {
        let path = self.namespace(id)?;
        if let Some(container) = self.all.get_mut(id).filter(|one| !one.is_connected) {
            self.newest += 1;
            let mac = mac(self.number, self.newest);
            run(host, CONNECT, &[path.as_os_str(), OsStr::new(&mac)]).await?;
            container.is_connected = true;
        }
        let on_link = |address: &IpAddr| format!("{address}/{}", if address.is_ipv4() { 16 } else { 64 });
        let texts: Vec<String> = addresses.iter().map(on_link).collect();
        run(&path, ADDRESS, &texts.iter().map(OsStr::new).collect::<Vec<_>>()).await.map(drop)
    }

    /// Ends a container with its namespace.
    pub(super) async fn end(&mut self, id: &str) -> Result<()> {
        let Some(container) = self.all.remove(id) else { return Ok(()) };
        if container.is_connected {
            // The kernel removes the devices of a namespace some time after its end.
            run(container.namespace.path(), DISCONNECT, &[]).await?;
        }
        Ok(())
    }

    /// Ends all containers; returns their number.
    pub(super) async fn end_all(&mut self) -> Result<usize> {
        let ids: Vec<String> = self.all.keys().cloned().collect();
        for id in &ids {
            self.end(id).await?;
        }
        Ok(ids.len())
    }
}

/// MAC address of an interface.
fn mac(node: u8, interface: u32) -> String {
    let [_, high, middle, low] = interface.to_be_bytes();
    format!("02:c0:{node:02x}:{high:02x}:{middle:02x}:{low:02x}")
}
