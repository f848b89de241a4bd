//! All hosts of a data centre start at once.

use std::collections::BTreeSet;
use std::time::Instant;

use super::rack::{ETH1, Host, Rack};
use crate::support::ask::allocations;

/// Hosts that start at once.
const HOSTS: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n5_15_two_hundred_hosts_start_from_one_file_without_duplicates() {
    let rack = Rack::make(3, 300).await;
    // As in production, where hosts do not ask twice a second.
    rack.configure(&rack.sockets(), "refresh_ms = 60000", ETH1);
    let begun = Instant::now();
    // By this thread: a namespace ends with the thread that made it.
    let mut hosts: Vec<Host> = (0..HOSTS).map(|number| rack.host(&format!("h{number}"))).collect();
    let booted = begun.elapsed();
    let begun = Instant::now();
    for host in &mut hosts {
        host.start_agent(&rack);
    }
    for host in &hosts {
        host.is_served().await;
    }
    let served = begun.elapsed();
    let mut all = BTreeSet::new();
    for host in &hosts {
        let own = host.addresses("eth1");
        assert_eq!(own.len(), 2, "{}: {own:?}", host.name);
        for address in own {
            assert!(all.insert(address.clone()), "{address} is on two hosts");
        }
    }
    let held = allocations(&rack.cluster.ask()).await;
    assert_eq!((held.len(), all.len()), (2 * HOSTS, 2 * HOSTS));
    println!("{HOSTS} hosts: namespaces after {booted:?}, all addresses configured after another {served:?}");
}
