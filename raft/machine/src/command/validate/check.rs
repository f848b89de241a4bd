//! Checks of specs that need no state. They run before a proposal, and again in `apply`, which trusts no
//! member.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipam_api::Family;
use ipam_api::address::{AddressRange, check_cidr};
use ipam_api::limits::{
    ALLOCATIONS_PER_ENDPOINT_MAX, AUTOMATIC_POOL_ADDRESSES_MAX, COOLING_MS_MAX, COOLING_RESERVE_MAX,
    DNS_DOMAIN_CHARS_MAX, DNS_ENTRIES_MAX, DNS_OPTION_CHARS_MAX, IDEMPOTENCY_KEY_BYTES_MAX, INTERFACES_MAX,
    LABEL_KEY_CHARS_MAX, LABEL_VALUE_CHARS_MAX, LABELS_MAX, LINK_ADDRESSES_MAX, MEMBERS_MAX, MTU_MAX,
    MTU_MIN_V4, MTU_MIN_V6, OBJECT_NAME_CHARS_MAX, POOLS_NAMED_MAX, RANGES_MAX, RECORDED_ADDRESSES_MAX,
    REQUESTED_ADDRESSES_MAX, RESOURCES_MAX, ROUTES_MAX, SELECTOR_NAMES_MAX, SUBNET_PREFIX_LENGTH_MIN_V4,
    SUBNET_PREFIX_LENGTH_MIN_V6, TEXT_CHARS_MAX, TRANSACTION_STEPS_MAX,
};
use ipam_api::name::Name;
use ipam_api::place::{PeerAddress, is_client_url};
use ipam_api::resource::Lifecycle;
use ipam_api::selector::check_label;
use ipnet::IpNet;

use crate::command::validate::bulk::check_release;
use crate::command::validate::{check_adoption, check_gateway, check_routes, check_take_over, check_wait};
use crate::command::{
    Action, Allocate, AllocationMetadata, AutomaticRules, Cause, ConfirmEpoch, Dns, Kind, KnownMember,
    Manager, Metadata, NamespaceSpec, OnLinks, PoolPatterns, PoolSelectors, PoolSpec, Refusal,
    ReservationSpec, SubnetSpec, Terms, Text,
};
use crate::value::cause::{Counted, KeyedField, SpecialUse, TextField};
use crate::value::refuse_if;
use crate::value::spec::{BOOT_ID_BYTES_MAX, VLAN_MAX};

/// Characters between two dots of a host name.
const HOSTNAME_LABEL_CHARS_MAX: usize = 63;

const _: () = assert!(INTERFACES_MAX * 2 <= ALLOCATIONS_PER_ENDPOINT_MAX);

impl Action {
    /// Refuses a command that no state could accept.
    ///
    /// # Errors
    /// The refusal that `apply` would return.
    pub fn check(&self) -> Result<(), Refusal> {
        match self {
            Action::PutNetwork(put) => {
                put.spec.probing.check()?;
                put.spec.metadata.check()
            }
            Action::PutSubnet(put) => put.spec.check(),
            Action::PutPool(put) => put.spec.check(),
            Action::PutReservation(put) => put.spec.check(),
            Action::PutNode(put) => put.spec.metadata.check(),
            Action::PutNamespace(put) => put.spec.check(),
            Action::PutHostPolicy(put) => put.spec.check(),
            Action::Allocate(request) | Action::AllocateOnLinks(OnLinks(request)) => request.check(),
            Action::ReleaseAttachment(release) => check_boot_id(&release.started.boot_id),
            Action::ReleaseAttachmentOf(of) => {
                text(TextField::Uid, &of.uid)?;
                check_boot_id(&of.release.started.boot_id)
            }
            Action::Transaction(transaction) => {
                within(Counted::Steps, transaction.steps.len(), TRANSACTION_STEPS_MAX)?;
                within(Counted::Preconditions, transaction.preconditions.len(), TRANSACTION_STEPS_MAX)?;
                for step in &transaction.steps {
                    refuse_if(matches!(step, Action::Transaction(_)), || Cause::NestedTransaction)?;
                    // A member that doesn't support a level must see the entry that raises it before applying
                    // any of it.
                    refuse_if(matches!(step, Action::RaiseLevel { .. }), || Cause::LevelInTransaction)?;
                    step.check()?;
                }
                Ok(())
            }
            Action::Delete(delete) if delete.drain && delete.kind != Kind::Pool => {
                Err(Cause::NotDrainable { kind: delete.kind }.into())
            }
            Action::SplitPool(split) => split.check(),
            Action::ScaleController(scale) => scale.check(),
            Action::EndController(end) => end.check(),
            Action::CreateToken(request) => request.check(),
            Action::ConfirmEpoch(request) => request.check(),
            Action::JoinMember(request) => {
                request.known.iter().try_for_each(KnownMember::check)?;
                within(Counted::Members, request.known.len(), MEMBERS_MAX)?;
                check_place(&request.disk_id, Some(&request.peer_address), &request.client_url)
            }
            Action::ChangeMembers(request) => {
                request.known.iter().try_for_each(KnownMember::check)?;
                for ids in [&request.promote, &request.remove, &request.voters] {
                    within(Counted::Members, ids.len(), MEMBERS_MAX)?;
                }
                within(Counted::Members, request.known.len(), MEMBERS_MAX)
            }
            Action::Delegate(request) | Action::DelegateOrWait(request) => request.check(),
            Action::SetPrefixes(request) => request.check(),
            Action::Renew(request) => request.check(),
            Action::Heartbeat(heartbeat) => heartbeat.check(),
            Action::ReleaseOrphans(request) => request.check(),
            Action::ReportProbes(report) => report.check(),
            Action::ReportPods(report) => report.check(),
            Action::Reclaim(reclaim) => reclaim.check(),
            Action::EndIncarnation(end) => end.check(),
            Action::AllocateMany(many) => many.check(),
            Action::ReleaseAllocations { ids } => check_release(ids),
            Action::ReleasePrefix { .. }
            | Action::Delete(_)
            | Action::RotateToken { .. }
            | Action::Join { .. }
            | Action::RenewToken
            | Action::EndQuarantine(_)
            | Action::ReleaseAllocation { .. }
            | Action::ReleaseEndpoint { .. }
            | Action::Expire
            | Action::TrimJournal { .. }
            | Action::RaiseLevel { .. }
            | Action::SealJournal => Ok(()),
        }
    }
}

impl ConfirmEpoch {
    fn check(&self) -> Result<(), Refusal> {
        within(Counted::PoolsToConfirm, self.pools.as_ref().map_or(0, Vec::len), RESOURCES_MAX)
    }
}

impl Terms {
    /// Refuses terms that no request may carry.
    ///
    /// # Errors
    /// `limit-exceeded`.
    pub fn check(&self) -> Result<(), Refusal> {
        let key = self.idempotency.as_ref().map_or(0, |asked| asked.key.len());
        within(Counted::KeyBytes, key, IDEMPOTENCY_KEY_BYTES_MAX)?;
        match &self.manager {
            Manager::Named(manager) => text(TextField::Manager, manager),
            Manager::Nobody | Manager::TakeOver => Ok(()),
        }
    }
}

impl KnownMember {
    fn check(&self) -> Result<(), Refusal> {
        // A former single member has no peer address until it is restarted with one.
        let address = Some(&self.peer_address).filter(|address| !address.is_empty());
        check_place(&self.disk_id, address, &self.client_url)
    }
}

/// Name and addresses of a member: short, and harmless in a log or on a terminal.
fn check_place(disk_id: &Text, peer_address: Option<&Text>, client_url: &Text) -> Result<(), Refusal> {
    text(TextField::DiskId, disk_id)?;
    if disk_id.is_empty() || peer_address.is_some_and(|address| address.is_empty()) {
        return Err(Cause::MemberNowhere.into());
    }
    if let Some(address) = peer_address.filter(|address| PeerAddress::parse(address).is_none()) {
        return Err(Cause::NotPeerAddress { address: address.excerpt() }.into());
    }
    refuse_if(!is_client_url(client_url), || Cause::NotClientUrl { url: client_url.excerpt() })
}

impl Metadata {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        text(TextField::Description, &self.description)?;
        if let Some(managed_by) = &self.managed_by {
            text(TextField::ManagedBy, managed_by)?;
        }
        check_labels(&self.labels)?;
        check_annotations(&self.annotations)
    }
}

/// Refuses a CIDR without usable host addresses (RFC 6890 and its registries): it is a typing error.
fn check_for_hosts(cidr: IpNet) -> Result<(), Refusal> {
    // A subnet is never larger than any of these.
    let purpose = match cidr.addr() {
        IpAddr::V4(address) => match address.octets() {
            [0, ..] => SpecialUse::ThisNetwork,
            [127, ..] => SpecialUse::Loopback,
            [224..=239, ..] => SpecialUse::Multicast,
            _ => return Ok(()),
        },
        IpAddr::V6(address) => match (address.to_ipv4_mapped(), address.segments()) {
            (Some(_), _) if cidr.prefix_len() >= 96 => return Err(Cause::MappedSubnet { cidr }.into()),
            (_, [0, ..]) => SpecialUse::SpecialPurpose,
            (_, [0xff00..=0xffff, ..]) => SpecialUse::Multicast,
            _ => return Ok(()),
        },
    };
    Err(Cause::NotForHosts { cidr, purpose }.into())
}

impl SubnetSpec {
    fn check(&self) -> Result<(), Refusal> {
        check_host_bits(self.cidr)?;
        let family = Family::of(self.cidr.addr());
        let shortest = match family {
            Family::V4 => SUBNET_PREFIX_LENGTH_MIN_V4,
            Family::V6 => SUBNET_PREFIX_LENGTH_MIN_V6,
        };
        refuse_if(self.cidr.prefix_len() < shortest, || Cause::SubnetTooLarge { cidr: self.cidr, shortest })?;
        check_for_hosts(self.cidr)?;
        if let Some(gateway) = self.gateway {
            check_gateway(self.cidr, gateway)?;
        }
        refuse_if(self.vlan.is_some_and(|vlan| vlan > VLAN_MAX), || Cause::VlanId)?;
        self.check_mtu()?;
        check_routes(self.cidr, &self.routes)?;
        self.dns.check()?;
        self.check_automatic()?;
        self.probing.check()?;
        self.metadata.check()
    }

    fn check_automatic(&self) -> Result<(), Refusal> {
        let Some(AutomaticRules { ranges, exclude, max_size }) = &self.automatic else { return Ok(()) };
        within(Counted::Ranges, ranges.len(), RANGES_MAX)?;
        within(Counted::Exclusions, exclude.len(), RANGES_MAX)?;
        inside(ranges.iter().chain(exclude), &self.name, self.cidr)?;
        match max_size {
            Some(0) => Err(Cause::AutomaticEmpty.into()),
            Some(size) if *size > AUTOMATIC_POOL_ADDRESSES_MAX => {
                Err(Cause::AutomaticTooLarge { asked: (*size).into() }.into())
            }
            _ => Ok(()),
        }
    }

    fn check_mtu(&self) -> Result<(), Refusal> {
        let least = match Family::of(self.cidr.addr()) {
            Family::V4 => MTU_MIN_V4,
            Family::V6 => MTU_MIN_V6,
        };
        match self.mtu {
            Some(mtu) if !(least..=MTU_MAX).contains(&mtu) => {
                Err(Cause::Mtu { cidr: self.cidr, mtu, least }.into())
            }
            _ => Ok(()),
        }
    }
}

impl Dns {
    fn check(&self) -> Result<(), Refusal> {
        within(Counted::NameServers, self.nameservers.len(), DNS_ENTRIES_MAX)?;
        within(Counted::SearchDomains, self.search.len(), DNS_ENTRIES_MAX)?;
        within(Counted::ResolverOptions, self.options.len(), DNS_ENTRIES_MAX)?;
        let mut domains = self.domain.iter().chain(&self.search);
        domains.try_for_each(|domain| short(TextField::DnsDomain, domain, DNS_DOMAIN_CHARS_MAX))?;
        let mut options = self.options.iter();
        options.try_for_each(|option| short(TextField::ResolverOption, option, DNS_OPTION_CHARS_MAX))
    }
}

impl PoolSpec {
    fn check(&self) -> Result<(), Refusal> {
        within(Counted::Ranges, self.ranges.len(), RANGES_MAX)?;
        within(Counted::Exclusions, self.exclude.len(), RANGES_MAX)?;
        within(Counted::Routes, self.routes.len(), ROUTES_MAX)?;
        one_family(self.ranges.iter().chain(&self.exclude))?;
        if self.cooling_ms > COOLING_MS_MAX {
            return Err(Cause::CoolingTooLong { cooling_ms: self.cooling_ms }.into());
        }
        within(
            Counted::CoolingReserve,
            usize::try_from(self.cooling_reserve).unwrap_or(usize::MAX),
            COOLING_RESERVE_MAX,
        )?;
        self.probing.check()?;
        self.selectors.check()?;
        self.metadata.check()
    }
}

impl PoolSelectors {
    fn check(&self) -> Result<(), Refusal> {
        within(Counted::PoolRealms, self.realms.len(), SELECTOR_NAMES_MAX)?;
        within(Counted::PoolNodes, self.node_names.len(), SELECTOR_NAMES_MAX)?;
        within(Counted::PoolNamespaces, self.namespaces.len(), SELECTOR_NAMES_MAX)?;
        within(Counted::PoolAttachments, self.network_attachments.len(), SELECTOR_NAMES_MAX)
    }
}

impl NamespaceSpec {
    fn check(&self) -> Result<(), Refusal> {
        self.default_pools.check(Counted::NamespacePools)?;
        self.quota.check()?;
        self.metadata.check()
    }
}

impl PoolPatterns {
    fn check(&self, what: fn(Family) -> Counted) -> Result<(), Refusal> {
        within(what(Family::V4), self.ipv4.len(), POOLS_NAMED_MAX)?;
        within(what(Family::V6), self.ipv6.len(), POOLS_NAMED_MAX)
    }
}

impl ReservationSpec {
    fn check(&self) -> Result<(), Refusal> {
        within(Counted::Addresses, self.addresses.len(), RANGES_MAX)?;
        refuse_if(self.addresses.is_empty(), || Cause::EmptyReservation)?;
        if self.endpoint.is_some() {
            let sizes = self.addresses.iter().map(|range| (range.last() - range.first()).saturating_add(1));
            let count = usize::try_from(sizes.fold(0, u128::saturating_add)).unwrap_or(usize::MAX);
            within(Counted::RecordedAddresses, count, RECORDED_ADDRESSES_MAX)?;
        }
        self.metadata.check()
    }
}

impl Allocate {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        within(Counted::Interfaces, self.interfaces.len(), INTERFACES_MAX)?;
        refuse_if(self.interfaces.is_empty(), || Cause::NoInterface)?;
        for (i, request) in self.interfaces.iter().enumerate() {
            let interface = || request.name.clone();
            within(Counted::InterfaceSubnets, request.subnets.len(), POOLS_NAMED_MAX)?;
            request.pools.check(Counted::InterfacePools)?;
            request.default_pools.check(Counted::InterfaceDefaultPools)?;
            within(Counted::RequestedAddresses, request.addresses.len(), REQUESTED_ADDRESSES_MAX)?;
            within(Counted::LinkAddresses, request.link_addresses.len(), LINK_ADDRESSES_MAX)?;
            if self.interfaces.iter().take(i).any(|other| other.name == request.name) {
                return Err(Cause::InterfaceTwice { interface: interface() }.into());
            }
            if request.families.len() > Family::BOTH.len()
                || matches!(*request.families, [one, other] if one == other)
            {
                return Err(Cause::FamilyTwice { interface: interface() }.into());
            }
            let is_odd = |address: &&IpAddr| !request.takes(Family::of(**address));
            if let Some(address) = request.addresses.iter().find(is_odd) {
                return Err(Cause::UnaskedFamily { interface: interface(), address: *address }.into());
            }
            for family in Family::BOTH {
                let asked = request.addresses.iter().filter(|address| Family::of(**address) == family);
                refuse_if(asked.count() > 1, || Cause::SeveralAddresses { interface: interface(), family })?;
            }
            if let Some(mac) = &request.mac {
                check_mac(mac)?;
            }
        }
        if let Some(uid) = &self.uid {
            text(TextField::Uid, uid)?;
        }
        check_labels(&self.labels)?;
        self.stickiness.check(self.lifecycle)?;
        self.check_automatic()?;
        self.check_lifecycle()?;
        if self.options.adopt {
            check_adoption(self)?;
        }
        if self.options.wait {
            check_wait(self)?;
        }
        if self.options.take_over {
            check_take_over(self)?;
        }
        self.options.metadata.check()?;
        self.routing.check(self)?;
        self.options.check(self.lifecycle)
    }

    fn check_lifecycle(&self) -> Result<(), Refusal> {
        match (&self.attachment, self.lifecycle) {
            (None, Lifecycle::Attached) => Err(Cause::AttachedWithoutAttachment.into()),
            (Some(_), Lifecycle::Held | Lifecycle::Leased) => Err(Cause::AttachmentNotAttached.into()),
            (None, _) => Ok(()),
            (Some(key), Lifecycle::Attached) => {
                let Some(started) = &self.started else {
                    return Err(Cause::StartMissing.into());
                };
                check_boot_id(&started.boot_id)?;
                let is_missing = self.interfaces.iter().all(|request| request.name != key.interface);
                refuse_if(is_missing, || Cause::InterfaceMissing { interface: key.interface.clone() })
            }
        }
    }
}

impl AllocationMetadata {
    fn check(&self) -> Result<(), Refusal> {
        text(TextField::Description, &self.description)?;
        self.hostname.as_ref().map_or(Ok(()), check_hostname)
    }
}

/// Refuses a host name that RFC 1123 doesn't allow, or that ends in a dot.
fn check_hostname(hostname: &Text) -> Result<(), Refusal> {
    let is_label = |label: &str| {
        let inside = |c: u8| c.is_ascii_alphanumeric() || c == b'-';
        (1..=HOSTNAME_LABEL_CHARS_MAX).contains(&label.len())
            && label.bytes().all(inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    refuse_if(hostname.len() > OBJECT_NAME_CHARS_MAX || !hostname.split('.').all(is_label), || {
        Cause::NotHostname { hostname: hostname.excerpt() }
    })
}

/// Refuses labels that no selector could match.
fn check_labels(labels: &BTreeMap<Text, Text>) -> Result<(), Refusal> {
    check_keys(KeyedField::Labels, labels)?;
    for (key, value) in labels {
        if check_label(key, value).is_err() {
            return Err(Cause::BadLabel { key: key.clone(), value: value.clone() }.into());
        }
    }
    Ok(())
}

fn check_annotations(annotations: &BTreeMap<Text, Text>) -> Result<(), Refusal> {
    check_keys(KeyedField::Annotations, annotations)?;
    for (key, value) in annotations {
        let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        if key.chars().any(char::is_control) || value.chars().any(is_odd) {
            return Err(Cause::ControlInAnnotation { key: key.clone() }.into());
        }
    }
    Ok(())
}

pub(crate) fn check_keys(field: KeyedField, all: &BTreeMap<Text, Text>) -> Result<(), Refusal> {
    within(Counted::Keys(field), all.len(), LABELS_MAX)?;
    for (key, value) in all {
        if key.is_empty() || key.len() > LABEL_KEY_CHARS_MAX || value.len() > LABEL_VALUE_CHARS_MAX {
            return Err(Cause::KeySize { field, key: key.excerpt() }.into());
        }
    }
    Ok(())
}

pub(crate) fn check_boot_id(boot_id: &Text) -> Result<(), Refusal> {
    refuse_if(!(1..=BOOT_ID_BYTES_MAX).contains(&boot_id.len()), || Cause::BootIdSize)
}

fn check_mac(mac: &Text) -> Result<(), Refusal> {
    let octets = mac.split(':').collect::<Vec<_>>();
    let is_octet = |octet: &&str| octet.len() == 2 && octet.bytes().all(|byte| byte.is_ascii_hexdigit());
    refuse_if(octets.len() != 6 || !octets.iter().all(is_octet), || Cause::NotMac { mac: mac.excerpt() })
}

pub(crate) fn one_family<'a>(ranges: impl Iterator<Item = &'a AddressRange>) -> Result<(), Refusal> {
    let mut first: Option<AddressRange> = None;
    for range in ranges {
        match first {
            Some(other) if other.family() != range.family() => {
                return Err(Cause::FamiliesMixed { one: other, other: *range }.into());
            }
            _ => first = Some(*range),
        }
    }
    Ok(())
}

/// Refuses ranges that are not inside their subnet.
pub(crate) fn inside<'a>(
    ranges: impl Iterator<Item = &'a AddressRange>,
    subnet: &Name,
    cidr: IpNet,
) -> Result<(), Refusal> {
    let whole = AddressRange::of_cidr(cidr);
    for range in ranges {
        let (range, subnet) = (*range, subnet.clone());
        if range.family() != whole.family() {
            return Err(Cause::RangeFamily { range, subnet, cidr }.into());
        }
        refuse_if(!whole.contains(&range), || Cause::OutsideSubnet { range, subnet, cidr })?;
    }
    Ok(())
}

/// Refuses a CIDR with host bits.
pub(crate) fn check_host_bits(cidr: IpNet) -> Result<(), Refusal> {
    check_cidr(cidr).map(|_| ()).map_err(|_| Cause::HostBits { cidr }.into())
}

/// Refuses text that is too long, moves a terminal's cursor or forges a line.
pub(crate) fn text(field: TextField, value: &Text) -> Result<(), Refusal> {
    if value.chars().any(char::is_control) {
        return Err(Cause::ControlCharacters { field, text: value.excerpt() }.into());
    }
    refuse_if(value.chars().count() > TEXT_CHARS_MAX, || Cause::TextTooLong { field })
}

/// Refuses text above a bound in bytes: text of an address appears many times in one response.
fn short(field: TextField, value: &Text, max: usize) -> Result<(), Refusal> {
    text(field, value)?;
    refuse_if(value.len() > max, || Cause::TextSize { field, bytes: value.len() as u64, max: max as u64 })
}

pub(crate) fn within(what: Counted, count: usize, max: usize) -> Result<(), Refusal> {
    refuse_if(count > max, || Cause::Limit { what, count: count as u64, max: max as u64 })
}
