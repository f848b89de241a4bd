//! What enters the log, and what comes out of `apply`.
//!
//! These types are raft's own and travel in postcard, by position: enum variants are only ever appended,
//! and a change of a struct raises the version of the batch that carries it. The golden bytes in
//! `raft/tests/golden.rs` hold them still.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use ipam_api::address::AddressRange;
use ipam_api::name::{InterfaceName, Name, ObjectName};
use ipam_api::request::AttachmentKey;
use ipam_api::resource::{EndpointKey, Lifecycle, Route, Strategy};
use ipam_api::{Code, Problem};
use ipnet::IpNet;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Text that is shared rather than copied.
pub type Text = Arc<str>;

/// One proposal: who wants what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Who asks, and how.
    pub origin: Origin,
    /// What shall happen.
    pub action: Action,
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
    /// Give up the oldest part of the journal.
    TrimJournal {
        /// The newest segment to go.
        through: u64,
    },
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
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Kind::Network => "network",
            Kind::Subnet => "subnet",
            Kind::Pool => "pool",
            Kind::Reservation => "reservation",
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
}

impl Refusal {
    pub(super) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), help: None }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let problem = Problem::new(refusal.code, refusal.detail);
        match refusal.help {
            Some(help) => problem.help(help),
            None => problem,
        }
    }
}
