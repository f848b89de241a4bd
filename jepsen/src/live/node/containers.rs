//! Containers of a node: network namespaces on macvlan interfaces of the host's `eth0`.
//!
//! A namespace is held by a bind mount in the node's directory, so that no process stands for it. All of them
//! end with the mount namespace of this program, even after a kill.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::script::run;
use crate::live::tools::call;

/// Makes a namespace ($1). Its addresses answer at once, without duplicate address detection.
const MAKE: &str = r#"unshare --net="$1" -- sh -ec '
ip link set lo up
echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad'"#;
/// Connects a namespace ($1) by an interface with a MAC address ($2).
const CONNECT: &str = r#"ip link add link eth0 name eth0 netns "$1" address "$2" type macvlan mode bridge"#;
/// Replaces the addresses ($2, ...) of a namespace ($1). The interface is down in between, and down without any.
const ADDRESS: &str = r#"file="$1"; shift
{ echo "link set eth0 down"; echo "address flush dev eth0"
for one in "$@"; do echo "address add $one dev eth0 nodad"; done
[ $# -eq 0 ] || echo "link set eth0 up"; } | nsenter --net="$file" ip -batch -"#;

/// Containers by id.
#[derive(Debug)]
pub(super) struct Containers {
    dir: PathBuf,
    number: u8,
    /// Number of the next interface.
    next: u32,
    all: BTreeMap<String, Container>,
}

#[derive(Debug, Clone)]
struct Container {
    file: PathBuf,
    is_connected: bool,
}

impl Containers {
    pub(super) fn new(dir: PathBuf, number: u8) -> Result<Self> {
        fs::create_dir_all(&dir)?;
        Ok(Self { dir, number, next: 0, all: BTreeMap::new() })
    }

    /// File of the namespace of a container, made on the first call.
    pub(super) async fn namespace(&mut self, host: &Path, id: &str) -> Result<PathBuf> {
        if let Some(container) = self.all.get(id) {
            return Ok(container.file.clone());
        }
        self.next += 1;
        let file = self.dir.join(format!("{}-{id}", self.next));
        File::create(&file).with_context(|| file.display().to_string())?;
        // Known before it exists: an end must find it.
        let container = Container { file: file.clone(), is_connected: false };
        self.all.insert(id.to_owned(), container);
        run(host, MAKE, &[file.as_os_str()]).await?;
        Ok(file)
    }

    /// Gives a container these addresses and no others.
    pub(super) async fn plug_in(&mut self, host: &Path, id: &str, addresses: &[IpAddr]) -> Result<()> {
        let file = self.namespace(host, id).await?;
        let mac = self.mac();
        if let Some(container) = self.all.get_mut(id).filter(|one| !one.is_connected) {
            run(host, CONNECT, &[file.as_os_str(), OsStr::new(&mac)]).await?;
            container.is_connected = true;
        }
        let on_link = |address: &IpAddr| format!("{address}/{}", if address.is_ipv4() { 16 } else { 64 });
        let texts: Vec<String> = addresses.iter().map(on_link).collect();
        let words = std::iter::once(file.as_os_str()).chain(texts.iter().map(OsStr::new));
        run(host, ADDRESS, &words.collect::<Vec<_>>()).await.map(drop)
    }

    /// Ends a container with its namespace.
    pub(super) fn end(&mut self, id: &str) -> Result<()> {
        let Some(container) = self.all.remove(id) else { return Ok(()) };
        // One that couldn't be made has no mount.
        let ended = call("umount", [OsStr::new("--lazy"), container.file.as_os_str()]);
        let _gone = fs::remove_file(&container.file);
        if container.is_connected { ended } else { Ok(()) }
    }

    /// Ends all containers; returns their number.
    pub(super) fn end_all(&mut self) -> Result<usize> {
        let ids: Vec<String> = self.all.keys().cloned().collect();
        ids.iter().try_for_each(|id| self.end(id)).map(|()| ids.len())
    }

    fn mac(&self) -> String {
        let [_, high, middle, low] = self.next.to_be_bytes();
        format!("02:c0:{:02x}:{high:02x}:{middle:02x}:{low:02x}", self.number)
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        if let Err(error) = self.end_all() {
            eprintln!("{error:#}");
        }
    }
}
