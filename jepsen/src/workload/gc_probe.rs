//! Workload `gc-probe`: containers appear on the wire, fall silent, answer late, and vanish without a DEL.
//!
//! The pools are probed. `farm` operations are the ground truth: no address that answers may be reclaimed,
//! and each address of an ended container must be reclaimed. The last operations read some addresses of ended
//! containers.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::Result;
use futures::future::{BoxFuture, FutureExt as _};
use serde_json::json;

use super::attachment::Attachment;
use super::wire::{Live, Segment, prepare};
use super::{At, Phase, Server, Session, Workload};
use crate::history::Function;

const NAME: &str = "gc-probe";
/// Sessions on all nodes together.
const SESSIONS: usize = 4;
/// Pools, both probed.
const POOLS: [&str; 2] = ["gc-probe", "gc-probe-6"];
/// Gateways of their subnets.
const GATEWAYS: [&str; 2] = ["10.77.128.1", "fd77:0:0:0:8000::1"];
/// Containers of a session at a time.
const CONTAINERS_MAX: usize = 6;
/// Longest time until a late container answers.
const LATE_MS_MAX: usize = 2_500;
/// Time for the release of orphans before the end of a run.
const ORPHANS: Duration = Duration::from_secs(6);
/// Addresses that a session reads at the end.
const READS: usize = 4;
/// Mean pause between two steps.
const PAUSE_MS: usize = 300;

/// Containers on the wire of each node.
pub(super) struct GcProbe;

impl Workload for GcProbe {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "containers on a probed segment appear, fall silent, answer late, and vanish without a DEL"
    }

    fn sessions(&self) -> usize {
        SESSIONS
    }

    fn functions(&self) -> &'static [Function] {
        &[Function::Add, Function::Del, Function::Farm]
    }

    fn needs_node(&self) -> bool {
        true
    }

    fn prepare<'a>(&'a self, admin: &'a dyn Server) -> BoxFuture<'a, Result<()>> {
        let [four, six] = POOLS;
        let segments = [
            (four, "10.77.128.0/18", GATEWAYS[0], "10.77.129.0-10.77.129.63"),
            (six, "fd77:0:0:0:8000::/66", GATEWAYS[1], "fd77:0:0:0:8000::100-fd77:0:0:0:8000::13f"),
        ]
        .map(|(name, cidr, gateway, range)| Segment {
            name,
            cidr,
            gateway: Some(gateway),
            range,
            probing: json!({"conflicts": true}),
        });
        async move { prepare(admin, &segments).await }.boxed()
    }

    fn run(&self, session: Session) -> BoxFuture<'_, ()> {
        run(session).boxed()
    }
}

/// Gateways of the probed subnets, which a host of the network has to have.
#[must_use]
pub fn gateways() -> Vec<IpAddr> {
    GATEWAYS.iter().filter_map(|gateway| gateway.parse().ok()).collect()
}

async fn run(mut session: Session) {
    let mut count = 0_u64;
    let mut all: Vec<Live> = Vec::new();
    let mut gone: Vec<IpAddr> = Vec::new();
    while session.works() {
        bury(&mut session, &mut all).await;
        let at = session.random.below(all.len());
        match session.random.below(10) {
            0..=3 if all.len() < CONTAINERS_MAX => {
                count += 1;
                start(&mut session, count, &mut all).await;
            }
            4 | 5 => {
                if let Some(live) = all.get_mut(at) {
                    if live.answers {
                        live.silence(&mut session).await
                    } else {
                        live.plug_in(&mut session).await
                    }
                }
            }
            6 | 7 if !all.is_empty() => {
                let mut live = all.swap_remove(at);
                gone.extend(&live.addresses);
                live.vanish(&mut session).await;
            }
            8 if !all.is_empty() => all.swap_remove(at).end(&mut session).await,
            _ => {}
        }
        let pause = session.random.below(2 * PAUSE_MS);
        session.pause(milliseconds(pause)).await;
    }
    for live in all {
        gone.extend(&live.addresses);
        live.end(&mut session).await;
    }
    // Orphans have had their time before the last operation.
    session.pause(ORPHANS).await;
    for address in gone.iter().rev().take(READS) {
        if session.phase() == Phase::Over {
            return;
        }
        let _ = session.read_address(At::All, &address.to_string(), false).await;
    }
}

/// Records the end of containers whose host has lost its power.
async fn bury(session: &mut Session, all: &mut Vec<Live>) {
    let (lost, living) = std::mem::take(all).into_iter().partition(|live| live.is_lost(session));
    *all = living;
    let lost: Vec<Live> = lost;
    for mut live in lost {
        live.vanish(session).await;
    }
}

/// Starts a container that answers at once, late, or not yet.
async fn start(session: &mut Session, count: u64, all: &mut Vec<Live>) {
    let container = format!("{NAME}-{}-{count}", session.number);
    let (config, pools) = (format!("{NAME}-{}", session.number), POOLS.map(|pool| vec![pool.to_owned()]));
    let attachment = Attachment { config, container, pod: None, pools };
    let mut live = Live::new(session, attachment);
    if !live.add(session).await {
        live.end(session).await;
        return;
    }
    if session.chance(25) {
        let pause = session.random.below(LATE_MS_MAX);
        session.pause(milliseconds(pause)).await;
    }
    if session.chance(85) {
        live.plug_in(session).await;
    }
    all.push(live);
}

fn milliseconds(number: usize) -> Duration {
    Duration::from_millis(u64::try_from(number).unwrap_or_default())
}
