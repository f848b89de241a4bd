//! Pods that come and go while agents, containerd and the leader are killed.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use serde_json::json;

use super::kubelet::{Answer, Pod};
use super::node::{Node, bridge, ipam};
use crate::support::ask::{list, make_pools};
use crate::support::live::{Addresses, allocated, settled};
use crate::support::{Cluster, until};
use ipam_api::resource::Allocation;

const NODES: [&str; 2] = ["node-1", "node-2"];
const PODS_PER_NODE: usize = 100;
/// Orders that are carried out between two kills.
const ORDERS_PER_KILL: usize = 25;

/// Addresses of the pods that are there, and the number of orders that were carried out.
#[derive(Default)]
struct Observed {
    held: Mutex<BTreeMap<IpAddr, String>>,
    done: AtomicUsize,
}

impl Observed {
    async fn create(&self, node: &Node, pod: &Pod) -> Answer {
        let answer = node.kubelet.create(pod).await;
        assert_eq!(answer.addresses.len(), 2, "{answer:?}");
        {
            let mut held = self.held.lock().unwrap();
            for address in &answer.addresses {
                let other = held.insert(*address, pod.name.clone());
                assert_eq!(other, None, "{address} of {} is another's", pod.name);
            }
        }
        self.done.fetch_add(1, Ordering::SeqCst);
        answer
    }

    async fn delete(&self, node: &Node, pod: &Pod) {
        self.held.lock().unwrap().retain(|_, name| *name != pod.name);
        node.kubelet.delete(pod).await;
        self.done.fetch_add(1, Ordering::SeqCst);
    }

    /// Kills one thing after the other until `last` orders are done.
    async fn kill(&self, cluster: &mut Cluster, nodes: &[Node], last: usize) -> usize {
        let mut kills = 0;
        while self.done.load(Ordering::SeqCst) < last {
            let node = &nodes[kills / 3 % nodes.len()];
            match kills % 3 {
                0 => {
                    node.machine.kill_agent().await;
                    node.machine.start_agent().await;
                }
                1 => {
                    node.kill_containerd().await;
                    node.start_containerd().await;
                }
                _ => {
                    let leader = cluster.leader().await;
                    cluster.members[leader].kill();
                    cluster.start(leader);
                    cluster.ready().await;
                }
            }
            kills += 1;
            let next = (kills * ORDERS_PER_KILL).min(last);
            until("the pods come and go", async || match self.done.load(Ordering::SeqCst) {
                done if done >= next => Ok(()),
                done => Err(format!("{done} of {last}")),
            })
            .await;
        }
        kills
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_made_and_deleted_while_all_is_killed_have_no_address_twice_and_leak_none() {
    let mut cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let (urls, pools) = (cluster.urls(), json!({"ipv4_pools": ["web"], "ipv6_pools": ["web6"]}));
    let make = |name| Node::make(name, &urls, bridge(ipam(name, pools.clone())), |_| ());
    let nodes = join_all(NODES.map(make)).await;
    let pods = |node: &str| (0..PODS_PER_NODE).map(|at| Pod::new(&format!("{node}-pod-{at}"), &[])).collect();
    let pods: Vec<Vec<Pod>> = NODES.map(pods).into();
    let observed = Observed::default();
    let placed = || nodes.iter().zip(&pods).flat_map(|(node, pods)| pods.iter().map(move |pod| (node, pod)));
    // Every second pod is deleted as soon as it is there.
    let first = placed().enumerate().map(async |(at, (node, pod))| {
        let answer = observed.create(node, pod).await;
        if at % 2 == 0 {
            observed.delete(node, pod).await;
            return None;
        }
        Some((answer.sandbox, answer.addresses, answer.attempts))
    });
    let all = NODES.len() * PODS_PER_NODE;
    let (kept, kills) = tokio::join!(join_all(first), observed.kill(&mut cluster, &nodes, all + all / 2));
    let kept: Vec<_> = kept.into_iter().flatten().collect();
    let repeated = kept.iter().filter(|(.., attempts)| *attempts > 1).count();
    println!("{kills} kills; {repeated} of {} kept pods needed several sandboxes", kept.len());
    // All that is kept is in the cluster, each address once. More may be: of sandboxes that failed.
    let cluster_has: Vec<Allocation> = list(&cluster.ask(), "/v1/allocations").await;
    for (sandbox, addresses, _) in &kept {
        for address in addresses {
            let holders = cluster_has.iter().filter(|one| one.address.addr() == *address).count();
            assert_eq!(holders, 1, "{address} of {sandbox}");
        }
    }
    let rest = placed().enumerate().filter(|(at, _)| at % 2 == 1);
    let rest = rest.map(async |(_, (node, pod))| observed.delete(node, pod).await);
    let (_, more) = tokio::join!(join_all(rest), observed.kill(&mut cluster, &nodes, 2 * all));
    println!("{more} kills of the deletions");
    // containerd forgets a namespace if it was killed between its creation and that of the container.
    let mut forgotten = 0;
    for node in &nodes {
        until("the plugins end", async || {
            let living = node.machine.processes(&["bridge", "ipam-cni"]);
            if living.is_empty() { Ok(()) } else { Err(format!("{living:?}")) }
        })
        .await;
        let namespaces = node.namespaces();
        forgotten += namespaces.len();
        node.machine.remove_namespaces(&namespaces);
    }
    println!(
        "{forgotten} namespaces forgotten by containerd; {} allocations left",
        allocated(&cluster).await.len()
    );
    settled(&cluster, &Addresses::new()).await;
}
