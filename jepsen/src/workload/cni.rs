//! Workload `cni`: a container runtime that runs the real plugin, also killed, late, raced and repeated.
//!
//! Each session is the runtime of one network configuration on its node. An attachment ends by DEL, by GC, or
//! by the end of its network namespace. `detail.late` marks an ADD whose process started before a DEL of the
//! same attachment began and that sent its request after that DEL was answered: it must not succeed. It also
//! marks a DEL in the same position to an ADD: it must release nothing.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures::future::{BoxFuture, FutureExt as _, join};

use super::attachment::{Attachment, Overtaking, Run};
use super::wire::{Live, Segment, prepare};
use super::{Server, Session, Workload};
use crate::history::Function;

const NAME: &str = "cni";
/// Sessions on all nodes together.
const SESSIONS: usize = 6;
/// Operations of a step, on average: a session rests as often.
const OPERATIONS: usize = 4;
/// Pools.
const POOLS: [&str; 2] = ["cni", "cni-6"];
/// Longest time after which a plugin is killed, in microseconds, doubled up to three times. The range reaches
/// from before `exec` to after the plugin's end, also on a busy machine.
const KILL_US_MAX: usize = 30_000;
/// Range of times for which a plugin is held.
const HOLD_MS: (usize, usize) = (300, 900);

/// A container runtime on each node.
pub(super) struct Cni;

impl Workload for Cni {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "runtimes run the real plugin: ADD, CHECK, DEL and GC, also killed, late, raced and repeated"
    }

    fn sessions(&self) -> usize {
        SESSIONS
    }

    fn functions(&self) -> &'static [Function] {
        &[Function::Add, Function::Check, Function::Del]
    }

    fn needs_node(&self) -> bool {
        true
    }

    fn prepare<'a>(&'a self, admin: &'a dyn Server) -> BoxFuture<'a, Result<()>> {
        let [four, six] = POOLS;
        let probing = serde_json::json!({});
        let segments = [
            (four, "10.77.192.0/19", "10.77.193.0-10.77.193.99"),
            (six, "fd77:0:0:0:c000::/67", "fd77:0:0:0:c000::100-fd77:0:0:0:c000::163"),
        ]
        .map(|(name, cidr, range)| Segment {
            name,
            cidr,
            gateway: None,
            range,
            probing: probing.clone(),
        });
        async move { prepare(admin, &segments).await }.boxed()
    }

    fn run(&self, session: Session) -> BoxFuture<'_, ()> {
        run(session).boxed()
    }
}

async fn run(mut session: Session) {
    let mut count = 0_u64;
    while session.works() {
        count += 1;
        let live = live(&mut session, count);
        match session.random.below(12) {
            0..=2 => plain(&mut session, live).await,
            3 => raced(&mut session, live).await,
            4 | 5 => killed_add(&mut session, live).await,
            6 => killed_del(&mut session, live).await,
            7 | 8 => late_add(&mut session, live).await,
            9 => late_del(&mut session, live).await,
            10 => vanished(&mut session, live).await,
            _ => {
                count += 1;
                let other = self::live(&mut session, count);
                collected(&mut session, live, other).await;
            }
        }
        for _ in 0..OPERATIONS {
            session.rest().await;
        }
    }
}

/// New container, with or without a pod.
fn live(session: &mut Session, count: u64) -> Live {
    let container = format!("{NAME}-{}-{count}", session.number);
    let pod = session.chance(50).then(|| [NAME.to_owned(), container.clone(), format!("uid-{container}")]);
    let (config, pools) = (format!("{NAME}-{}", session.number), POOLS.map(|pool| vec![pool.to_owned()]));
    Live::new(session, Attachment { config, container, pod, pools })
}

/// ADD, repeated ADD and CHECK, DEL, repeated DEL, and the same container id once more.
async fn plain(session: &mut Session, mut live: Live) {
    let mut is_added = live.add(session).await;
    if is_added && session.chance(40) {
        live.plug_in(session).await;
    }
    if is_added && session.chance(40) {
        is_added = live.attachment.check(session, &live.addresses).await.is_done();
    }
    if is_added && session.chance(40) {
        let ended = live.attachment.add(session, Run::default()).await;
        live.added(ended);
    }
    let attachment = live.attachment.clone();
    live.end(session).await;
    if session.chance(30) {
        attachment.del(session, &[], Run::default()).await;
    }
    if session.works() && session.chance(40) {
        let mut again = Live::new(session, attachment);
        again.add(session).await;
        again.end(session).await;
    }
}

/// Two processes run ADD of one attachment at the same time.
async fn raced(session: &mut Session, mut live: Live) {
    let mut twin = session.fork();
    let attachment = live.attachment.clone();
    let both = join(attachment.add(session, Run::default()), attachment.add(&mut twin, Run::default())).await;
    live.added(both.0);
    live.added(both.1);
    if live.add(session).await && session.chance(30) {
        live.plug_in(session).await;
    }
    live.end(session).await;
}

/// ADD that is killed at any point, then repeated or abandoned.
async fn killed_add(session: &mut Session, mut live: Live) {
    let run = killed(session);
    let ended = live.attachment.add(session, run).await;
    live.added(ended);
    if session.chance(60) {
        live.add(session).await;
    }
    live.end(session).await;
}

/// DEL that is killed at any point, then repeated.
async fn killed_del(session: &mut Session, mut live: Live) {
    live.add(session).await;
    let run = killed(session);
    live.attachment.del(session, &live.addresses, run).await;
    live.end(session).await;
}

/// ADD that was held while a DEL of its attachment was answered.
async fn late_add(session: &mut Session, mut live: Live) {
    if session.chance(50) {
        // The attachment lives, and the late ADD is a repetition.
        live.add(session).await;
    }
    let overtaking = Arc::new(Overtaking::default());
    let run = Run::held(hold(session), &overtaking);
    let mut twin = session.fork();
    let (attachment, addresses) = (live.attachment.clone(), live.addresses.clone());
    let del = async {
        overtaking.started().await;
        if attachment.del(session, &addresses, Run::default()).await.is_done() {
            overtaking.answered();
        }
    };
    let (ended, ()) = join(attachment.add(&mut twin, run), del).await;
    live.added(ended);
    if session.works() && session.chance(50) {
        // This ADD started after the DEL.
        live.add(session).await;
    }
    live.end(session).await;
}

/// DEL that was held while an ADD of its attachment was answered.
async fn late_del(session: &mut Session, mut live: Live) {
    let overtaking = Arc::new(Overtaking::default());
    let run = Run::held(hold(session), &overtaking);
    let mut twin = session.fork();
    let attachment = live.attachment.clone();
    let add = async {
        overtaking.started().await;
        let is_added = live.add(session).await;
        if is_added {
            overtaking.answered();
        }
        is_added
    };
    let (_, is_added) = join(attachment.del(&mut twin, &[], run), add).await;
    if is_added {
        attachment.check(session, &live.addresses).await;
    }
    live.end(session).await;
}

/// Container that ends without a DEL.
async fn vanished(session: &mut Session, mut live: Live) {
    if live.add(session).await {
        live.plug_in(session).await;
        live.vanish(session).await;
    } else {
        live.end(session).await;
    }
}

/// GC whose list has one of two containers.
async fn collected(session: &mut Session, mut valid: Live, mut gone: Live) {
    if valid.add(session).await && gone.add(session).await {
        gone.vanish(session).await;
        gone.attachment.collect(session, &gone.addresses, &[&valid.attachment]).await;
        valid.attachment.check(session, &valid.addresses).await;
    }
    gone.end(session).await;
    valid.end(session).await;
}

/// A kill at a random point; one in four between `exec` and the first instruction.
fn killed(session: &mut Session) -> Run {
    let longest = KILL_US_MAX << session.random.below(4);
    let micros = u64::try_from(session.random.below(longest)).unwrap_or_default();
    let run = Run::killed(Duration::from_micros(micros));
    if session.chance(25) { Run { hold: run.kill_after, ..run } } else { run }
}

fn hold(session: &mut Session) -> Duration {
    let millis = session.between(HOLD_MS.0, HOLD_MS.1);
    Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}
