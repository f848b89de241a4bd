//! ADD through `macvlan` in network namespaces, with and without probes: `cargo xtask measure --probes`.
//!
//! Read the figures as ratios.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a program for people who measure"
)]

/// Hosts on one segment, as the tests of namespaces have them.
#[path = "../tests/namespace"]
#[allow(dead_code, reason = "the tests use the rest")]
mod namespace {
    pub(crate) mod lan;
    pub(crate) mod wire;
}
#[path = "../tests/support/mod.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod support;

use std::time::{Duration, Instant};

use namespace::lan::Lan;
use serde_json::json;

/// ADDs of each kind.
const PROBED: usize = 20;
/// Line of the agent's log for each ADD that probes.
const PROBES_OF_ADD: &str = "probing addresses of an ADD";

/// ADD through `macvlan` from exec to exit: without probes, with a check ahead of the request, and with a
/// probe of its own.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    println!("ADD through macvlan, {PROBED} times, medians");
    for (name, probing, is_checked) in [
        ("no probes", json!({}), false),
        ("checked ahead", json!({"conflicts": true}), true),
        ("probed by the ADD", json!({"conflicts": true}), false),
    ] {
        let lan = Lan::make(probing.clone()).await;
        let mut node = lan.node("n1", 201).await;
        let mut times: Vec<Duration> = Vec::new();
        for number in 0..PROBED {
            let mut main = json!({"type": "macvlan", "master": "eth0"});
            if is_checked {
                // Agents check the next addresses of a pool while nothing is requested.
                tokio::time::sleep(Duration::from_secs(1)).await;
            } else {
                // Far from the next addresses, where no agent looks.
                main["args"] = json!({"cni": {"ips": [format!("10.99.0.{}", 109 - number)]}});
            }
            let (began, probed) = (Instant::now(), node.logged().matches(PROBES_OF_ADD).count());
            let output = node.add_with(main);
            assert!(output.status.success(), "{output:?}");
            let expects_probe = usize::from(!is_checked && probing != json!({}));
            if node.logged().matches(PROBES_OF_ADD).count() - probed == expects_probe {
                times.push(began.elapsed());
            }
        }
        times.sort_unstable();
        let median = times[times.len() / 2].as_secs_f64() * 1000.0;
        println!("{name:<44} {median:>7.2} ms   of {} ADDs", times.len());
    }
}
