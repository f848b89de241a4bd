//! Workload `sticky`: endpoints that move between nodes and keep their addresses.
//!
//! Pods of a `StatefulSet` restart on another node, under another uid; machines migrate live, so that two
//! attachments hold one address. A DEL of either only detaches: its `grants` are empty, and `detail.by` is
//! `attachment`. A release of the endpoint or a scale-down ends the grants. Until then, all answers for an
//! endpoint have the same addresses. The key is that of an attachment on a node without an agent.
//! `detail.late` marks an ADD that started before a DEL that was answered: it must not succeed.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use futures::future::{BoxFuture, FutureExt as _, join};
use ipam_api::client::Call;
use ipam_api::problem::{Applied, Problem};
use ipam_api::request::{Allocated, Released};
use serde_json::{Value as Json, json};
use tokio::time::Instant;

use super::requests::{ended, endpoint_key, grants_of};
use super::resources::{Space, make_pool, make_subnet};
use super::{Phase, Server, Session, Workload, add_detail};
use crate::history::{Function, Grant, Value};

const NAME: &str = "sticky";
const SPACE: Space = Space(14);
/// Pool of IPv6.
const NAME_6: &str = "sticky-6";
/// Sessions.
const SESSIONS: usize = 3;
/// Endpoints of a session: the even ones are pods, the odd ones machines.
const ENDPOINTS: usize = 6;
/// Time for the DELs at the end of a run.
const SETTLE: Duration = Duration::from_secs(6);

/// Controllers whose endpoints move.
pub(super) struct Sticky;

impl Workload for Sticky {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "pods of a StatefulSet and virtual machines move between nodes and keep their addresses"
    }

    fn sessions(&self) -> usize {
        SESSIONS
    }

    fn functions(&self) -> &'static [Function] {
        &[Function::Allocate, Function::Release]
    }

    fn prepare<'a>(&'a self, admin: &'a dyn Server) -> BoxFuture<'a, Result<()>> {
        async move {
            make_subnet(admin, NAME, SPACE.ipv4_cidr()).await?;
            make_subnet(admin, NAME_6, SPACE.ipv6_cidr()).await?;
            make_pool(admin, NAME, NAME, json!({"ranges": [SPACE.range(1, 0, 63)]})).await?;
            let range = format!("{}-{}", SPACE.ipv6(0x100), SPACE.ipv6(0x13f));
            make_pool(admin, NAME_6, NAME_6, json!({"ranges": [range]})).await
        }
        .boxed()
    }

    fn run(&self, session: Session) -> BoxFuture<'_, ()> {
        Controllers::new(session).run().boxed()
    }
}

/// Attachment of an endpoint.
#[derive(Debug, Clone)]
struct Attached {
    node: String,
    container: String,
}

/// Attachments and grants of an endpoint that its session knows.
#[derive(Debug, Clone, Default)]
struct Known {
    attached: Vec<Attached>,
    grants: Vec<Grant>,
}

/// Controllers of one session with their nodes, which have no agents and no other users.
struct Controllers {
    session: Session,
    begun: Instant,
    /// Latest start of a process, in microseconds.
    newest_us: u64,
    /// Number of containers so far.
    containers: u64,
    known: BTreeMap<usize, Known>,
}

impl Controllers {
    fn new(session: Session) -> Self {
        Self { session, begun: Instant::now(), newest_us: 0, containers: 0, known: BTreeMap::new() }
    }

    async fn run(mut self) {
        while self.session.works() {
            let number = self.session.random.below(ENDPOINTS);
            let count = self.known.get(&number).map_or(0, |known| known.attached.len());
            match (count, self.session.random.below(10)) {
                (0, 9) => self.release(number).await,
                (0, 8) if is_pod(number) => self.scale().await,
                (0, _) => self.start(number).await,
                (1, 0..=4) => self.move_on(number).await,
                (_, 5) => self.late_add(number).await,
                (1, 6) if !is_pod(number) => self.start(number).await,
                _ => self.detach_one(number).await,
            }
            self.session.rest().await;
        }
        let deadline = Instant::now() + SETTLE;
        for number in 0..ENDPOINTS / 2 {
            while self.known.get(&number).is_some_and(|known| !known.attached.is_empty())
                && self.session.phase() == Phase::Settle
                && Instant::now() < deadline
            {
                self.detach_one(number).await;
                self.session.rest().await;
            }
        }
    }

    /// ADD of a new container, on either node.
    async fn start(&mut self, number: usize) {
        let side = self.session.random.below(2);
        let attached = self.new_container(side);
        self.attach(number, &attached).await;
    }

    /// ADD on the other node before, after, or at the same time as DEL on the present one.
    async fn move_on(&mut self, number: usize) {
        let Some(old) = self.known.get(&number).and_then(|known| known.attached.first()).cloned() else {
            return;
        };
        let new = self.new_container(usize::from(old.node.ends_with('a')));
        match self.session.random.below(3) {
            0 => {
                self.attach(number, &new).await;
                self.detach(number, &old).await;
            }
            1 => {
                self.detach(number, &old).await;
                self.attach(number, &new).await;
            }
            _ => {
                let (add, del) = (self.started(), self.started());
                let mut twin = self.session.fork();
                let adding = add_request(&mut twin, number, &new, &add, false);
                let deleting = del_request(&mut self.session, number, &old, &del);
                let (added, deleted) = join(adding, deleting).await;
                self.attached(number, &new, added);
                self.detached(number, &old, &deleted);
            }
        }
    }

    /// DEL of a container that is unknown yet, and then its ADD, which started earlier.
    async fn late_add(&mut self, number: usize) {
        let attached = self.new_container(0);
        let (add, del) = (self.started(), self.started());
        let is_late = del_request(&mut self.session, number, &attached, &del).await.is_ok();
        let added = add_request(&mut self.session, number, &attached, &add, is_late).await;
        self.attached(number, &attached, added);
    }

    async fn detach_one(&mut self, number: usize) {
        let attached = self.known.get(&number).map(|known| known.attached.clone()).unwrap_or_default();
        if let Some(one) = self.session.one_of(&attached) {
            self.detach(number, &one).await;
        }
    }

    async fn attach(&mut self, number: usize, attached: &Attached) {
        let started = self.started();
        let added = add_request(&mut self.session, number, attached, &started, false).await;
        self.attached(number, attached, added);
    }

    async fn detach(&mut self, number: usize, attached: &Attached) {
        let started = self.started();
        let deleted = del_request(&mut self.session, number, attached, &started).await;
        self.detached(number, attached, &deleted);
    }

    fn attached(&mut self, number: usize, attached: &Attached, added: Result<Allocated, Problem>) {
        let known = self.known.entry(number).or_default();
        match added {
            Ok(answer) => {
                known.grants = grants_of(&answer);
                known.attached.push(attached.clone());
            }
            // The ADD may have taken effect, so a DEL follows.
            Err(problem) if problem.applied == Applied::Unknown => known.attached.push(attached.clone()),
            Err(_) => {}
        }
    }

    fn detached(&mut self, number: usize, attached: &Attached, deleted: &Result<Released, Problem>) {
        if deleted.is_ok() {
            let known = self.known.entry(number).or_default();
            known.attached.retain(|one| one.container != attached.container);
        }
    }

    /// Release of an endpoint without attachments.
    async fn release(&mut self, number: usize) {
        let (at, key) = (self.session.any_member(), self.session.maybe_key());
        let grants = self.known.get(&number).map(|known| known.grants.clone()).unwrap_or_default();
        let endpoint = endpoint(self.session.number, number);
        let released = self.session.release_endpoint(at, &endpoint, &grants, key.as_deref()).await;
        if let (Ok(_), Some(known)) = (released, self.known.get_mut(&number)) {
            known.grants.clear();
        }
    }

    /// Scale-down of the `StatefulSet`: its endpoints without attachments lose their addresses.
    async fn scale(&mut self) {
        let at = self.session.any_member();
        let body = json!({
            "namespace": NAME, "replicas": 0, "controller": controller(self.session.number, 0),
        });
        let Ok(call) = Call::post("/v1/controllers/scale").json(&body) else { return };
        let key = self.session.maybe_key();
        let call = self.session.prepared(call, key.as_deref());
        let session = self.session.number;
        let pods = self.known.iter().filter(|(number, known)| is_pod(**number) && known.attached.is_empty());
        let grants = pods.flat_map(|(number, known)| {
            let of = Some(endpoint(session, *number));
            known.grants.iter().cloned().map(move |grant| Grant { endpoint: of.clone(), ..grant })
        });
        let detail = json!({"by": "controller"});
        let value = Value { key, grants: grants.collect(), detail, ..Value::default() };
        let scaled = self.session.call::<Released>(at, Function::Release, value, call, ended).await;
        if scaled.is_ok() {
            for (number, known) in &mut self.known {
                if is_pod(*number) && known.attached.is_empty() {
                    known.grants.clear();
                }
            }
        }
    }

    fn new_container(&mut self, side: usize) -> Attached {
        self.containers += 1;
        let side = if side == 0 { 'a' } else { 'b' };
        let session = self.session.number;
        Attached {
            node: format!("{NAME}-{session}-{side}"),
            container: format!("{NAME}-{session}-{}", self.containers),
        }
    }

    /// Start of a process, later than all earlier ones.
    fn started(&mut self) -> Json {
        let now = u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.newest_us = now.max(self.newest_us.saturating_add(1));
        json!({"boot_id": "11111111-1111-4111-8111-111111111111", "at_us": self.newest_us})
    }
}

fn is_pod(number: usize) -> bool {
    number.is_multiple_of(2)
}

/// Name of an endpoint in histories.
fn endpoint(session: usize, number: usize) -> String {
    let kind = if is_pod(number) { "pod" } else { "vm" };
    format!("{kind}/default/{NAME}/{NAME}-{session}-{number}")
}

fn controller(session: usize, number: usize) -> Json {
    if is_pod(number) {
        json!({"group": "apps", "kind": "StatefulSet", "name": format!("{NAME}-{session}")})
    } else {
        let name = format!("{NAME}-{session}-{number}");
        json!({"group": "kubevirt.io", "kind": "VirtualMachineInstance", "name": name})
    }
}

fn key(attached: &Attached) -> String {
    format!("{NAME}/{}/eth0@{}", attached.container, attached.node)
}

fn attachment(attached: &Attached) -> Json {
    let Attached { node, container } = attached;
    json!({"node": node, "config": NAME, "container_id": container, "interface": "eth0"})
}

async fn add_request(
    session: &mut Session,
    number: usize,
    attached: &Attached,
    started: &Json,
    is_late: bool,
) -> Result<Allocated, Problem> {
    let endpoint = endpoint(session.number, number);
    let pools = [NAME.to_owned(), NAME_6.to_owned()];
    let body = json!({
        "endpoint": endpoint_key(&endpoint), "uid": format!("uid-{}", attached.container),
        "node": attached.node, "attachment": attachment(attached), "started": started,
        "controller": controller(session.number, number),
        "interfaces": [{"name": "eth0", "ipv4_pools": [NAME], "ipv6_pools": [NAME_6]}],
    });
    let call = session.prepared(Call::post("/v1/allocations").json(&body)?, None).repeatable();
    let mut value =
        Value { key: Some(key(attached)), endpoint: Some(endpoint), pools: pools.into(), ..Value::default() };
    if is_late {
        add_detail(&mut value, "late", true.into());
    }
    let done = |answer: &Allocated, value: &mut Value| value.grants = grants_of(answer);
    let at = session.any_member();
    session.call(at, Function::Allocate, value, call, done).await
}

async fn del_request(
    session: &mut Session,
    number: usize,
    attached: &Attached,
    started: &Json,
) -> Result<Released, Problem> {
    let body = json!({"attachment": attachment(attached), "started": started});
    let call = session.prepared(Call::post("/v1/attachments/release").json(&body)?, None).repeatable();
    let endpoint = Some(endpoint(session.number, number));
    let detail = json!({"by": "attachment"});
    let value = Value { key: Some(key(attached)), endpoint, detail, ..Value::default() };
    let at = session.any_member();
    session.call(at, Function::Release, value, call, ended).await
}
