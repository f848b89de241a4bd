//! What can be said of an intention without looking at the state. Done at the door, before anything is
//! proposed, and again in `apply`, which trusts nobody.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipam_api::address::{AddressRange, check_cidr};
use ipam_api::limits::{
    ALLOCATIONS_PER_ENDPOINT_MAX, COOLING_MS_MAX, DNS_ENTRIES_MAX, IDEMPOTENCY_KEY_BYTES_MAX, INTERFACES_MAX,
    LABEL_KEY_CHARS_MAX, LABEL_VALUE_CHARS_MAX, LABELS_MAX, MEMBERS_MAX, MTU_MAX, MTU_MIN_V4, MTU_MIN_V6,
    OBJECT_NAME_CHARS_MAX, POOLS_NAMED_MAX, RANGES_MAX, REQUESTED_ADDRESSES_MAX, ROUTES_MAX,
    SUBNET_PREFIX_LENGTH_MIN_V4, SUBNET_PREFIX_LENGTH_MIN_V6, TAKERS_NAMED_MAX, TEXT_CHARS_MAX,
    TRANSACTION_STEPS_MAX,
};
use ipam_api::resource::Lifecycle;
use ipam_api::selector::check_label;
use ipam_api::{Code, Family};
use ipnet::IpNet;

use super::command::{
    Action, Allocate, Dns, Kind, KnownMember, Manager, NamespaceIntention, Note, PoolIntention, PoolPatterns,
    Refusal, Remarks, ReservationIntention, SubnetIntention, Takers, Terms, Text,
};
use super::gateway::{check_gateway, check_routes};

/// 802.1Q ids end here (4095 is reserved).
const VLAN_MAX: u16 = 4094;
/// Bytes of a boot id; Linux writes a UUID of 36.
const BOOT_ID_BYTES_MAX: usize = 64;
/// Characters between two dots of a host name.
const HOSTNAME_LABEL_CHARS_MAX: usize = 63;

const _: () = assert!(INTERFACES_MAX * 2 <= ALLOCATIONS_PER_ENDPOINT_MAX);

impl Action {
    /// Refuses what no state could accept.
    ///
    /// # Errors
    /// The refusal, as `apply` would give it.
    pub fn check(&self) -> Result<(), Refusal> {
        match self {
            Action::PutNetwork(put) => put.intention.remarks.check(),
            Action::PutSubnet(put) => put.intention.check(),
            Action::PutPool(put) => put.intention.check(),
            Action::PutReservation(put) => put.intention.check(),
            Action::PutNode(put) => put.intention.remarks.check(),
            Action::PutNamespace(put) => put.intention.check(),
            Action::Allocate(wish) => wish.check(),
            Action::ReleaseAttachment(release) => check_boot_id(&release.started.boot_id),
            Action::Transaction(transaction) => {
                within("steps of a transaction", transaction.steps.len(), TRANSACTION_STEPS_MAX)?;
                within("preconditions", transaction.preconditions.len(), TRANSACTION_STEPS_MAX)?;
                for step in &transaction.steps {
                    if matches!(step, Action::Transaction(_)) {
                        return Err(invalid("a transaction can't contain another"));
                    }
                    // Whoever doesn't know a level must see the entry that raises it before applying any of it.
                    if matches!(step, Action::RaiseLevel { .. }) {
                        return Err(invalid("the level isn't raised within a transaction"));
                    }
                    step.check()?;
                }
                Ok(())
            }
            Action::Delete(delete) if delete.drain && delete.kind != Kind::Pool => {
                Err(invalid(format!("a {} can't be drained; only pools can", delete.kind)))
            }
            Action::SplitPool(split) => split.check(),
            Action::ScaleController(scale) => scale.check(),
            Action::EndController(end) => end.check(),
            Action::CreateToken(wish) => wish.check(),
            Action::ConfirmGeneration(wish) => wish.check(),
            Action::JoinMember(wish) => {
                wish.known.iter().try_for_each(KnownMember::check)?;
                within("members", wish.known.len(), MEMBERS_MAX)?;
                check_place(&wish.disk_id, &wish.peer_address, &wish.client_url)
            }
            Action::ChangeMembers(wish) => {
                wish.known.iter().try_for_each(KnownMember::check)?;
                for ids in [&wish.promote, &wish.remove, &wish.voters] {
                    within("members", ids.len(), MEMBERS_MAX)?;
                }
                within("members", wish.known.len(), MEMBERS_MAX)
            }
            Action::Delegate(wish) => wish.check(),
            Action::Renew(wish) => wish.check(),
            Action::ReleasePrefix { .. }
            | Action::Delete(_)
            | Action::RotateToken { .. }
            | Action::Join { .. }
            | Action::ReleaseAllocation { .. }
            | Action::ReleaseEndpoint { .. }
            | Action::Expire
            | Action::TrimJournal { .. }
            | Action::RaiseLevel { .. }
            | Action::SealJournal => Ok(()),
        }
    }
}

impl Terms {
    /// Refuses what no request may carry.
    ///
    /// # Errors
    /// `limit-exceeded`.
    pub fn check(&self) -> Result<(), Refusal> {
        let key = self.idempotency.as_ref().map_or(0, |asked| asked.key.len());
        within("bytes of an idempotency key", key, IDEMPOTENCY_KEY_BYTES_MAX)?;
        match &self.manager {
            Manager::Named(manager) => text("manager", manager),
            Manager::Nobody | Manager::TakeOver => Ok(()),
        }
    }
}

impl KnownMember {
    fn check(&self) -> Result<(), Refusal> {
        check_place(&self.disk_id, &self.peer_address, &self.client_url)
    }
}

/// Who a member is and where: short, and without what would break a line.
fn check_place(disk_id: &Text, peer_address: &Text, client_url: &Text) -> Result<(), Refusal> {
    text("disk_id", disk_id)?;
    text("peer_address", peer_address)?;
    text("client_url", client_url)?;
    match disk_id.is_empty() || peer_address.is_empty() {
        true => Err(invalid("a member has a disk id and an address where it answers peers")),
        false => Ok(()),
    }
}

impl Remarks {
    fn check(&self) -> Result<(), Refusal> {
        text("description", &self.description)?;
        if let Some(managed_by) = &self.managed_by {
            text("managed_by", managed_by)?;
        }
        check_labels(&self.labels)?;
        check_annotations(&self.annotations)
    }
}

/// Refuses a CIDR in which nobody can have an address (RFC 6890 and its registries): it is a slip of the hand.
fn check_for_hosts(cidr: IpNet) -> Result<(), Refusal> {
    // A subnet is never larger than any of these.
    let what = match cidr.addr() {
        IpAddr::V4(address) => match address.octets() {
            [0, ..] => "\"this network\"",
            [127, ..] => "loopback interfaces",
            [224..=239, ..] => "multicast groups",
            _ => return Ok(()),
        },
        IpAddr::V6(address) => match (address.to_ipv4_mapped(), address.segments()) {
            (Some(meant), _) if cidr.prefix_len() >= 96 => {
                let meant = format!("{meant}/{}", cidr.prefix_len() - 96);
                return Err(invalid(format!("{cidr} is IPv4 in the form of IPv6; did you mean {meant}?")));
            }
            (_, [0, ..]) => "special purposes",
            (_, [0xff00..=0xffff, ..]) => "multicast groups",
            _ => return Ok(()),
        },
    };
    Err(invalid(format!("{cidr} is for {what}, and no host can have an address of it")))
}

impl SubnetIntention {
    fn check(&self) -> Result<(), Refusal> {
        check_cidr(self.cidr).map_err(|problem| Refusal::new(problem.code, problem.detail))?;
        let family = Family::of(self.cidr.addr());
        let shortest = match family {
            Family::V4 => SUBNET_PREFIX_LENGTH_MIN_V4,
            Family::V6 => SUBNET_PREFIX_LENGTH_MIN_V6,
        };
        if self.cidr.prefix_len() < shortest {
            return Err(Refusal::new(
                Code::LimitExceeded,
                format!("{} is too large: an {family} subnet is a /{shortest} at most", self.cidr),
            ));
        }
        check_for_hosts(self.cidr)?;
        if let Some(gateway) = self.gateway {
            check_gateway(self.cidr, gateway)?;
        }
        if self.vlan.is_some_and(|vlan| vlan > VLAN_MAX) {
            return Err(invalid(format!("a VLAN id is 0 to {VLAN_MAX}")));
        }
        self.check_mtu()?;
        check_routes(self.cidr, &self.routes)?;
        self.dns.check()?;
        self.remarks.check()
    }

    fn check_mtu(&self) -> Result<(), Refusal> {
        let least = match Family::of(self.cidr.addr()) {
            Family::V4 => MTU_MIN_V4,
            Family::V6 => MTU_MIN_V6,
        };
        match self.mtu {
            Some(mtu) if !(least..=MTU_MAX).contains(&mtu) => {
                Err(invalid(format!("the MTU of {} is {least} to {MTU_MAX}, not {mtu}", self.cidr)))
            }
            _ => Ok(()),
        }
    }
}

impl Dns {
    fn check(&self) -> Result<(), Refusal> {
        within("name servers", self.nameservers.len(), DNS_ENTRIES_MAX)?;
        within("search domains", self.search.len(), DNS_ENTRIES_MAX)?;
        within("resolver options", self.options.len(), DNS_ENTRIES_MAX)?;
        let words = self.domain.iter().chain(&self.search).chain(&self.options);
        for word in words {
            text("a DNS entry", word)?;
        }
        Ok(())
    }
}

impl PoolIntention {
    fn check(&self) -> Result<(), Refusal> {
        within("ranges", self.ranges.len(), RANGES_MAX)?;
        within("exclusions", self.exclude.len(), RANGES_MAX)?;
        within("routes", self.routes.len(), ROUTES_MAX)?;
        one_family(self.ranges.iter().chain(&self.exclude))?;
        if self.cooling_ms > COOLING_MS_MAX {
            return Err(Refusal::new(
                Code::LimitExceeded,
                format!("cooling_ms is {} and at most {COOLING_MS_MAX} (a week)", self.cooling_ms),
            ));
        }
        self.takers.check()?;
        self.remarks.check()
    }
}

impl Takers {
    fn check(&self) -> Result<(), Refusal> {
        within("realms of a pool", self.realms.len(), TAKERS_NAMED_MAX)?;
        within("nodes of a pool", self.node_names.len(), TAKERS_NAMED_MAX)?;
        within("namespaces of a pool", self.namespaces.len(), TAKERS_NAMED_MAX)?;
        within("network attachments of a pool", self.network_attachments.len(), TAKERS_NAMED_MAX)
    }
}

impl NamespaceIntention {
    fn check(&self) -> Result<(), Refusal> {
        self.default_pools.check("default pools of a namespace")?;
        self.quota.check()?;
        self.remarks.check()
    }
}

impl PoolPatterns {
    fn check(&self, what: &str) -> Result<(), Refusal> {
        within(&format!("IPv4 {what}"), self.ipv4.len(), POOLS_NAMED_MAX)?;
        within(&format!("IPv6 {what}"), self.ipv6.len(), POOLS_NAMED_MAX)
    }
}

impl ReservationIntention {
    fn check(&self) -> Result<(), Refusal> {
        within("addresses", self.addresses.len(), RANGES_MAX)?;
        if self.addresses.is_empty() {
            return Err(invalid("a reservation names at least one address"));
        }
        self.remarks.check()
    }
}

impl Allocate {
    fn check(&self) -> Result<(), Refusal> {
        within("interfaces", self.interfaces.len(), INTERFACES_MAX)?;
        if self.interfaces.is_empty() {
            return Err(invalid("no interface is named"));
        }
        for (i, wish) in self.interfaces.iter().enumerate() {
            within("subnets of an interface", wish.subnets.len(), POOLS_NAMED_MAX)?;
            wish.pools.check("pools of an interface")?;
            wish.default_pools.check("default pools of an interface")?;
            within("requested addresses", wish.addresses.len(), REQUESTED_ADDRESSES_MAX)?;
            if self.interfaces.iter().take(i).any(|other| other.name == wish.name) {
                return Err(invalid(format!("interface {} is named twice", wish.name)));
            }
            if wish.families.len() > Family::BOTH.len()
                || matches!(*wish.families, [one, other] if one == other)
            {
                return Err(invalid(format!("{} names a family twice", wish.name)));
            }
            let is_odd = |address: &&IpAddr| !wish.takes(Family::of(**address));
            if let Some(address) = wish.addresses.iter().find(is_odd) {
                return Err(invalid(format!(
                    "{} asks for {address}, and not for an address of that family",
                    wish.name
                )));
            }
            for family in Family::BOTH {
                let asked = wish.addresses.iter().filter(|address| Family::of(**address) == family);
                if asked.count() > 1 {
                    return Err(invalid(format!(
                        "{} asks for more than one {family} address by value",
                        wish.name
                    ))
                    .help("An interface gets one address of each family; use another interface for more."));
                }
            }
            if let Some(mac) = &wish.mac {
                check_mac(mac)?;
            }
        }
        if let Some(uid) = &self.uid {
            text("uid", uid)?;
        }
        check_labels(&self.labels)?;
        self.stickiness.check(self.lifecycle)?;
        self.check_automatic()?;
        self.check_lifecycle()?;
        if self.manner.adopt {
            super::adopt::check(self)?;
        }
        if self.manner.wait {
            super::waiting::check(self)?;
        }
        self.manner.note.check()?;
        self.routing.check(self)?;
        self.manner.check(self.lifecycle)
    }

    fn check_lifecycle(&self) -> Result<(), Refusal> {
        match (&self.attachment, self.lifecycle) {
            (None, Lifecycle::Attached) => Err(invalid("attached allocations need an attachment")),
            (Some(_), Lifecycle::Held | Lifecycle::Leased) => {
                Err(invalid("what an attachment holds is attached, and nothing else"))
            }
            (None, _) => Ok(()),
            (Some(key), Lifecycle::Attached) => {
                let Some(started) = &self.started else {
                    return Err(invalid("an attachment needs `started`: when the asking process began"));
                };
                check_boot_id(&started.boot_id)?;
                if self.interfaces.iter().any(|wish| wish.name == key.interface) {
                    return Ok(());
                }
                Err(invalid(format!("the attachment's interface {} is not among those named", key.interface))
                    .help("Name every interface of the endpoint in each of its ADDs, or that one only."))
            }
        }
    }
}

impl Note {
    fn check(&self) -> Result<(), Refusal> {
        text("description", &self.description)?;
        self.hostname.as_ref().map_or(Ok(()), check_hostname)
    }
}

/// As RFC 1123 has it, without a dot at its end.
fn check_hostname(hostname: &Text) -> Result<(), Refusal> {
    let is_label = |label: &str| {
        let inside = |c: u8| c.is_ascii_alphanumeric() || c == b'-';
        (1..=HOSTNAME_LABEL_CHARS_MAX).contains(&label.len())
            && label.bytes().all(inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if hostname.len() <= OBJECT_NAME_CHARS_MAX && hostname.split('.').all(is_label) {
        return Ok(());
    }
    Err(invalid(format!("{} is no host name such as db-07.example.com", ipam_api::name::shown(hostname)))
        .help("Use letters, digits and hyphens, 63 at most between two dots, and 253 in all."))
}

/// What selectors can ask for, and no more: a label that nobody could select by would be a trap.
fn check_labels(labels: &BTreeMap<Text, Text>) -> Result<(), Refusal> {
    check_keys("labels", labels)?;
    for (key, value) in labels {
        check_label(key, value).map_err(|problem| {
            invalid(problem.detail)
                .help("Use letters, digits and -_./: in labels; annotations may say anything.")
        })?;
    }
    Ok(())
}

fn check_annotations(annotations: &BTreeMap<Text, Text>) -> Result<(), Refusal> {
    check_keys("annotations", annotations)?;
    for (key, value) in annotations {
        let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        if key.chars().any(char::is_control) || value.chars().any(is_odd) {
            return Err(invalid(format!("annotation {} has control characters", ipam_api::name::shown(key))));
        }
    }
    Ok(())
}

fn check_keys(what: &str, all: &BTreeMap<Text, Text>) -> Result<(), Refusal> {
    within(what, all.len(), LABELS_MAX)?;
    for (key, value) in all {
        if key.is_empty() || key.len() > LABEL_KEY_CHARS_MAX || value.len() > LABEL_VALUE_CHARS_MAX {
            return Err(Refusal::new(
                Code::LimitExceeded,
                format!(
                    "{what}: {} is too long or empty: keys have 1 to {LABEL_KEY_CHARS_MAX} bytes, values up to {LABEL_VALUE_CHARS_MAX}",
                    ipam_api::name::shown(key)
                ),
            ));
        }
    }
    Ok(())
}

fn check_boot_id(boot_id: &Text) -> Result<(), Refusal> {
    if (1..=BOOT_ID_BYTES_MAX).contains(&boot_id.len()) {
        return Ok(());
    }
    Err(invalid(format!("a boot id has 1 to {BOOT_ID_BYTES_MAX} bytes")))
}

fn check_mac(mac: &Text) -> Result<(), Refusal> {
    let octets = mac.split(':').collect::<Vec<_>>();
    let is_octet = |octet: &&str| octet.len() == 2 && octet.bytes().all(|byte| byte.is_ascii_hexdigit());
    if octets.len() == 6 && octets.iter().all(is_octet) {
        return Ok(());
    }
    Err(invalid(format!(
        "{} is not a hardware address such as 0a:58:0a:0a:00:4d",
        ipam_api::name::shown(mac)
    )))
}

pub(super) fn one_family<'a>(ranges: impl Iterator<Item = &'a AddressRange>) -> Result<(), Refusal> {
    let mut first: Option<AddressRange> = None;
    for range in ranges {
        match first {
            Some(other) if other.family() != range.family() => {
                return Err(Refusal::new(
                    Code::FamilyMismatch,
                    format!("{other} and {range} are of different families"),
                ));
            }
            _ => first = Some(*range),
        }
    }
    Ok(())
}

pub(super) fn invalid(detail: impl Into<String>) -> Refusal {
    Refusal::new(Code::InvalidField, detail)
}

/// Text of people: not too long, and nothing that moves a terminal's cursor or forges a line.
pub(super) fn text(what: &str, value: &str) -> Result<(), Refusal> {
    if value.chars().any(char::is_control) {
        return Err(invalid(format!(
            "{what} has control characters, or more than one line: {}",
            ipam_api::name::shown(value)
        ))
        .help("Longer texts of several lines may be annotations."));
    }
    if value.chars().count() <= TEXT_CHARS_MAX {
        return Ok(());
    }
    Err(Refusal::new(Code::LimitExceeded, format!("{what} is longer than {TEXT_CHARS_MAX} characters")))
}

pub(super) fn within(what: &str, count: usize, max: usize) -> Result<(), Refusal> {
    if count <= max {
        return Ok(());
    }
    Err(Refusal::new(Code::LimitExceeded, format!("{count} {what}; at most {max} are allowed")))
}
