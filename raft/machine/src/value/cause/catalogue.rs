//! Causes: the reason of each refusal and of each wait, as a code and typed context.
//!
//! The catalogue is one long file, because rows store the position of a variant: new variants are only ever
//! appended.
//!
//! **Invariant:** a cause is written into rows and compared between members, so it holds values only: no
//! sentence, and no text but that of a request. The sentence is created for display. Nothing that `apply`
//! runs may call [`Cause::detail`] or [`Cause::help`].

use crate::value::cause::Rule;
use crate::value::cause::parts::{
    Claimed, Closed, Constant, Counted, Example, HeldBy, KeyedField, NamedController, NamedPrefix,
    NeverGiven, RejectReason, SpecialUse, TextField, Unserved, UsedBy,
};
use crate::value::cause::words::{
    addresses_are, bad_label, beyond_labels, host_bits, how_to_change, listed, more_addresses, quota_field,
    unmapped,
};
use crate::value::field_name::FieldName;
use crate::value::prefix::LENGTH_MAX;
use crate::value::quota::QuotaScope;
use crate::value::spec::{BOOT_ID_BYTES_MAX, VLAN_MAX};
use crate::value::{Kind, Leases, Started, Text};
use ipam_api::access::{NodeKey, Role, Target, Verb};
use ipam_api::address::AddressRange;
use ipam_api::brand::ANONYMOUS;
use ipam_api::limits::{
    AGENT_VERSION_CHARS_MAX, ALLOCATIONS_PER_ENDPOINT_MAX, ATTACHMENTS_PER_ALLOCATION_MAX,
    AUTOMATIC_POOL_ADDRESSES_MAX, AUTOMATIC_POOLS_PER_NODE_MAX, COOLING_MS_MAX, EVENTS_PER_NODE_MAX,
    JSON_INTEGER_MAX, LABEL_KEY_CHARS_MAX, LABEL_VALUE_CHARS_MAX, LEASE_TTL_MS_MAX, LEASE_TTL_MS_MIN,
    MEMBERS_MAX, MTU_MAX, MTU_MIN_V4, NODE_GRACE_MS_MAX, NODE_GRACE_MS_MIN, NODE_TOKENS_MAX,
    PODS_REPORTED_MAX, POOLS_OF_SUBNET_MAX, PREFIX_TTL_MS_MAX, PREFIX_TTL_MS_MIN, PREFIXES_UNLISTED_MAX,
    PROBE_VALID_MS_MAX, PROBE_VALID_MS_MIN, RESOURCES_MAX, RESPONSE_BYTES_MAX, SPLIT_MOVED_MAX,
    TEXT_CHARS_MAX, TOKENS_MAX, WORK_PER_COMMAND_MAX,
};
use ipam_api::mac::MacAddress;
use ipam_api::name::{InterfaceName, Name, NamePattern, ObjectName, ResourceName, shown};
use ipam_api::request::AttachmentKey;
use ipam_api::resource::{EndpointKey, Lifecycle};
use ipam_api::{Code, Family, Selector};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

causes! {
    // Rights and terms.
    DeadlinePassed => DeadlineExceeded: "the deadline of the request has passed; nothing was changed";
    KeyReused => IdempotencyKeyReused: "the idempotency key was used for another request of the same principal";
    TokenRevoked => Unauthenticated: "the token was revoked";
    TokenExpired { name: Name } => TokenExpired: "the token {name} has expired";
    MayNot { principal: Text, role: Role, verb: Verb, target: Target } => Forbidden:
        (format!("{} with role {role} has no permission to {verb} {target} resources", shown(principal)));
    RealmForbidden { realm: Name } => Forbidden: "realm {realm} is outside the realms of this token";
    NotLabelled { kind: Kind, name: ResourceName, labels: Selector } => Forbidden:
        "{kind} {name} does not have the labels {labels} that this token requires";
    ManagedElsewhere { kind: Kind, name: ResourceName, by: Text } => ManagedElsewhere:
        (format!("{kind} {name} is managed by {}", shown(by)))
        help "Change it through its manager, or take it over with take_over=true.";
    AttachmentElsewhere { attachment: AttachmentKey, node: NodeKey } => ForeignNode:
        (format!("attachment {attachment} is on node {}/{}, not on {node}", attachment.realm, attachment.node));
    EndpointElsewhere { endpoint: EndpointKey, node: NodeKey } => ForeignNode: "{endpoint} is not on node {node}";
    NodeElsewhere { node: NodeKey } => ForeignNode:
        "node {node} may only request addresses for itself";
    AdoptionByNode => Forbidden: "a node cannot adopt addresses; adoption needs the role operator";
    JoinTokenOnly => Forbidden: "a join token is valid for joining only";
    MemberTokenOnly => Forbidden: "a member's join token is valid for joining only";

    // What is expected of resources.
    NotFound { kind: Kind, name: ResourceName } => NotFound: "{kind} {name} does not exist";
    EndpointGone { endpoint: EndpointKey } => NotFound: "endpoint {endpoint} does not exist";
    Exists { kind: Kind, name: ResourceName, revision: u64 } => AlreadyExists:
        "{kind} {name} exists already, in revision {revision}";
    NothingToChange { kind: Kind, name: ResourceName, expected: u64 } => RevisionMismatch:
        "{kind} {name} does not exist; expected revision {expected}"
        help "Create it without If-Match, or leave it.";
    Changed { kind: Kind, name: ResourceName, current: u64, by: Text, fields: Vec<FieldName>, expected: u64 }
        => RevisionMismatch: "{kind} {name} is at revision {current}, changed by {by}; expected {expected}"
        help "Read it again, merge, and repeat with If-Match: \"{current}\".";
    Immutable { kind: Kind, name: ResourceName, value: Constant } => ImmutableField:
        (format!("{} of {kind} {name} is {value} and immutable", value.field()));
    TooManyOfKind { kind: Kind, count: u64 } => LimitExceeded:
        "{count} resources of kind {kind}; at most {RESOURCES_MAX} are allowed";
    Limit { what: Counted, count: u64, max: u64 } => LimitExceeded: "{count} {what}; at most {max} are allowed";

    // Text.
    ControlCharacters { field: TextField, text: Text } => InvalidField:
        (format!("{field} has control characters, or more than one line: {}", shown(text)))
        help "Use an annotation for longer or multi-line text.";
    TextTooLong { field: TextField } => LimitExceeded: "{field} is longer than {TEXT_CHARS_MAX} characters";
    TextSize { field: TextField, bytes: u64, max: u64 } => LimitExceeded:
        "{field} has {bytes} bytes; at most {max} are allowed";
    BadLabel { key: Text, value: Text } => InvalidField: (bad_label(key, value))
        help "Use letters, digits and -_./: in labels; annotations may have any characters.";
    ControlInAnnotation { key: Text } => InvalidField: (format!("annotation {} has control characters", shown(key)));
    KeySize { field: KeyedField, key: Text } => LimitExceeded:
        (format!(
            "{field}: {} is too long or empty: keys have 1 to {LABEL_KEY_CHARS_MAX} bytes, values up to {LABEL_VALUE_CHARS_MAX}",
            shown(key)
        ));
    BootIdSize => LimitExceeded: "a boot id has 1 to {BOOT_ID_BYTES_MAX} bytes";
    NotMac { mac: Text } => InvalidField:
        (format!("{} is not a hardware address such as 0a:58:0a:0a:00:4d", shown(mac)));
    NotHostname { hostname: Text } => InvalidField:
        (format!("{} is not a host name such as db-07.example.com", shown(hostname)))
        help "Use letters, digits and hyphens, 63 at most between two dots, and 253 in all.";

    // Transactions, levels, the journal, epochs.
    NestedTransaction => InvalidField: "a transaction can't contain another";
    ResponseSize { bytes: u64, done: u64, steps: u64 } => LimitExceeded:
        "the response has {bytes} bytes after {done} of {steps} steps; at most {RESPONSE_BYTES_MAX} are allowed"
        help "Split the transaction; nothing was changed.";
    LevelInTransaction => InvalidField: "the feature level cannot be raised within a transaction";
    LevelLeap { present: u32, level: u32 } => FeatureLevel:
        "the feature level {present} rises by one; it cannot become {level}";
    SegmentNotSealed { segment: u64, newest: u64 } => InvalidField:
        "segment {segment} of the journal is not sealed; the newest that is, is {newest}";
    EpochOrder { epoch: u64, last: u64 } => InvalidField:
        "epoch {epoch} can't follow on epoch {last}"
        help "Use a number above those of all restores of this cluster.";
    OtherEpoch { present: u64, epoch: u64 } => RevisionMismatch:
        "this is epoch {present}, and not {epoch}"
        help "Review the unconfirmed pools: ipamctl cluster epoch.";

    // Members and tokens.
    MemberNowhere => InvalidField: "a member has a disk id and an address where it answers peers";
    DirectoryOfFounder { id: u64, name: Name } => AlreadyExists: "the data directory belongs to member {id}, {name}"
        help "The member needs no join; remove cluster.join from its configuration.";
    DirectoryOfRemoved { id: u64, name: Name } => AlreadyExists:
        "the data directory belonged to member {id}, {name}, which was removed"
        help "Empty the data directory, and join as a new member.";
    DirectoryOfAnother { id: u64, name: Name } => AlreadyExists:
        "the data directory belongs to member {id}, which is called {name}"
        help "Restore the name of the member, or empty the data directory.";
    MemberNameTaken { id: u64, name: Name } => AlreadyExists:
        "member {id} is called {name} and has another data directory"
        help "If its data directory is lost, remove the member first: ipamctl cluster remove {name}. Otherwise choose another name.";
    TooManyMembers => LimitExceeded: "a cluster has at most {MEMBERS_MAX} members"
        help "Remove a member first: ipamctl cluster remove.";
    MembersChanged => RevisionMismatch: "the members have changed since they were read"
        help "Review the members: ipamctl cluster members.";
    NoMember { id: u64 } => NotFound: "there is no member {id}";
    MemberRemoved { id: u64 } => NotFound: "member {id} was removed; its ID is never reused"
        help "Join again with an empty data directory and a new token: ipamctl token member.";
    LastVoter => QuorumAtRisk: "the last voter can't be removed";
    MemberTokenUsed => Unauthenticated: "the join token was used already"
        help "Create another one: ipamctl token member.";
    JoinTokenUsed => Unauthenticated: "the join token was used already" help "Create another one: ipamctl token join.";
    NoJoinToken => Unauthenticated: "joining requires a join token" help "Create one: ipamctl token join.";
    JoinTokenOfOthers { node: NodeKey } => ForeignNode: "the join token isn't for node {node}";
    ReservedTokenName => InvalidField: "{ANONYMOUS} is a reserved name";
    TokenTtlZero => InvalidField: "the validity of a token is at least 1 ms";
    TokenTtlTooLong { longest: u64 } => LimitExceeded: "the validity of this kind of token is at most {longest} ms";
    JoinTokenWithoutTtl => ConflictingFields: "a join token requires a validity" help "Give ttl_ms.";
    NodeTokenWithoutNode => ConflictingFields: "a token of the role node must name its node"
        help "Give node: realm and name.";
    TokenWithNode { role: Role } => ConflictingFields: "a token of the role {role} cannot name a node";
    JoinTokenRole => ConflictingFields: "a join token is for nodes and members, and its role is node";
    SecretTaken => AlreadyExists: "another token has that secret" help "Retry; a new secret is generated.";
    TooManyTokens { count: u64 } => LimitExceeded: "{count} tokens; at most {TOKENS_MAX} are allowed"
        help "Delete unused tokens: ipamctl token list.";

    // Networks and subnets.
    DefaultNetwork => InUse: "the network default cannot be deleted" help "Delete its subnets instead.";
    NetworkHasSubnets { network: ResourceName, subnets: u64 } => InUse: "network {network} still has subnets: {subnets}";
    NetworkHasReservations { network: ResourceName, reservations: u64 } => InUse:
        "network {network} still has reservations: {reservations}";
    SubnetOverlap { cidr: IpNet, subnet: Name, other: IpNet, network: Name } => Overlap:
        "{cidr} overlaps with subnet {subnet} ({other}) of network {network}";
    SubnetHasPools { subnet: ResourceName, pools: u64 } => InUse: "subnet {subnet} still has pools: {pools}"
        help "Delete its pools first.";
    HostBits { cidr: IpNet } => CidrHasHostBits: (host_bits(*cidr));
    SubnetTooLarge { cidr: IpNet, shortest: u8 } => LimitExceeded:
        (format!("{cidr} is too large: an {} subnet is at most a /{shortest}", Family::of(cidr.addr())));
    MappedSubnet { cidr: IpNet } => InvalidField:
        (format!("{cidr} is IPv4 in the form of IPv6; did you mean {}?", unmapped(*cidr)));
    NotForHosts { cidr: IpNet, purpose: SpecialUse } => InvalidField:
        "{cidr} is for {purpose}, and not usable for hosts";
    VlanId => InvalidField: "a VLAN id is 0 to {VLAN_MAX}";
    Mtu { cidr: IpNet, mtu: u32, least: u32 } =>
        (if (MTU_MIN_V4..=MTU_MAX).contains(mtu) { Code::ConflictingFields } else { Code::InvalidField }): "the MTU of {cidr} is {least} to {MTU_MAX}, not {mtu}";

    // Gateways and routes.
    GatewayFamily { gateway: IpAddr, cidr: IpNet } => FamilyMismatch:
        "gateway {gateway} and subnet {cidr} are of different families";
    GatewayOutside { gateway: IpAddr, cidr: IpNet } => OutsideSubnet: "gateway {gateway} is outside {cidr}";
    GatewayOnEdge { gateway: IpAddr, cidr: IpNet } => GatewayInRange:
        "gateway {gateway} is an edge address of {cidr}, which is not usable for hosts";
    GatewayOffered { gateway: IpAddr, of: Name, by: Name } => Overlap:
        "{gateway} is the gateway of pool {of}, and allocatable in pool {by}"
        help "Exclude it from pool {by}, or choose another gateway.";
    GatewayInUse { gateway: IpAddr, by: UsedBy } => InUse: "{gateway} cannot become the gateway: {by}";
    RouteFamily { destination: IpNet, family: Family } => FamilyMismatch:
        "the route to {destination} is not of the subnet's family {family}";
    DefaultRoute => ConflictingFields: "a route can't be the default route" help "Set the gateway instead.";
    RouteOutside { gateway: IpAddr, cidr: IpNet } => OutsideSubnet: "gateway {gateway} of a route is outside {cidr}";
    RouteTwice { destination: IpNet } => ConflictingFields: "there are two routes to {destination}";
    RouteMixed { destination: IpNet, gateway: IpAddr } => FamilyMismatch:
        "the route to {destination} and its gateway {gateway} are of different families";
    DefaultRouteElsewhere { interface: InterfaceName } => ConflictingFields:
        "default route interface {interface} is not among the interfaces"
        help "Add it to the interfaces, or set clean_gateway on interfaces without a default route.";
    RouteInNoSubnet { gateway: IpAddr, destination: IpNet, endpoint: EndpointKey } => OutsideSubnet:
        "gateway {gateway} of the route to {destination} is in no subnet that {endpoint} gets an address of"
        help "Request all interfaces together, or remove the routes of the others.";

    // Pools and reservations.
    EmptyReservation => InvalidField: "a reservation names at least one address";
    FamiliesMixed { one: AddressRange, other: AddressRange } => FamilyMismatch: "{one} and {other} are of different families";
    CoolingTooLong { cooling_ms: u64 } => LimitExceeded:
        "cooling_ms is {cooling_ms} and at most {COOLING_MS_MAX} (a week)";
    NewPoolTerminating => Terminating: "a new pool cannot be terminating";
    PoolTerminating { pool: Name } => Terminating: "pool {pool} is terminating"
        help "Cancel the deletion first: ipamctl pool set {pool} --no-drain.";
    PoolInUse { pool: ResourceName, held: u64 } => InUse: (format!("{} held in pool {pool}", addresses_are(*held)))
        help "Drain it: ipamctl pool delete {pool} --drain deletes it when they are released.";
    SubnetElsewhere { subnet: Name, network: Name, named: Name } => ConflictingFields:
        "subnet {subnet} is in network {network}, not {named}";
    RangeFamily { range: AddressRange, subnet: Name, cidr: IpNet } => FamilyMismatch:
        "{range} is not of the family of subnet {subnet} ({cidr})";
    OutsideSubnet { range: AddressRange, subnet: Name, cidr: IpNet } => OutsideSubnet:
        "{range} is outside subnet {subnet} ({cidr})";
    PoolOverlap { range: AddressRange, pool: Name } => Overlap: "{range} overlaps with pool {pool}"
        help "Choose other ranges, or exclude the common addresses from one of them.";
    AddressesLost { pool: Name, held: u64, examples: Vec<Example> } => InUse:
        ({
            let named: Vec<String> =
                examples.iter().map(|(address, endpoint)| format!("{address} by {endpoint}")).collect();
            format!("{} held that pool {pool} would lose: {}", addresses_are(*held), named.join(", "))
        })
        help "Release them first, or keep their addresses in the pool.";
    PrefixesLost { pool: Name, held: u64, examples: Vec<NamedPrefix> } => InUse:
        ({
            let named: Vec<String> = examples.iter().map(ToString::to_string).collect();
            format!("{held} prefixes have addresses that pool {pool} would lose: {}", named.join(", "))
        })
        help "Release them first, or keep their addresses in the pool.";
    NotDrainable { kind: Kind } => InvalidField: "a {kind} cannot be drained; only pools can";
    DrainsToItself { pool: Name } => ConflictingFields: "pool {pool} cannot be drained to itself";
    DrainsToFamily { to: Name, there: Family, pool: Name, here: Family } => FamilyMismatch:
        "pool {to} is {there}, and pool {pool} is {here}";
    DrainsToNetwork { to: Name, there: Name, pool: Name, here: Name } => ConflictingFields:
        "pool {to} is in network {there}, and pool {pool} in {here}";
    DrainsToTerminating { to: Name } => Terminating: "pool {to} is terminating, and cannot be a drain target";
    DrainsToAutomatic { to: Name } => ConflictingFields: "pool {to} is an automatic pool, and cannot be a drain target"
        help "Drain to a pool that is not automatic.";
    DrainsToDrained { to: Name, further: Name } => ConflictingFields: "pool {to} is itself drained, to {further}"
        help "Drain to {further}; draining is not transitive.";
    SplitsNothing => InvalidField: "the new pool of a split needs ranges";
    PoolExists { pool: Name } => AlreadyExists: "pool {pool} exists already" help "Choose another name.";
    SplitsAutomatic { pool: Name } => ConflictingFields: "pool {pool} is an automatic pool, and cannot be split"
        help "Ask for another size in the application's requests.";
    SplitFamily { range: AddressRange, pool: Name, cidr: IpNet } => FamilyMismatch:
        "{range} is not of the family of pool {pool} ({cidr})";
    NotInPool { range: AddressRange, pool: Name } => ConflictingFields: "{range} is not in the ranges of pool {pool}"
        help "Show its ranges: ipamctl pool map {pool}.";
    NothingRemains { pool: Name } => ConflictingFields: "pool {pool} would be empty"
        help "Split off only a part of its ranges.";
    TooManyToMove => LimitExceeded:
        "more than {SPLIT_MOVED_MAX} held or cooling addresses; they cannot move at once"
        help "Split off the other part, or a smaller one.";

    // Automatic pools.
    NotAutomatic { pool: Name } => ConflictingFields: "pool {pool} is not automatic, and has no application"
        help "Remove `reclaim`. To delete a pool once it is empty: ipamctl pool delete NAME --drain.";
    FollowsApplication { pool: Name, field: FieldName, controller: NamedController } => ImmutableField:
        "{field} of pool {pool} is immutable: the pool was created for {controller}, and follows its requests"
        help (Some(how_to_change(*field).to_owned()));
    AutomaticWithoutController { endpoint: EndpointKey } => ConflictingFields:
        "an automatic pool requires the controller of {endpoint}"
        help "Add the controller, or request existing pools.";
    AutomaticWithoutSubnet => ConflictingFields: "an automatic pool requires a subnet for an interface"
        help "Name a subnet for the interfaces with automatic pools.";
    AutomaticWaits => ConflictingFields: "a request for an automatic pool cannot wait"
        help "Remove `wait`, and retry.";
    AutomaticAdopts => ConflictingFields: "adoption and automatic pools cannot be combined"
        help "Remove automatic_pool or adopt.";
    AutomaticEmpty => InvalidField: "a pool needs at least 1 address";
    AutomaticTooLarge { asked: u64 } => LimitExceeded:
        "an automatic pool of {asked} addresses; at most {AUTOMATIC_POOL_ADDRESSES_MAX} are allowed";
    TooFewSpare { interface: InterfaceName, family: Family, controller: NamedController, wanted: u128, subnet: Name, left: u128 }
        => PoolExhausted:
        "{interface} {family}: a pool for {controller} needs {wanted} addresses, and subnet {subnet} has only {left} that no pool has"
        help "Request fewer addresses or another subnet, or delete unused pools.";

    // Quotas.
    EmptyQuota { controller: NamedController } => ConflictingFields: "the quota of {controller} has no limit"
        help "Set a limit of IPv4 or IPv6 addresses, or remove the quota.";
    QuotaTooLarge { limit: u64 } => InvalidField: "a quota of {limit} exceeds {JSON_INTEGER_MAX}"
        help "Remove the limit where none is intended.";
    QuotaExceeded { scope: QuotaScope, family: Family, limit: u64, is_own: bool, used: u64, asked: u64 } => QuotaExceeded:
        ({
            let addresses = if *limit == 1 { "address" } else { "addresses" };
            format!("{scope} may have {limit} {family} {addresses} and has {used}; this needs {asked} more")
        })
        help (Some(format!(
            "Release some of them, or raise {} of the namespace.",
            quota_field(scope, *family, *is_own)
        )));

    // Requests for addresses.
    NoInterface => InvalidField: "no interface is named";
    InterfaceTwice { interface: InterfaceName } => ConflictingFields: "interface {interface} is named twice";
    FamilyTwice { interface: InterfaceName } => InvalidField: "{interface} lists a family twice";
    UnaskedFamily { interface: InterfaceName, address: IpAddr } => ConflictingFields:
        "{interface} asks for {address}, but for no address of that family";
    SeveralAddresses { interface: InterfaceName, family: Family } => ConflictingFields:
        "{interface} asks for more than one {family} address by value"
        help "An interface gets one address of each family; use another interface for more.";
    AttachedWithoutAttachment => ConflictingFields: "attached allocations need an attachment";
    AttachmentNotAttached => ConflictingFields: "allocations of an attachment are attached";
    StartMissing => ConflictingFields: "an attachment requires `started`, the start time of the requesting process";
    InterfaceMissing { interface: InterfaceName } => ConflictingFields:
        "the attachment's interface {interface} is not among those named"
        help "Name every interface of the endpoint in each of its ADDs, or that one only.";
    NotControllerKind { kind: Text } => InvalidField:
        (format!("{} is not a kind of controller such as StatefulSet", shown(kind)));
    NotControllerGroup { group: Text } => InvalidField:
        (format!("{} is not an API group without version, such as apps", shown(group)));
    NeverSticky { kind: Text } => ConflictingFields:
        "the endpoints of a {kind} cannot be sticky: their names are not reused"
        help "Remove `sticky`; addresses of such endpoints are released on deletion.";
    ScaleDownNotSticky => ConflictingFields: "scale_down requires a sticky endpoint"
        help "Set sticky: true, or name a controller with stable endpoint names.";
    StickyLease => ConflictingFields: "a sticky endpoint cannot have leases";
    LeaseWithoutTtl => ConflictingFields: "a lease requires ttl_ms" help "Set ttl_ms, or request lifecycle held.";
    TtlWithoutLease { lifecycle: Lifecycle } => ConflictingFields:
        "ttl_ms requires lifecycle leased, not {lifecycle}"
        help "Remove ttl_ms, or request lifecycle leased without an attachment.";
    LeaseTooShort { ttl_ms: u64 } => InvalidField: "ttl_ms is {ttl_ms}; a lease lasts at least {LEASE_TTL_MS_MIN} ms";
    LeaseTooLong { ttl_ms: u64 } => LimitExceeded: "ttl_ms is {ttl_ms} and at most {LEASE_TTL_MS_MAX} (a year)"
        help "Request lifecycle held for a longer allocation.";
    AdoptsFromSubnet { interface: InterfaceName } => ConflictingFields:
        "{interface} names a subnet, but adoption finds pools by address" help "Remove the subnets.";
    AdoptsNothing { interface: InterfaceName } => ConflictingFields:
        "{interface} has no address to adopt"
        help "List the existing addresses, or remove adopt.";
    AdoptsNoneOfFamily { interface: InterfaceName, family: Family } => ConflictingFields:
        "{interface} has no {family} address to adopt"
        help "List the existing address, or remove that family.";
    AttachmentWaits => ConflictingFields: "an attachment cannot wait for addresses; its runtime retries"
        help "Remove `wait`.";
    AdoptionWaits => ConflictingFields: "an adoption cannot wait" help "Remove `wait`.";
    AddressWaits { interface: InterfaceName } => ConflictingFields:
        "{interface} requests a specific address, and only requests to pools can wait"
        help "Remove `wait` or the address.";

    // Endpoints, attachments and allocations as they are.
    ReleasedSince { attachment: AttachmentKey } => AttachmentReleased:
        "attachment {attachment} was released after this request began";
    AttachmentOfAnother { attachment: AttachmentKey, holder: HeldBy, is_incarnation: bool } => AlreadyExists:
        ({
            let another = if *is_incarnation { "another incarnation of " } else { "" };
            format!("attachment {attachment} belongs to {another}{holder}")
        })
        help "Delete that attachment first; its runtime did not.";
    TooManyAttachments { address: IpAddr, endpoint: EndpointKey } => LimitExceeded:
        "{address} of {endpoint} is attached {ATTACHMENTS_PER_ALLOCATION_MAX} times, the maximum"
        help "Delete the attachments that are gone; their runtimes did not.";
    TooManyAllocations { endpoint: EndpointKey, held: u64 } => LimitExceeded:
        "{endpoint} holds {held} addresses; at most {ALLOCATIONS_PER_ENDPOINT_MAX} are allowed";
    OtherLifecycle { endpoint: EndpointKey, interface: InterfaceName, present: Lifecycle, asked: Lifecycle }
        => AlreadyExists: "the allocations of {endpoint} on {interface} are {present}, not {asked}"
        help "Request lifecycle {present}, or release them first.";
    OtherAddresses { endpoint: EndpointKey, interface: InterfaceName } => AlreadyExists:
        "{endpoint} already holds other addresses on {interface}"
        help "Release them first, or name another interface.";
    SomeInterfaces { endpoint: EndpointKey } => AlreadyExists:
        "{endpoint} already holds addresses on some of these interfaces" help "Ask for the other interfaces only.";
    WaitsAlready { endpoint: EndpointKey } => AlreadyExists: "{endpoint} already waits for another request"
        help "Withdraw that first: release the endpoint.";
    AllocationGone { allocation: u64 } => AllocationChanged: "allocation {allocation} is gone";
    LeaseGone { allocation: u64 } => AllocationChanged: "allocation {allocation} is gone"
        help "The lease has expired or was released; allocate again.";
    LeasesGone { endpoint: EndpointKey } => NotFound: "endpoint {endpoint} does not exist"
        help "The leases have expired or were released; allocate again.";
    NotLeased { which: Leases } => NotLeased:
        (match which {
            Leases::Allocation(id) => format!("allocation {id} has no lease"),
            Leases::Endpoint(key) => format!("{key} has no lease"),
        });

    // Candidates and choice.
    NamedPoolMissing { pool: Name, rule: Rule } => NotFound:
        (format!("pool {pool} does not exist{}", rule.names_it()));
    NamedForFamily { pool: Name, family: Family, interface: InterfaceName, rule: Rule } => FamilyMismatch:
        (format!("pool {pool} is listed as an {family} pool of {interface}, but is of the other family{}", rule.names_it()));
    NoPoolLike { family: Family, pattern: NamePattern, interface: InterfaceName, rule: Rule } => NotFound:
        (format!(
            "no {family} pool matches {pattern} for {interface}{}",
            rule.names_it()
        ));
    TooManyPoolsInSubnet { subnet: Name } => LimitExceeded: "subnet {subnet} has more than {POOLS_OF_SUBNET_MAX} pools"
        help "Name the pools, or let pools be found by whom they are for.";
    NoPoolOfFamily { interface: InterfaceName, family: Family, rule: Rule } => NoPoolSelected:
        (format!("{interface} needs an {family} address, but for that family {}", rule.names_none()))
        help "Name a pool of it in the request, or ask for the other family only.";
    NoPoolForAddress { address: IpAddr, interface: InterfaceName } => AddressOutsidePools:
        (format!(
            "{address} is requested, but {interface} has no candidate {} pool", Family::of(*address)
        ));
    NoPool { interface: InterfaceName, rule: Rule } => NoPoolSelected:
        (format!("interface {interface} {}", rule.gets_nothing()))
        help (Some(rule.help().to_owned()));
    NothingFits { unserved: Unserved, code: Code } => (*code): "{unserved}";
    Exhausted { unserved: Unserved, is_automatic: bool } => PoolExhausted: "{unserved}"
        help (more_addresses(unserved, *is_automatic));
    InNoPool { address: IpAddr, interface: InterfaceName, pools: Vec<Name>, count: u64 } => AddressOutsidePools:
        (format!(
            "{address} is in no candidate pool of {interface}: {}",
            listed(pools, *count, ", ")
        ));
    InNoPoolToAdopt { address: IpAddr, interface: InterfaceName } => AddressOutsidePools:
        "{address} is in no pool that allows {interface} to adopt it"
        help "Make a pool with it first, or name the pool that has it.";
    AskedTwice { address: IpAddr } => AddressTaken: "{address} is requested twice";
    Held { address: IpAddr, pool: Name, holder: HeldBy, allocation: u64 } => AddressTaken:
        "{address} of pool {pool} is held by {holder} (allocation {allocation})";
    InPrefix { address: IpAddr, pool: Name, prefix: NamedPrefix } => AddressTaken:
        "{address} of pool {pool} is inside {prefix}";
    Cooling { address: IpAddr, pool: Name, left_ms: u64 } => AddressCooling:
        "{address} of pool {pool} is cooling for another {left_ms} ms";
    NeverGiven { address: IpAddr, pool: Name, why: NeverGiven } => AddressReserved: "{address} of pool {pool} is {why}";
    NeverAdopted { address: IpAddr, pool: Name, why: NeverGiven } => AddressReserved:
        "{address} of pool {pool} is {why}" help "Change the pool or its subnet so that it has the address.";

    // Waiting claims.
    PoolsClosed { pools: Vec<(Name, Closed)> } => PoolDisabled:
        ({
            let closed: Vec<String> = pools.iter().map(|(pool, why)| format!("{pool} {why}")).collect();
            closed.join(", ")
        });
    NothingFree { pools: Vec<Name> } => PoolExhausted:
        ({
            let names: Vec<String> = pools.iter().map(ToString::to_string).collect();
            format!("no free address in {}", names.join(", "))
        });
    AwaitedPoolsGone => NotFound: "the awaited pools were deleted";

    // Prefixes.
    NoLevel => InvalidField: "the request names no prefix";
    PrefixLength { length: u8 } => InvalidField: "a prefix has 1 to {LENGTH_MAX} bits, not {length}";
    LengthOfFamily { length: u8, bits: u8 } => ConflictingFields:
        "a prefix of this family has at most {bits} bits, not {length}";
    NotLonger { length: u8, above: u8 } => ConflictingFields:
        "a /{length} cannot be a child of a /{above}: its prefix must be longer";
    PrefixTtl { ttl_ms: u64 } => LimitExceeded: "ttl_ms is {ttl_ms}; allowed are {PREFIX_TTL_MS_MIN} to {PREFIX_TTL_MS_MAX}";
    NoPrefix { prefix: u64 } => NotFound: "prefix {prefix} does not exist";
    NoPrefixOf { owner: ObjectName } => NotFound: "{owner} has no prefix there"
        help "Set its length to delegate it.";
    PoolGone => NotFound: "the pool is gone";
    NoBlock { length: u8, pool: Name, free: u128, size: u128 } => PoolExhausted:
        "no aligned block of /{length} is free in pool {pool} ({free} of {size} addresses are free)"
        help "Ask for a longer prefix, or release what is no longer needed. A block with the gateway, an exclusion, a reservation or an edge of the subnet in it is never free: allow_edges lets the edges go.";
    NoBlockInPrefix { length: u8, cidr: IpNet } => PoolExhausted:
        "no aligned block of /{length} is free in prefix {cidr}"
        help "Ask for a longer prefix, or release what is no longer needed.";
    PoolDelegatesNot { pool: Name, why: RejectReason } => (why.code()): "pool {pool} is {why}";
    PrefixEnded { prefix: NamedPrefix } => InUse: "{prefix} has ended and is being deleted"
        help "Ask again when it is gone.";
    TooMuchWork => LimitExceeded:
        "the request has more than {WORK_PER_COMMAND_MAX} pools, names or addresses examined; nothing was changed"
        help "Name fewer pools, or name them more closely; divide a transaction.";
    OtherPrefix { prefix: NamedPrefix, keeps_edges: bool } => AlreadyExists:
        ({
            let edges = if *keeps_edges { "without edge addresses" } else { "with edge addresses" };
            format!("{prefix} already exists with length {} and {edges}", prefix.cidr.prefix_len())
        })
        help "Ask for it as it is, release it first, or name another owner.";
    LeadershipEnded => NoLeader: "the leadership that proposed this has ended; nothing was changed";
    BootUnconfirmed { attachment: AttachmentKey, started: Started } => BootUnconfirmed:
        (format!(
            "attachment {attachment} was released in another boot of its node, and boot {} has sent no request since, except from this process",
            shown(&started.boot_id)
        ));
    RealmElsewhere { realm: Name, node: NodeKey } => ForeignNode:
        "realm {realm} is not the realm of node {node}";
    NodeMayNotFree { address: IpAddr, endpoint: EndpointKey, node: NodeKey } => ForeignNode:
        "node {node} may not release {address} of {endpoint}: an operator pinned it, its endpoint keeps it, or another node has it"
        help "Delete the attachment on this node, or let an operator release the address.";
    TooManyOfNode { node: NodeKey, what: Counted, count: u64, max: u64 } => LimitExceeded:
        "node {node} would have {count} {what}; at most {max} of one node are allowed"
        help "Release what the node no longer needs.";
    NodeEventsSpent { node: NodeKey, events: u64 } => TooManyRequests:
        "requests of node {node} caused {events} events within an hour of log time; at most {EVENTS_PER_NODE_MAX} are allowed"
        help "Find the workload that is created again and again on this node; its deletions are still served.";
    NodeHasToken { node: NodeKey, token: Name } => AlreadyExists: "node {node} has the token {token} already"
        help "To keep it: ipamctl token renew, with that token. To replace it, an administrator makes a join token that does: ipamctl token join --replace --node {node}";
    JoinTokenWithoutNode { node: NodeKey } => ForeignNode:
        "node {node} already exists, and the join token names no node"
        help "Use one for it alone: ipamctl token join --node {node}; with --replace if the node has a token.";
    ReplacesNoNode => ConflictingFields: "only a join token that names its node can replace that node's tokens"
        help "Give purpose: join, and node: realm and name.";
    TooManyTokensOfNode { node: NodeKey } => LimitExceeded:
        "node {node} has {NODE_TOKENS_MAX} tokens, the maximum per node"
        help "Delete those that it doesn't use: ipamctl token list.";
    NotRenewable => Forbidden: "only node tokens obtained by joining can be renewed"
        help "Get another one from an administrator: ipamctl token create, ipamctl token rotate.";
    SharedByRealms { verb: Verb, target: Target } => Forbidden:
        "a token with realms has no permission to {verb} {target} resources: realms share them"
        help "Ask with a token without realms, or with one that has allow_shared: ipamctl token create --allow-shared.";
    ClusterBeyondLimits { verb: Verb, target: Target } => Forbidden:
        "a token with realms or labels has no permission to {verb} {target} resources: they concern the whole cluster" help "Ask with a token without limits.";
    BeyondLabels { kind: Kind, name: ResourceName, field: Option<FieldName> } => Forbidden:
        (beyond_labels(*kind, name, *field)) help "Ask with a token without labels.";
    BeyondOwnRights { token: Name } => Forbidden: "the rights of token {token} are not within those of the caller"
        help "Name realms and labels at least as strict as the own ones, or ask with a token without limits.";
    SharedWithoutRealms => ConflictingFields: "allow_shared requires realms" help "Name realms, or leave allow_shared out.";
    NoAutomaticPools { subnet: Name } => Forbidden: "subnet {subnet} does not allow automatic pools" help "Allow them: ipamctl subnet set {subnet} --automatic. Or name a pool.";
    AutomaticAboveMax { wanted: u128, subnet: Name, max: u32 } => LimitExceeded:
        "an automatic pool of {wanted} addresses; subnet {subnet} allows {max} at most"
        help "Ask for fewer, or allow more: ipamctl subnet set {subnet} --automatic-max-size.";
    KeptByNode { node: NodeKey } => Forbidden: "node {node} may not make an automatic pool that outlives its application"
        help "Leave reclaim out, and set it afterwards as an operator: ipamctl pool set POOL --reclaim false.";
    TooManyAutomaticOfNode { node: NodeKey } => LimitExceeded:
        "requests of node {node} made {AUTOMATIC_POOLS_PER_NODE_MAX} automatic pools that still exist; no more are allowed"
        help "End applications that are gone: ipamctl endpoint end.";
    NotPeerAddress { address: Text } => InvalidField:
        (format!("{} is not a valid peer address", shown(address)))
        help "Write it as host:port, or as unix:/absolute/path of at most 107 bytes, in printable ASCII.";
    NotClientUrl { url: Text } => InvalidField:
        (format!("{} is not a valid client URL", shown(url)))
        help "Write it as http://host:port or https://host:port, in printable ASCII.";
    ApplicationOfOthers { controller: NamedController, node: NodeKey } => Forbidden:
        "node {node} may scale or end {controller} only while it holds all addresses of the controller, none of them sticky"
        help "Ask as an operator, or on the node that holds its last address.";
    AgentVersion => InvalidField:
        "an agent version has 1 to {AGENT_VERSION_CHARS_MAX} letters, digits, dots, plus signs and hyphens";
    BootNumber => InvalidField: "a boot number is between 1 and {JSON_INTEGER_MAX}";
    ReportElsewhere { reported: NodeKey, node: NodeKey } => ForeignNode:
        "node {node} may only report its own state, not that of node {reported}";
    PrefixWaitsAlready { owner: ObjectName, claim: u64 } => AlreadyExists:
        "{owner} already waits for another prefix"
        help "Repeat the earlier request, or withdraw it first: ipamctl prefix release {claim}.";
    Quarantined { address: IpAddr, pool: Name, mac: MacAddress } => AddressQuarantined:
        "{address} of pool {pool} is quarantined: the host {mac} uses it"
        help "Find the host, then end the quarantine: ipamctl quarantine end {address}.";
    NotQuarantined { address: IpAddr, network: Name } => NotFound:
        "{address} of network {network} is not quarantined";
    LinksUnsorted => InvalidField: "links are sorted by network and address, each one once";
    ProbeValidity { valid_ms: u64 } => LimitExceeded:
        "probing.valid_ms is {valid_ms} and must be between {PROBE_VALID_MS_MIN} and {PROBE_VALID_MS_MAX}";
    NodeGrace { grace_ms: u64 } => LimitExceeded:
        "the grace of a silent node is {grace_ms} ms; it is {NODE_GRACE_MS_MIN} to {NODE_GRACE_MS_MAX}";
    NodeAlive { node: NodeKey, heard_ms_ago: u64 } => InUse:
        "the agent of node {node} was heard {heard_ms_ago} ms ago, so the node is not gone"
        help "Stop the agent of the node first, and try again half a minute later.";
    LinkWaits => ConflictingFields: "a request with link_addresses cannot wait"
        help "Remove `wait`, or name pools instead.";
    PodUnreported { realm: Name, uid: Text } => PodUnreported:
        (format!("the watcher of realm {realm} has not reported a pod with uid {}", shown(uid)));
    ClaimMismatch { node: NodeKey, endpoint: EndpointKey, claimed: Claimed } => ClaimMismatch:
        "node {node} requests addresses for {endpoint} with {claimed} that its cluster does not confirm";
    TooManyPods { count: u64 } => LimitExceeded:
        "{count} reported pods; at most {PODS_REPORTED_MAX} are kept"
        help "Watch fewer clusters with this one, or leave the verification of claims out: verify = false.";
    PodOfOtherRealm { realm: Name, other: Name } => ConflictingFields:
        "a report of realm {realm} has a pod of realm {other}";
    PodTwice { uid: Text } => ConflictingFields: (format!("the report has the uid {} twice", shown(uid)));
    OwnerTwice { owner: ObjectName } => ConflictingFields: "{owner} is listed twice";
    TooManyUnlisted => LimitExceeded:
        "more than {PREFIXES_UNLISTED_MAX} prefixes and waiting requests would end; nothing was changed"
        help "Release some of those that are not listed first: ipamctl prefix release ID.";
    PrefixListSize { bytes: u64 } => LimitExceeded:
        "the response has {bytes} bytes; at most {RESPONSE_BYTES_MAX} are allowed"
        help "List fewer prefixes; nothing was changed.";
    HostReinstalled { endpoint: EndpointKey, uid: Text } => HostReinstalled:
        (format!(
            "{endpoint} has the machine id {}, not that of the request: it was installed again, or another \
             host has its name",
            shown(uid)
        ));
    TakesOverNoMachine => ConflictingFields:
        "take_over needs an endpoint of kind host, and the uid of its machine"
        help "Add the uid, or remove take_over.";
    HostPolicyDefault => InvalidField: "the name default belongs to the endpoints of hosts without a policy"
        help "Choose another name for the host policy.";
    MaxUnavailable => InvalidField: "max_unavailable is a count from 1 on, or a percentage from 1% to 100%";
    RecordHeld { address: IpAddr, holder: HeldBy, allocation: u64 } => AddressTaken:
        "{address} cannot be recorded: another endpoint, {holder}, holds it (allocation {allocation})"
        help "Record it for its holder, or release it first.";
    RecordedForAnother { address: IpAddr, reservation: Name, endpoint: EndpointKey } => AddressTaken:
        "reservation {reservation} records {address} for {endpoint}"
        help "Change that reservation first.";
    FieldOfOneEndpoint => ConflictingFields:
        "a request for many endpoints has a field that only one endpoint can have: uid, attachment, addresses, mac, hostname, link addresses, routes, clean_gateway, adopt, wait or take_over"
        help "Send a request of its own for that endpoint.";
    EndpointTwice { name: ObjectName, first: u32, second: u32 } => ConflictingFields:
        "names[{first}] and names[{second}] are both {name}"
        help "Name each endpoint once.";
    OwnRoutes { endpoint: EndpointKey } => ConflictingFields:
        "{endpoint} has routes of its own, and the answer for many endpoints has only those of pools"
        help "Send a request of its own for that endpoint.";
}
