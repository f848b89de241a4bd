//! What enters the log, and what comes out of `apply`.
//!
//! These types are raft's own and travel in postcard, by position: enum variants are only ever appended,
//! and a change of a struct raises the version of the batch that carries it. The golden bytes in
//! `raft/tests/golden.rs` hold them still.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use ipam_api::access::{NodeKey, Role};
use ipam_api::address::AddressRange;
use ipam_api::name::{InterfaceName, Name, ObjectName};
use ipam_api::request::AttachmentKey;
use ipam_api::resource::{EndpointKey, Lifecycle, Route, Strategy};
use ipam_api::{Code, Problem, Selector};
use ipnet::IpNet;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::model::{Meta, Network, Pool, Reservation, Subnet, Token};

/// Text that is shared rather than copied.
pub type Text = Arc<str>;

/// One proposal: who wants what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Who asks, and how.
    pub origin: Origin,
    /// On which terms.
    pub terms: Terms,
    /// What shall happen.
    pub action: Action,
}

/// On which terms somebody asks: with which rights, under which key, and in whose management.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// With which rights.
    pub credential: Credential,
    /// Under which key, if the answer shall be kept for a repetition.
    pub idempotency: Option<Idempotency>,
    /// In whose management.
    pub manager: Manager,
}

impl Terms {
    /// No key, no management, and the rights of somebody whom the member knows.
    #[must_use]
    pub fn of(grant: Grant) -> Self {
        Self { credential: Credential::Known(grant), idempotency: None, manager: Manager::Nobody }
    }
}

/// What somebody's rights come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Credential {
    /// The member that took the request knows the caller by itself: a task of its own, a user of its socket, a
    /// certificate, somebody on loopback.
    Known(Grant),
    /// A token. What it may is looked up in `apply`, so that a revoked one can do nothing any more.
    Token {
        /// Its id.
        id: u64,
    },
}

/// Rights: a role, and what it is limited to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// What the table of roles allows.
    pub role: Role,
    /// The node that it speaks for. Required with [`Role::Node`].
    pub node: Option<NodeKey>,
    /// The realms of endpoints that it may give to and take from; all if none is named.
    pub realms: Vec<Name>,
    /// What resources must be labelled with to be changed, and pools to be taken from.
    pub labels: Selector,
}

impl Grant {
    /// All that a role may.
    #[must_use]
    pub fn of(role: Role) -> Self {
        Self { role, node: None, realms: Vec::new(), labels: Selector::default() }
    }

    /// What a node may.
    #[must_use]
    pub fn of_node(node: NodeKey) -> Self {
        Self { node: Some(node), ..Self::of(Role::Node) }
    }
}

/// A name that a caller gives to a request, to be answered the same when it repeats it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    /// The name; unique to the principal.
    pub key: Text,
    /// A hash of the request: another one under the same key is refused.
    pub request: u128,
}

/// In whose management somebody changes resources: those with a `managed_by` are changed by that manager only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Manager {
    /// In nobody's.
    #[default]
    Nobody,
    /// In this one's.
    Named(Text),
    /// Whoever manages it: somebody has said that it shall be changed all the same.
    TakeOver,
}

/// Who asks, and how. Travels with every proposal, forwarded or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Who asks.
    pub principal: Text,
    /// Through which door.
    pub via: Via,
    /// Names the request in logs, events and answers.
    pub request_id: Text,
    /// Why, in the asker's words.
    pub comment: Option<Text>,
    /// The log time after which nobody waits for the answer any more: the leader's log time on arrival plus
    /// what was left of the caller's budget. `apply` refuses what comes later.
    pub not_after_ms: Option<u64>,
}

/// Through which door a proposal came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Via {
    /// The REST API.
    Http,
    /// A CNI plugin.
    Cni,
    /// A leader-only task.
    Task,
}

/// What shall happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Create or replace a network.
    PutNetwork(Put<NetworkIntention>),
    /// Create or replace a subnet.
    PutSubnet(Put<SubnetIntention>),
    /// Create or replace a pool.
    PutPool(Put<PoolIntention>),
    /// Create or replace a reservation.
    PutReservation(Put<ReservationIntention>),
    /// Remove a resource.
    Delete(Delete),
    /// Give addresses.
    Allocate(Allocate),
    /// Take back what an attachment holds, and remember that it was released.
    ReleaseAttachment(ReleaseAttachment),
    /// Take back one allocation.
    ReleaseAllocation {
        /// Its id; a newer holder of the same address has another one.
        id: u64,
    },
    /// Take back all that an endpoint holds, in all its incarnations.
    ReleaseEndpoint {
        /// Which one.
        key: EndpointKey,
    },
    /// All of these, or none.
    Transaction(Transaction),
    /// Let log time pass: clear away what has cooled and what need no longer be remembered.
    Expire,
    /// Make a token.
    CreateToken(CreateToken),
    /// Give a token another secret; the old one is worth nothing from then on.
    RotateToken {
        /// Its name.
        name: Name,
        /// Hash of the new secret.
        secret_hash: SecretHash,
        /// What must be the case.
        expect: Expect,
    },
    /// Turn a join token into a token of a node. Once.
    Join {
        /// The node that joins.
        node: NodeKey,
        /// Hash of the secret that the node has made for itself.
        secret_hash: SecretHash,
    },
    /// Give up the oldest part of the journal.
    TrimJournal {
        /// The newest segment to go.
        through: u64,
    },
}

/// What is kept of a secret: its BLAKE3 hash. The secret has 244 random bits, so that nothing slower is needed.
pub type SecretHash = [u8; 32];

/// What is kept of a secret.
#[must_use]
pub fn secret_hash(secret: &str) -> SecretHash {
    *blake3::hash(secret.as_bytes()).as_bytes()
}

/// What tells one request from another under the same key: a hash of its parts.
#[must_use]
pub fn request_hash(parts: &[&[u8]]) -> u128 {
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    for part in parts {
        // With its length, so that nothing can move from one part to the next.
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.digest128()
}

/// Make a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateToken {
    /// Its name, which is also that of the principal who uses it.
    pub name: Name,
    /// What it is for.
    pub purpose: Purpose,
    /// What it may; for a join token, what the tokens made with it may.
    pub grant: Grant,
    /// How long it lives, in log time; for ever if it doesn't say.
    pub ttl_ms: Option<u64>,
    /// A sentence for people.
    pub description: Text,
    /// Hash of its secret.
    pub secret_hash: SecretHash,
}

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// To ask with.
    Bearer,
    /// To make a node's token with, once.
    Join,
}

/// Create or replace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Put<Intention> {
    /// What shall be.
    pub intention: Intention,
    /// What must be the case.
    pub expect: Expect,
}

/// What must be the case for a change to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expect {
    /// Nothing in particular.
    Anything,
    /// It doesn't exist.
    Absent,
    /// It exists in this revision.
    Revision(u64),
}

/// Remove a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delete {
    /// Of which kind.
    pub kind: Kind,
    /// Its name.
    pub name: Name,
    /// What must be the case.
    pub expect: Expect,
    /// If it is in use, let it end: give nothing more, and go once it is empty. Pools only.
    pub drain: bool,
}

/// The kinds of named resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// A network.
    Network,
    /// A subnet.
    Subnet,
    /// A pool.
    Pool,
    /// A reservation.
    Reservation,
    /// A token.
    Token,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Kind::Network => "network",
            Kind::Subnet => "subnet",
            Kind::Pool => "pool",
            Kind::Reservation => "reservation",
            Kind::Token => "token",
        })
    }
}

/// Several actions as one, if everything is as expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// What must be the case before the first step.
    pub preconditions: Vec<Precondition>,
    /// What shall happen, in this order. No transactions inside.
    #[serde(deserialize_with = "shallow_steps")]
    pub steps: Vec<Action>,
}

/// How deep bytes may nest transactions and still be read. One inside another is refused by the machine,
/// with a reason; a million of them would exhaust the stack of whoever reads them.
const NESTING_MAX: u8 = 4;

fn shallow_steps<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Action>, D::Error> {
    thread_local! {
        static DEPTH: Cell<u8> = const { Cell::new(0) };
    }
    let depth = DEPTH.get();
    if depth >= NESTING_MAX {
        return Err(D::Error::custom("transactions are nested too deep"));
    }
    DEPTH.set(depth + 1);
    let steps = Vec::deserialize(deserializer);
    DEPTH.set(depth);
    steps
}

/// What must be the case for a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Precondition {
    /// Of which kind.
    pub kind: Kind,
    /// Its name.
    pub name: Name,
    /// What must be the case with it.
    pub expect: Expect,
}

/// What people write on every resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remarks {
    /// A sentence for people.
    pub description: Text,
    /// For selecting.
    pub labels: BTreeMap<Text, Text>,
    /// For other programs.
    pub annotations: BTreeMap<Text, Text>,
    /// Who keeps the resource in another place.
    pub managed_by: Option<Text>,
}

/// A network as somebody wants it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkIntention {
    /// Its name.
    pub name: Name,
    /// What people write on it.
    pub remarks: Remarks,
}

/// A subnet as somebody wants it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubnetIntention {
    /// Its name.
    pub name: Name,
    /// Its network.
    pub network: Name,
    /// Its addresses.
    pub cidr: IpNet,
    /// The router's address.
    pub gateway: Option<IpAddr>,
    /// 802.1Q id.
    pub vlan: Option<u16>,
    /// Further routes of its hosts.
    pub routes: Vec<Route>,
    /// Name resolution of its hosts.
    pub dns: Dns,
    /// What people write on it.
    pub remarks: Remarks,
}

/// Name resolution.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dns {
    /// Name servers.
    pub nameservers: Vec<IpAddr>,
    /// The local domain.
    pub domain: Option<Text>,
    /// Search list.
    pub search: Vec<Text>,
    /// Resolver options.
    pub options: Vec<Text>,
}

/// A pool as somebody wants it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own that people set by name")]
pub struct PoolIntention {
    /// Its name.
    pub name: Name,
    /// Its subnet.
    pub subnet: Name,
    /// Its network, if the asker named one: it must be the subnet's.
    pub network: Option<Name>,
    /// Its addresses; none: all of the subnet.
    pub ranges: Vec<AddressRange>,
    /// Addresses that it doesn't give out.
    pub exclude: Vec<AddressRange>,
    /// How it chooses.
    pub strategy: Strategy,
    /// How long a freed address rests, in log time.
    pub cooling_ms: u64,
    /// Whether resting addresses stay at rest when nothing else is free.
    pub strict_cooling: bool,
    /// Whether the subnet's edge addresses may be given.
    pub allow_edges: bool,
    /// Whether requests that name no pool may take from it.
    pub default: bool,
    /// Whether it gives nothing for now.
    pub disabled: bool,
    /// Whether it goes once it is empty.
    pub terminating: bool,
    /// What people write on it.
    pub remarks: Remarks,
}

/// A reservation as somebody wants it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationIntention {
    /// Its name.
    pub name: Name,
    /// Its network.
    pub network: Name,
    /// The addresses that are never given.
    pub addresses: Vec<AddressRange>,
    /// What people write on it.
    pub remarks: Remarks,
}

/// Give addresses to one endpoint: everything that is asked for, or nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocate {
    /// Who gets them.
    pub endpoint: EndpointKey,
    /// Its incarnation, if the system that named it says.
    pub uid: Option<Text>,
    /// The node where they will be.
    pub node: Option<ObjectName>,
    /// The attachment that they belong to.
    pub attachment: Option<AttachmentKey>,
    /// When they end.
    pub lifecycle: Lifecycle,
    /// The interfaces that need addresses.
    pub interfaces: Vec<InterfaceWish>,
    /// When the asking process began. Required with an attachment.
    pub started: Option<Started>,
}

/// What one interface needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceWish {
    /// Its name.
    pub name: InterfaceName,
    /// IPv4 pools to try, in this order.
    pub ipv4_pools: Vec<Name>,
    /// IPv6 pools to try, in this order.
    pub ipv6_pools: Vec<Name>,
    /// Addresses asked for by value.
    pub addresses: Vec<IpAddr>,
    /// Its hardware address.
    pub mac: Option<Text>,
}

/// When a process began, on the clock of its machine's boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Which boot.
    pub boot_id: Text,
    /// Boot time in microseconds.
    pub at_us: u64,
}

/// What CNI DEL asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseAttachment {
    /// Which attachment.
    pub key: AttachmentKey,
    /// When the asking process began.
    pub started: Started,
}

/// What became of a command.
pub type Outcome = Result<Applied, Refusal>;

/// A command that was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// The state after it.
    pub revision: u64,
    /// What it says to the asker.
    pub answer: Answer,
    /// Whether this is the kept answer to an earlier request under the same key.
    pub replayed: bool,
}

/// What a command says to the asker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// A resource is as wanted.
    Stored {
        /// Whether it is new.
        created: bool,
        /// Its revision.
        revision: u64,
        /// As it is now.
        resource: Box<Stored>,
    },
    /// A resource is gone.
    Gone,
    /// A resource goes once it is empty.
    Draining {
        /// Addresses that are still held.
        held: u64,
    },
    /// Addresses were given, now or by an earlier request that was the same.
    Allocated {
        /// Whether it was an earlier request.
        repeated: bool,
        /// What each interface has.
        interfaces: Vec<GivenInterface>,
    },
    /// Addresses were taken back.
    Released {
        /// Which; none if there was nothing to take back.
        addresses: Vec<IpAddr>,
    },
    /// The steps of a transaction, each with its answer.
    Steps(Vec<Answer>),
    /// Time has passed.
    Expired {
        /// Rows cleared away.
        rows: u64,
    },
    /// The oldest part of the journal is gone.
    Trimmed {
        /// Segments given up now.
        segments: u64,
    },
}

impl Answer {
    /// A resource is new.
    pub(super) fn created(revision: u64, resource: Stored) -> Self {
        Self::Stored { created: true, revision, resource: Box::new(resource) }
    }

    /// A resource was already as wanted.
    pub(super) fn unchanged(meta: &Meta, resource: Stored) -> Self {
        Self::Stored { created: false, revision: meta.revision, resource: Box::new(resource) }
    }
}

/// A resource as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stored {
    /// A network.
    Network(Network),
    /// A subnet.
    Subnet(Subnet),
    /// A pool.
    Pool(Pool),
    /// A reservation.
    Reservation(Reservation),
    /// A token.
    Token(Token),
}

/// What one interface has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenInterface {
    /// Its name.
    pub name: InterfaceName,
    /// The attachment that it came with.
    pub attachment: Option<AttachmentKey>,
    /// Its addresses, IPv4 first.
    pub addresses: Vec<Given>,
}

/// One address with all that is needed to configure it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// The allocation's id.
    pub allocation: u64,
    /// The address with its subnet's prefix length.
    pub address: IpNet,
    /// The router.
    pub gateway: Option<IpAddr>,
    /// Further routes.
    pub routes: Vec<Route>,
    /// Name resolution.
    pub dns: Dns,
    /// 802.1Q id.
    pub vlan: Option<u16>,
    /// Where it was taken from.
    pub pool: Name,
    /// Whether the wire was asked and was silent.
    pub checked: bool,
}

/// Why a command was not carried out. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The stable code.
    pub code: Code,
    /// One sentence with the names and numbers.
    pub detail: String,
    /// What would help, where more is known than the catalogue says.
    pub help: Option<String>,
    /// Names and numbers for programs.
    pub context: Option<Box<Context>>,
    /// Whether this is the kept answer to an earlier request under the same key.
    pub replayed: bool,
}

/// What a refusal says to programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Context {
    /// Somebody else was faster.
    Changed {
        /// The present revision.
        current: u64,
        /// Who changed it.
        by: Text,
        /// Which fields the last change changed.
        fields: Vec<Text>,
    },
    /// It is in use.
    Held {
        /// How many addresses are held.
        held: u64,
        /// Some of them.
        examples: Vec<(IpAddr, EndpointKey)>,
    },
    /// A step of a transaction was refused.
    Step {
        /// Which, from 0.
        step: u32,
        /// What the step itself says.
        inner: Option<Box<Context>>,
    },
    /// Somebody else manages it.
    Managed {
        /// Who.
        by: Text,
    },
}

impl Refusal {
    pub(super) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), help: None, context: None, replayed: false }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(super) fn context(mut self, context: Context) -> Self {
        self.context = Some(Box::new(context));
        self
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let mut problem = Problem::new(refusal.code, refusal.detail);
        if let Some(help) = refusal.help {
            problem = problem.help(help);
        }
        match refusal.context {
            Some(context) => problem.with(|shown| context.show(shown)),
            None => problem,
        }
    }
}

impl Context {
    fn show(self, shown: &mut ipam_api::problem::Context) {
        match self {
            Context::Changed { current, by, fields } => {
                shown.current = Some(current.to_string());
                shown.changed_by = Some(by.to_string());
                shown.changed_fields = Some(fields.iter().map(ToString::to_string).collect());
            }
            Context::Held { held, examples } => {
                shown.held = Some(held);
                let holder = |(address, endpoint)| ipam_api::problem::Holder { address, endpoint };
                shown.examples = examples.into_iter().map(holder).collect();
            }
            Context::Step { step, inner } => {
                if let Some(inner) = inner {
                    inner.show(shown);
                }
                shown.step = Some(step);
            }
            Context::Managed { by } => shown.managed_by = Some(by.to_string()),
        }
    }
}
