//! Output of `ipamd dev`: the allocated addresses, and next steps for the user.

use std::path::Path;
use std::time::Duration;

use super::console::say;
use super::container::Container;

/// Addresses of one endpoint, and the duration of their allocation.
pub(super) struct Given {
    pub(super) leader: String,
    pub(super) members: usize,
    pub(super) addresses: Vec<String>,
    pub(super) took: Duration,
    pub(super) real: bool,
}

pub(super) fn result(given: &Given) {
    let Given { leader, members, addresses, took, real } = given;
    let milliseconds = took.as_secs_f64() * 1000.0;
    let through = if *real {
        "on eth0 of a real network namespace, through bridge + ipam-cni,"
    } else {
        "through ipam-cni"
    };
    say(&format!(
        "leader {leader} · {members} members · subnets demo 10.99.0.0/24 and demo6 2001:db8:99::/64, pools demo, demo6\n\
         {} {through} in {milliseconds:.1} ms",
        addresses.join(" and ")
    ));
}

pub(super) fn next(dir: &Path, urls: &[String], containers: &[Container]) {
    let program = std::env::current_exe().ok();
    let bin = program.as_deref().and_then(Path::parent).unwrap_or(Path::new("."));
    let given = containers.first().map(Container::addresses).unwrap_or_default();
    let ip = given.first().and_then(|address| address.split('/').next()).unwrap_or("10.99.0.2").to_owned();
    say(&format!(
        "try, in another terminal:\n   export PATH={bin}:$PATH IPAM_SERVERS={servers}\n   \
         ipamctl status\n   ipamctl who-has {ip}\n   ipamctl allocate --endpoint host/db-07 --pool demo --pool demo6\n   \
         kill -9 $(cat {dir}/n1.pid)      and allocate again: it goes on\n\
         Ctrl-C stops everything and removes it, except a directory of --keep.",
        bin = bin.display(),
        servers = urls.join(","),
        dir = dir.display(),
    ));
}
