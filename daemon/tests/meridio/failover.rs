//! Load of proxies while the leader is killed again and again.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;

use super::clients::{Child, Client, IPV4, IPV6, Server};
use super::trench::Trench;
use crate::support::until;

/// Nodes with a proxy each.
const NODES: usize = 8;
/// Interval of the kills.
const INTERVAL: Duration = Duration::from_secs(5);
/// Number of kills; a longer run has it in `IPAMD_TEST_KILLS`.
const KILLS: usize = 6;

/// Addresses that proxies hold, and what went wrong with them.
#[derive(Debug, Default)]
struct Held {
    /// Holders by address, for children that no release has begun for.
    by_address: BTreeMap<String, String>,
    /// Addresses of bridges by node and family, which no proxy ever releases.
    bridges: BTreeMap<(usize, i32), String>,
    faults: Vec<String>,
    answers: usize,
    longest_gap: Duration,
}

/// Proxy of one node: its bridge, and connections that come and go.
async fn proxy(
    (node, client): (usize, &Client),
    servers: &[Server],
    held: &Mutex<Held>,
    is_over: &AtomicBool,
) {
    let mut last = Instant::now();
    let mut round = 0;
    while !is_over.load(Ordering::Relaxed) {
        round += 1;
        let family = if round % 2 == 0 { IPV4 } else { IPV6 };
        // The bridge is asked for again each time; a connection lives for one round.
        for (name, ends) in [("bridge".to_owned(), false), (format!("id{round}-src"), true)] {
            let child = Child::new("conduit-a", &format!("node-{node}"), &name, family);
            let mut first = None;
            // Each answer is repeated on another member, as by a proxy that has lost it.
            for attempt in 0..2 {
                let answer = answered(client, servers, (node, round + attempt), &child, "allocate").await;
                let gap = last.elapsed();
                last = Instant::now();
                let address = answer.prefix();
                let mut held = held.lock().unwrap();
                held.answers += 1;
                held.longest_gap = held.longest_gap.max(gap);
                if *first.get_or_insert_with(|| address.clone()) != address {
                    held.faults.push(format!("{child:?} had {first:?}, then {address}"));
                }
                let holder = format!("node-{node}/{name}");
                if name == "bridge" {
                    let bridge = held.bridges.entry((node, family)).or_insert_with(|| address.clone());
                    if *bridge != address {
                        let fault = format!("the bridge of node-{node} had {bridge}, then {address}");
                        held.faults.push(fault);
                    }
                }
                if let Some(other) = held.by_address.insert(address.clone(), holder.clone())
                    && other != holder
                {
                    held.faults.push(format!("{address} is held by {other} and by {holder}"));
                }
            }
            if ends {
                let holder = format!("node-{node}/{name}");
                held.lock().unwrap().by_address.retain(|_, of| *of != holder);
                answered(client, servers, (node, round), &child, "release").await;
            }
        }
    }
}

/// Repeats a call on one member after the other until one answers.
async fn answered(
    client: &Client,
    servers: &[Server],
    (node, round): (usize, usize),
    child: &Child,
    op: &str,
) -> super::clients::Answer {
    let tries = AtomicUsize::new(node + round);
    until(&format!("{op} of {child:?} succeeds"), async || {
        let server = &servers[tries.fetch_add(1, Ordering::Relaxed) % servers.len()];
        let mut operation = child.operation(op);
        operation["deadline_ms"] = json!(10_000);
        let answer = client.send(server, operation).await.last().await;
        match answer.code.as_str() {
            "" => Ok(answer),
            "UNAVAILABLE" | "DEADLINE_EXCEEDED" | "CANCELLED" => Err(format!("{answer:?}")),
            _ => panic!("{op} of {child:?}: {answer:?}"),
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m6_8_proxies_keep_their_addresses_while_leaders_are_killed() {
    let mut trench = Trench::plain(3).up().await;
    trench.conduit("conduit-a").await;
    let servers: Vec<Server> = (0..3).map(|at| trench.server(at)).collect();
    let (client, held, is_over) = (Client::go(), Mutex::new(Held::default()), AtomicBool::new(false));
    let proxies = join_all((0..NODES).map(|node| proxy((node, &client), &servers, &held, &is_over)));
    let kills = std::env::var("IPAMD_TEST_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let killing = async {
        for _ in 0..kills {
            tokio::time::sleep(INTERVAL).await;
            let leader = trench.cluster.leader().await;
            let answers = held.lock().unwrap().answers;
            trench.cluster.members[leader].kill();
            until("proxies have answers of the other members", async || {
                let now = held.lock().unwrap().answers;
                (now > answers + NODES).then_some(()).ok_or_else(|| format!("{now} answers"))
            })
            .await;
            trench.cluster.start_all();
        }
        is_over.store(true, Ordering::Relaxed);
    };
    tokio::join!(proxies, killing);
    let held = held.into_inner().unwrap();
    println!(
        "{kills} leaders killed: {} answers, the longest gap of a proxy was {:.0?}",
        held.answers, held.longest_gap
    );
    assert!(held.faults.is_empty(), "{:#?}", held.faults);
    trench.cluster.ready().await;
    trench.cluster.settled().await;
}
