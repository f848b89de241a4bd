//! The rules once more, as lists that are walked: no index, no count that is kept, no clever structure.
//! It says what the machine must answer, to the address, and what must be there afterwards.

pub(crate) mod addresses;
pub(crate) mod agent;
pub(crate) mod allocate;
pub(crate) mod automatic;
pub(crate) mod boots;
mod bulk;
pub(crate) mod change;
pub(crate) mod lease;
pub(crate) mod pods;
mod preallocated;
pub(crate) mod prefix;
pub(crate) mod prefix_list;
mod prefix_waiting;
pub(crate) mod probes;
pub(crate) mod quota;
pub(crate) mod routing;
pub(crate) mod skipped;
pub(crate) mod sticky;
pub(crate) mod waiting;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use ipam_api::access::NodeKey;
use ipam_api::address::{AddressRange, number};
use ipam_api::name::{InterfaceName, Name, ObjectName, ResourceName};
use ipam_api::request::AttachmentKey;
use ipam_api::resource::{EndpointKey, Lifecycle};
use ipam_api::{Code, Family};
use ipam_machine::command::{
    Controller, Expect, HostPolicySpec, Kind, NamespaceSpec, NetworkSpec, NodeSpec, OnLinks, PoolSpec,
    ReportedBoot, ReportedPod, ReservationSpec, RouteConfig, Started, SubnetSpec, Text,
};
use ipam_machine::event::WaitReason;
use ipam_machine::model::{Automatic, Sticky};
use ipam_machine::{Action, At, Command};

use ipnet::IpNet;

use crate::model::naive::agent::Report;
use crate::model::naive::boots::Boot;
use crate::model::naive::prefix::{Block, CoolingBlock};
use crate::model::naive::prefix_waiting::PrefixClaim;
use crate::model::naive::probes::{Check, Neighbor, Quarantined};
use crate::model::naive::waiting::Claim;

/// The machine's answer, as far as the model can predict it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Stored {
        created: bool,
    },
    Gone,
    Draining(u64),
    Given {
        repeated: bool,
        addresses: Vec<(InterfaceName, IpAddr)>,
    },
    /// Each endpoint by its index, in any order.
    GivenMany {
        repeated: Vec<u32>,
        addresses: BTreeSet<(u32, IpAddr)>,
    },
    Released(Vec<IpAddr>),
    /// The addresses in order.
    ReleasedMany {
        addresses: Vec<IpAddr>,
        gone: u64,
    },
    Late,
    Renewed(Vec<(IpAddr, u64)>),
    Pending {
        repeated: bool,
        why: WaitReason,
    },
    Expired(u64),
    Steps(Vec<Reply>),
    Delegated {
        repeated: bool,
        cidrs: Vec<IpNet>,
    },
    TakenBack {
        cidrs: Vec<IpNet>,
        ending: bool,
    },
    /// Without the digest of the inventory: of what a transaction has given, the model knows no id yet.
    Heard {
        boot: ReportedBoot,
        attachments: u64,
    },
    OrphansReleased {
        addresses: Vec<IpAddr>,
        stale: u64,
    },
    Probed {
        recorded: u64,
        refused: u64,
    },
    Reclaimed {
        addresses: Vec<IpAddr>,
        stale: u64,
    },
    PodsReported,
    /// Of listed owners, the block or the reason for waiting; and the owners that were left out.
    PrefixesSet {
        prefixes: Vec<Result<IpNet, WaitReason>>,
        released: Vec<(ObjectName, Option<IpNet>)>,
        ending: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) spec: PoolSpec,
    pub(crate) cursor: Option<IpAddr>,
    pub(crate) automatic: Option<Automatic>,
}

/// Held address. Its id is not foretold: 0 until the machine has said it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) id: u64,
    pub(crate) network: Name,
    pub(crate) pool: Name,
    pub(crate) address: IpAddr,
    pub(crate) endpoint: u64,
    pub(crate) interface: InterfaceName,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) adopted: bool,
    pub(crate) node: Option<ObjectName>,
    pub(crate) route_config: RouteConfig,
    /// The oldest first.
    pub(crate) attachments: Vec<AttachmentKey>,
    /// TTL and end of its lease.
    pub(crate) lease: Option<(u64, u64)>,
    pub(crate) checked: bool,
    pub(crate) mac: Option<Text>,
    pub(crate) neighbor: Option<Box<Neighbor>>,
}

/// Unique key of an address.
pub(crate) type Spot = (Name, IpAddr);

impl Held {
    pub(crate) fn spot(&self) -> Spot {
        (self.network.clone(), self.address)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cooling {
    pub(crate) network: Name,
    pub(crate) pool: Name,
    pub(crate) address: IpAddr,
    pub(crate) until_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Incarnation {
    pub(crate) number: u64,
    pub(crate) key: EndpointKey,
    pub(crate) uid: Option<Text>,
    pub(crate) controller: Option<Controller>,
    pub(crate) sticky: Option<Sticky>,
    pub(crate) claim: Option<Claim>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tombstone {
    pub(crate) key: AttachmentKey,
    pub(crate) releases: Vec<Started>,
    pub(crate) until_ms: u64,
}

/// Everything, in lists; where there is an age, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) now: u64,
    /// Number of the leadership, and the time before which no lease ends.
    pub(crate) leadership: (u64, u64),
    pub(crate) networks: BTreeMap<Name, NetworkSpec>,
    pub(crate) subnets: BTreeMap<Name, SubnetSpec>,
    pub(crate) pools: BTreeMap<Name, Pool>,
    pub(crate) reservations: BTreeMap<Name, ReservationSpec>,
    pub(crate) nodes: BTreeMap<ResourceName, NodeSpec>,
    pub(crate) host_policies: BTreeMap<Name, HostPolicySpec>,
    pub(crate) namespaces: BTreeMap<ResourceName, NamespaceSpec>,
    pub(crate) held: Vec<Held>,
    pub(crate) cooling: Vec<Cooling>,
    pub(crate) endpoints: Vec<Incarnation>,
    pub(crate) attachments: BTreeMap<AttachmentKey, (Started, u64)>,
    pub(crate) tombstones: Vec<Tombstone>,
    pub(crate) blocks: Vec<Block>,
    /// Addresses that cool in blocks, the longest-free first.
    pub(crate) cooling_blocks: Vec<CoolingBlock>,
    pub(crate) numbered: u64,
    /// Prefix requests that wait, the oldest first.
    pub(crate) prefix_claims: Vec<PrefixClaim>,
    pub(crate) boots: BTreeMap<NodeKey, Vec<Boot>>,
    pub(crate) reports: BTreeMap<NodeKey, Report>,
    /// Reported pods by realm and uid.
    pub(crate) reported_pods: BTreeMap<(Name, Text), ReportedPod>,
    /// Realms of reported pods, with the ends of their verification.
    pub(crate) reported_realms: BTreeMap<Name, u64>,
    /// As the machine said them: the model doesn't count revisions.
    pub(crate) revisions: BTreeMap<(Kind, ResourceName), u64>,
    pub(crate) incarnations: u64,
    /// Automatic pools, the oldest first.
    pub(crate) made: Vec<Name>,
    /// Names that the machine gave to pools that are new, still to be taken over.
    pub(crate) told: VecDeque<Name>,
    /// Places in line that were ever given.
    pub(crate) places: u64,
    /// Number of each living attachment, and the newest of them.
    pub(crate) ties: BTreeMap<AttachmentKey, u64>,
    pub(crate) tied: u64,
    /// Quarantines, replacements and collisions that were reported.
    pub(crate) noticed: u64,
    pub(crate) quarantines: Vec<Quarantined>,
    pub(crate) checks: Vec<Check>,
    /// As the machine numbered them: their probers depend on it.
    pub(crate) subnet_ids: BTreeMap<Name, u64>,
}

impl Model {
    pub(crate) fn apply(&mut self, at: At, command: &Command) -> Result<Reply, Code> {
        if at.leadership != self.leadership.0 {
            return Err(Code::NoLeader);
        }
        self.now = self.now.max(at.log_time_ms);
        let expired = self.expire();
        self.serve_waiting();
        if command.origin.not_after_ms.is_some_and(|last| self.now > last) {
            return Err(Code::DeadlineExceeded);
        }
        // What no state could accept: the scenarios have it, case by case.
        command.action.check().map_err(|refusal| refusal.code())?;
        match &command.action {
            Action::Expire => Ok(Reply::Expired(expired)),
            Action::Transaction(transaction) => {
                for condition in &transaction.preconditions {
                    self.expect(condition.kind, &condition.name, condition.expect)?;
                }
                let mut draft = self.clone();
                let said =
                    transaction.steps.iter().map(|step| draft.single(step).map_err(|code| (step, code)));
                let said = said.collect::<Result<_, _>>().map_err(|(step, code)| self.refused(step, code))?;
                *self = draft;
                Ok(Reply::Steps(said))
            }
            single => self.single(single).map_err(|code| self.refused(single, code)),
        }
    }

    fn single(&mut self, action: &Action) -> Result<Reply, Code> {
        let said = self.alone(action)?;
        self.forget_useless_checks();
        self.serve_waiting();
        Ok(said)
    }

    fn alone(&mut self, action: &Action) -> Result<Reply, Code> {
        match action {
            Action::PutNetwork(put) => self.put_network(&put.spec, put.expect),
            Action::PutSubnet(put) => self.put_subnet(&put.spec, put.expect),
            Action::PutPool(put) => self.put_pool(&put.spec, put.expect),
            Action::PutReservation(put) => self.put_reservation(&put.spec, put.expect),
            Action::PutNode(put) => {
                let name = put.spec.resource_name();
                self.expect(Kind::Node, &name, put.expect)?;
                Ok(Reply::Stored { created: self.nodes.insert(name, put.spec.clone()).is_none() })
            }
            Action::PutNamespace(put) => {
                let name = put.spec.resource_name();
                self.expect(Kind::Namespace, &name, put.expect)?;
                Ok(Reply::Stored { created: self.namespaces.insert(name, put.spec.clone()).is_none() })
            }
            Action::PutHostPolicy(put) => self.put_host_policy(&put.spec, put.expect),
            Action::Delete(delete) => self.delete(delete.kind, &delete.name, delete.expect, delete.drain),
            Action::SplitPool(split) => self.split(split),
            Action::Allocate(request) | Action::AllocateOnLinks(OnLinks(request)) => {
                let mut draft = self.clone();
                let said = draft.allocate(request)?;
                *self = draft;
                Ok(said)
            }
            Action::AllocateMany(many) => self.allocate_many(many),
            Action::ReleaseAllocations { ids } => Ok(self.release_allocations(ids)),
            Action::ReleaseAttachment(release) => Ok(self.release_attachment(&release.key, &release.started)),
            Action::ReleaseAttachmentOf(of) => Ok(self.release_attachment_of(of)),
            Action::ReleaseAllocation { id } => {
                self.held.iter().find(|one| one.id == id.get()).ok_or(Code::AllocationChanged)?;
                let said = self.release(|one| one.id == id.get());
                Ok(self.give_up_preallocated(said))
            }
            Action::ReleaseEndpoint { key } => {
                let all: Vec<u64> =
                    self.endpoints.iter().filter(|one| one.key == *key).map(|one| one.number).collect();
                if all.is_empty() {
                    return Err(Code::NotFound);
                }
                for one in self.endpoints.iter_mut().filter(|one| one.key == *key) {
                    one.claim = None;
                }
                let said = self.release_in_order_of(&all);
                self.forget_empty();
                Ok(said)
            }
            Action::ScaleController(scale) => {
                let said = self.scale(scale);
                self.scale_pools(scale);
                Ok(said)
            }
            Action::EndController(end) => Ok(self.end(end)),
            Action::Expire => Ok(Reply::Expired(0)),
            Action::TrimJournal { .. } | Action::SealJournal => {
                panic!("the model has no journal; tests/journal.rs has")
            }
            Action::RaiseLevel { .. } => panic!("the model has one level; the machine's own tests have more"),
            Action::ConfirmEpoch(_) => panic!("the model restores nothing; tests/epoch.rs does"),
            Action::JoinMember(_) | Action::ChangeMembers(_) => {
                panic!("the model has no members; tests/members.rs has")
            }
            Action::Delegate(request) => self.delegate(request),
            Action::DelegateOrWait(request) => self.delegate_or_wait(request),
            Action::ReleasePrefix { id } => self.release_prefix((*id).get()),
            Action::SetPrefixes(set) => self.set_prefixes(set),
            Action::Renew(request) => self.renew(request),
            Action::Heartbeat(heartbeat) => Ok(self.hear_node(heartbeat)),
            Action::ReleaseOrphans(request) => Ok(self.release_orphans(request)),
            Action::ReportProbes(report) => Ok(self.report_probes(report)),
            Action::ReportPods(report) => Ok(self.report_pods(report)),
            Action::EndQuarantine(of) => self.end_quarantine_of(of),
            Action::Reclaim(request) => self.reclaim(request),
            Action::EndIncarnation(end) => Ok(self.end_incarnation(end)),
            Action::Transaction(_) => Err(Code::InvalidField),
            Action::CreateToken(_)
            | Action::RotateToken { .. }
            | Action::Join { .. }
            | Action::RenewToken => {
                unreachable!("tokens have tests of their own")
            }
        }
    }

    // === Resources ===

    fn exists(&self, kind: Kind, name: &ResourceName) -> bool {
        let plain = |has: &dyn Fn(&Name) -> bool| name.name().is_some_and(|name| has(&name));
        match kind {
            Kind::Network => plain(&|name| self.networks.contains_key(name)),
            Kind::Subnet => plain(&|name| self.subnets.contains_key(name)),
            Kind::Pool => plain(&|name| self.pools.contains_key(name)),
            Kind::Reservation => plain(&|name| self.reservations.contains_key(name)),
            Kind::Token => false,
            Kind::Node => self.nodes.contains_key(name),
            Kind::Namespace => self.namespaces.contains_key(name),
            Kind::HostPolicy => plain(&|name| self.host_policies.contains_key(name)),
        }
    }

    pub(crate) fn expect(
        &self,
        kind: Kind,
        name: impl Into<ResourceName>,
        expect: Expect,
    ) -> Result<(), Code> {
        let name = name.into();
        match (expect, self.exists(kind, &name)) {
            (Expect::Anything, _) | (Expect::Absent, false) => Ok(()),
            (Expect::Absent, true) => Err(Code::AlreadyExists),
            (Expect::Revision(_), false) => Err(Code::RevisionMismatch),
            (Expect::Revision(revision), true) => {
                let same = self.revisions.get(&(kind, name)) == Some(&revision);
                if same { Ok(()) } else { Err(Code::RevisionMismatch) }
            }
        }
    }

    fn put_network(&mut self, new: &NetworkSpec, expect: Expect) -> Result<Reply, Code> {
        self.expect(Kind::Network, &new.name, expect)?;
        Ok(Reply::Stored { created: self.networks.insert(new.name.clone(), new.clone()).is_none() })
    }

    fn put_subnet(&mut self, new: &SubnetSpec, expect: Expect) -> Result<Reply, Code> {
        self.expect(Kind::Subnet, &new.name, expect)?;
        if let Some(old) = self.subnets.get(&new.name) {
            if (old.cidr, &old.network) != (new.cidr, &new.network) {
                return Err(Code::ImmutableField);
            }
            let taken = |gateway| {
                self.holder(&new.network, gateway).is_some() || self.block_at(&new.network, gateway).is_some()
            };
            if new != old && new.gateway.is_some_and(taken) {
                return Err(Code::InUse);
            }
            let mut after = self.clone();
            after.subnets.insert(new.name.clone(), new.clone());
            if after.gives_a_gateway() {
                return Err(Code::Overlap);
            }
        } else if !self.networks.contains_key(&new.network) {
            return Err(Code::NotFound);
        } else if self.subnets.values().any(|other| {
            other.network == new.network
                && (other.cidr.contains(&new.cidr.addr()) || new.cidr.contains(&other.cidr.addr()))
        }) {
            return Err(Code::Overlap);
        }
        let created = self.subnets.insert(new.name.clone(), new.clone()).is_none();
        self.wake_what_left();
        Ok(Reply::Stored { created })
    }

    fn put_pool(&mut self, new: &PoolSpec, expect: Expect) -> Result<Reply, Code> {
        self.expect(Kind::Pool, &new.name, expect)?;
        let old = self.pools.get(&new.name).cloned();
        let new = &Model::operator_spec(old.as_ref(), new)?;
        let subnet = match &old {
            Some(old) if old.spec.subnet != new.subnet => return Err(Code::ImmutableField),
            Some(_) => self.subnets.get(&new.subnet),
            None => Some(self.subnets.get(&new.subnet).ok_or(Code::NotFound)?),
        };
        if old.is_none() && new.terminating {
            return Err(Code::Terminating);
        }
        let subnet = subnet.expect("a pool's subnet is there");
        if new.network.as_ref().is_some_and(|network| *network != subnet.network) {
            return Err(Code::ConflictingFields);
        }
        let cidr = AddressRange::of_cidr(subnet.cidr);
        for range in new.ranges.iter().chain(&new.exclude) {
            if range.family() != cidr.family() {
                return Err(Code::FamilyMismatch);
            }
            if !cidr.contains(range) {
                return Err(Code::OutsideSubnet);
            }
        }
        let new = PoolSpec { network: None, ..new.clone() };
        let mine = |address| self.owns(&new, address);
        let others = |address| {
            self.pools.values().any(|other| {
                other.spec.name != new.name
                    && self.subnet_of(&other.spec).network == subnet.network
                    && self.owns(&other.spec, address)
            })
        };
        if all_of(subnet.cidr).any(|address| mine(address) && others(address)) {
            return Err(Code::Overlap);
        }
        self.check_gateway(&new)?;
        let drains = |pool: &Option<Pool>| pool.as_ref().and_then(|pool| pool.spec.drains_to.clone());
        let other_way = drains(&old) != new.drains_to;
        if other_way {
            self.check_drains_to(&new)?;
        }
        let losing = |one: &&Held| one.pool == new.name && !self.allocatable(&new, one.address);
        if self.held.iter().find(losing).is_some() || self.loses_a_block(&new) {
            return Err(Code::InUse);
        }
        let created = old.is_none();
        let unchanged = old.as_ref().is_some_and(|old| old.spec == new);
        let name = new.name.clone();
        let cursor = old.as_ref().and_then(|old| old.cursor);
        let automatic = old.and_then(|old| old.automatic);
        self.pools.insert(name.clone(), Pool { spec: new, cursor, automatic });
        self.wake_what_left();
        if other_way {
            self.wait_for_stand_in(&name);
        }
        let gone = !unchanged && self.drop_if_drained(&name);
        Ok(if gone { Reply::Gone } else { Reply::Stored { created } })
    }

    fn put_reservation(&mut self, new: &ReservationSpec, expect: Expect) -> Result<Reply, Code> {
        self.expect(Kind::Reservation, &new.name, expect)?;
        match self.reservations.get(&new.name) {
            Some(old) if old.network != new.network => return Err(Code::ImmutableField),
            None if !self.networks.contains_key(&new.network) => return Err(Code::NotFound),
            _ => {}
        }
        if self.is_recorded_wrongly(new) {
            return Err(Code::AddressTaken);
        }
        Ok(Reply::Stored { created: self.reservations.insert(new.name.clone(), new.clone()).is_none() })
    }

    fn put_host_policy(&mut self, new: &HostPolicySpec, expect: Expect) -> Result<Reply, Code> {
        self.expect(Kind::HostPolicy, &new.name, expect)?;
        match self.host_policies.get(&new.name) {
            Some(old) if old.realm != new.realm => Err(Code::ImmutableField),
            _ => {
                let old = self.host_policies.insert(new.name.clone(), new.clone());
                Ok(Reply::Stored { created: old.is_none() })
            }
        }
    }

    /// True if an address that is newly recorded for an endpoint is another one's.
    fn is_recorded_wrongly(&self, new: &ReservationSpec) -> bool {
        let Some(endpoint) = &new.endpoint else { return false };
        let has = |spec: &ReservationSpec, address| {
            spec.addresses.iter().any(|range| range.contains(&AddressRange::single(address)))
        };
        let old = self.reservations.get(&new.name).filter(|old| old.endpoint == new.endpoint);
        let is_new = |address| has(new, address) && old.is_none_or(|old| !has(old, address));
        let is_other =
            |number: u64| self.endpoints.iter().any(|one| one.number == number && one.key != *endpoint);
        let mut held = self.held.iter().filter(|one| one.network == new.network);
        let mut others = self.reservations.values().filter(|other| {
            other.name != new.name
                && other.network == new.network
                && other.endpoint.as_ref().is_some_and(|other| other != endpoint)
        });
        held.any(|one| is_other(one.endpoint) && is_new(one.address))
            || others.any(|other| {
                let all = |range: &AddressRange| {
                    let family = range.family();
                    (range.first()..=range.last()).map(move |number| family.address(number))
                };
                new.addresses.iter().flat_map(all).any(|address| is_new(address) && has(other, address))
            })
    }

    fn delete(
        &mut self,
        kind: Kind,
        name: &ResourceName,
        expect: Expect,
        drain: bool,
    ) -> Result<Reply, Code> {
        if !self.exists(kind, name) {
            // A node without a description is known by its heartbeats.
            let is_reported = kind == Kind::Node && expect == Expect::Anything && self.forget_report(name);
            return if is_reported { Ok(Reply::Gone) } else { Err(Code::NotFound) };
        }
        self.expect(kind, name, expect)?;
        if kind.is_in_realm() {
            self.nodes.retain(|key, _| kind != Kind::Node || key != name);
            self.namespaces.retain(|key, _| kind != Kind::Namespace || key != name);
            if kind == Kind::Node {
                self.forget_report(name);
            }
            return Ok(Reply::Gone);
        }
        let name = &name.name().expect("it exists");
        match kind {
            Kind::Token | Kind::Node | Kind::Namespace => unreachable!("tokens have tests of their own"),
            Kind::Network => {
                let used = name.as_str() == "default"
                    || self.subnets.values().any(|one| one.network == *name)
                    || self.reservations.values().any(|one| one.network == *name);
                if used {
                    return Err(Code::InUse);
                }
                self.networks.remove(name);
            }
            Kind::Subnet => {
                if self.pools.values().any(|pool| pool.spec.subnet == *name) {
                    return Err(Code::InUse);
                }
                self.subnets.remove(name);
            }
            Kind::Reservation => {
                self.reservations.remove(name);
            }
            // The addresses of its hosts stay.
            Kind::HostPolicy => drop(self.host_policies.remove(name)),
            Kind::Pool => {
                let held = self.held_of(name);
                if held > 0 && !drain {
                    return Err(Code::InUse);
                }
                self.pools.get_mut(name).ok_or(Code::NotFound)?.spec.terminating |= held > 0;
                if held > 0 {
                    return Ok(Reply::Draining(held));
                }
                self.drop_pool(name);
            }
        }
        Ok(Reply::Gone)
    }

    pub(crate) fn drop_if_drained(&mut self, name: &Name) -> bool {
        let drained =
            self.pools.get(name).is_some_and(|pool| pool.spec.terminating) && self.held_of(name) == 0;
        if drained {
            self.drop_pool(name);
        }
        drained
    }

    fn drop_pool(&mut self, name: &Name) {
        self.pools.remove(name);
        self.made.retain(|one| one != name);
        self.cooling.retain(|one| one.pool != *name);
        self.quarantines.retain(|one| one.pool != *name);
        self.checks.retain(|one| one.pool != *name);
        self.forget_waiting_for(name);
        self.prefix_claims.retain(|claim| claim.pool != *name);
    }

    /// Drops cooling and quarantined addresses that no pool contains any more.
    fn wake_what_left(&mut self) {
        let cooling = std::mem::take(&mut self.cooling);
        let kept = |one: &Cooling| {
            self.pools.get(&one.pool).is_some_and(|pool| self.allocatable(&pool.spec, one.address))
        };
        self.cooling = cooling.into_iter().filter(kept).collect();
        let quarantines = std::mem::take(&mut self.quarantines);
        let kept = |one: &Quarantined| {
            self.pools.get(&one.pool).is_some_and(|pool| self.allocatable(&pool.spec, one.address))
        };
        self.quarantines = quarantines.into_iter().filter(kept).collect();
    }

    // === Taking back ===

    pub(crate) fn release(&mut self, which: impl Fn(&Held) -> bool) -> Reply {
        let gone: Vec<Held> = self.held.iter().filter(|one| which(one)).cloned().collect();
        for one in &gone {
            self.held.retain(|other| other.spot() != one.spot());
            let cooling_ms = self.pools.get(&one.pool).map_or(0, |pool| pool.spec.cooling_ms);
            if cooling_ms > 0 {
                let Held { network, pool, address, .. } = one.clone();
                self.cooling.push(Cooling { network, pool, address, until_ms: self.now + cooling_ms });
            }
            if !self.drop_if_drained(&one.pool) {
                self.shed(&one.pool, one.address);
            }
        }
        self.forget_empty();
        self.forget_attachments();
        Reply::Released(gone.into_iter().map(|one| one.address).collect())
    }

    /// Attachments that hold nothing are gone.
    pub(crate) fn forget_attachments(&mut self) {
        let held = &self.held;
        self.attachments.retain(|key, _| held.iter().any(|one| one.attachments.contains(key)));
        let attachments = &self.attachments;
        self.ties.retain(|key, _| attachments.contains_key(key));
    }

    /// Endpoints that neither hold nor wait for anything are gone.
    pub(crate) fn forget_empty(&mut self) {
        let held = &self.held;
        self.endpoints.retain(|endpoint| {
            endpoint.claim.is_some() || held.iter().any(|one| one.endpoint == endpoint.number)
        });
    }
}

/// Every address of a CIDR. Only for small ones.
pub(crate) fn all_of(cidr: IpNet) -> impl Iterator<Item = IpAddr> {
    let family = Family::of(cidr.addr());
    (number(cidr.network())..=number(cidr.broadcast())).map(move |n| family.address(n))
}
