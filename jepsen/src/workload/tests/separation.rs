//! Separation of workloads: names and addresses of their own, and sessions that end.

use std::collections::BTreeSet;
use std::time::Duration;

use ipam_api::{Code, Problem};
use ipnet::IpNet;
use serde_json::{Value as Json, json};

use super::scripted::{Scripted, answer, session, unknown};
use crate::workload::{Phase, Workload, all};

/// Time of work.
const WORK: Duration = Duration::from_secs(10);
/// Time in which a session must return after the time of work.
const SETTLE: Duration = Duration::from_secs(10);

/// Workloads that use REST only: workloads with nodes share the network of the wire.
fn workloads() -> Vec<Box<dyn Workload>> {
    all().into_iter().filter(|workload| !workload.needs_node()).collect()
}

#[tokio::test]
async fn no_two_workloads_share_a_resource_or_an_address() {
    let mut names = BTreeSet::new();
    let mut cidrs: Vec<(&str, IpNet)> = Vec::new();
    for workload in workloads() {
        assert!(names.insert(workload.name()), "{} exists twice", workload.name());
        let server = Scripted::new(|_| Ok(answer(&json!({}))));
        workload.prepare(&*server).await.unwrap();
        for call in server.calls() {
            let (_, name) = call.path().rsplit_once('/').unwrap();
            assert!(name.starts_with(workload.name()), "{} of {}", call.path(), workload.name());
            let body: Json = serde_json::from_slice(call.body().unwrap()).unwrap();
            if let Some(cidr) = body["cidr"].as_str() {
                cidrs.push((workload.name(), cidr.parse().unwrap()));
            }
        }
    }
    for (at, (one, cidr)) in cidrs.iter().enumerate() {
        for (other, beside) in &cidrs[at + 1..] {
            let is_apart = !cidr.contains(beside) && !beside.contains(cidr);
            assert!(is_apart, "{cidr} of {one} and {beside} of {other}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_end_whatever_the_answers_are_and_use_their_own_endpoints() {
    let exhausted = Problem::new(Code::PoolExhausted, "full");
    let no_leader = Problem::new(Code::NoLeader, "none");
    for problem in [exhausted, no_leader, unknown()] {
        for workload in workloads() {
            let reply = problem.clone();
            let server = Scripted::new(move |_| Err(reply.clone()));
            let (session, lines, phases) = session(&server);
            let end = async {
                tokio::time::sleep(WORK).await;
                phases.send_replace(Phase::Settle);
            };
            let ended = async { tokio::join!(workload.run(session), end) };
            let name = workload.name();
            tokio::time::timeout(WORK + SETTLE, ended).await.unwrap_or_else(|_| panic!("{name}"));
            for operation in lines.operations() {
                let Some(endpoint) = operation.value.endpoint else { continue };
                let own = endpoint.rsplit_once('/').unwrap().1;
                assert!(own.starts_with(name), "{endpoint} of {name}");
            }
        }
    }
}
