//! The language of the scenarios: one line, one command.
//!
//! ```text
//! at 1000 [wall=MS]                                   log time of what follows, in milliseconds; the wall clock
//!                                                     goes with it unless it is said otherwise
//! put network|subnet|pool|reservation NAME field=value flag …
//! put host-policy NAME [realm=REALM] [node_labelled=SELECTOR] [interface=NAME:POOL,…] [capture=NAME=POOL]
//!     [max_unavailable=COUNT|PERCENT%] [state=JSON]
//! put node|namespace REALM/NAME label=KEY=VALUE … [quota=4:COUNT] [per_application=6:COUNT] [quota=KIND/NAME=4:COUNT] …
//! split POOL into=NEW ranges=…
//! delete network|subnet|pool|reservation|node|namespace NAME [drain]
//! allocate ENDPOINT INTERFACE field=value … [clean] [+ INTERFACE field=value …] [field=value …] [route=TO>GATEWAY …]
//! allocate ENDPOINT INTERFACE … others=NAME,…        the same for many endpoints
//! release allocations ID …
//! release attachment NODE/CONFIG/CONTAINER/INTERFACE started=BOOT:MICROSECONDS[/TICKS]
//! explain COMMAND                                     the result of the command, and its reason
//! release allocation ID        release endpoint ENDPOINT        expire
//! delegate from=POOL|#ID OWNER/LENGTH field=value … [+ OWNER/LENGTH …]     release prefix ID
//! set-prefixes from=POOL|#ID [OWNER/LENGTH field=value …] [+ OWNER/LENGTH …]
//! scale NAMESPACE/KIND/NAME replicas=COUNT [start=NUMBER]     end-of NAMESPACE/KIND/NAME[:UID]
//! renew allocation ID [ttl=MS]        renew endpoint ENDPOINT [ttl=MS]
//! heartbeat NODE boot=ID:NUMBER [problem=NAME] [links=CIDR,NETWORK@CIDR,…] [inventory=COUNT:DIGEST]
//! probes NODE [NETWORK@]ADDRESS[#ALLOCATION]>[MAC[+MAC]] …     `m7` is the MAC address 02:00:00:00:00:07
//! end-quarantine ADDRESS [network=NAME]        reclaim NODE gone|silent:GRACE ALLOCATION …
//! end-incarnation ENDPOINT uid=UID ALLOCATION …
//! orphans NODE CONFIG/CONTAINER/INTERFACE:ID,…:EVIDENCE …
//! transaction [if=KIND/NAME:absent] [if=KIND/NAME:REVISION] … steps … end
//! show pool|address|endpoint|node|namespace|attachment NAME        show state        show prefixes POOL
//! show checks|collisions POOL        show neighbor ALLOCATION
//! show jobs NODE LIMIT [start|SUBNET [AFTER]]
//! show inventory NODE                                 of the agent, and of the state
//! ```
//!
//! Every command takes `expect=absent|REVISION` where it has one, and `before=MS`, the log time of its
//! deadline. Revisions and ids are written without their epoch. `65*10.0.0.0` is a list of 65 addresses,
//! each two behind the one before.

mod agent;
mod words;

use ipam_machine::{Action, Command, fixtures};
use words::{Words, ranges, route};

use std::collections::{BTreeMap, VecDeque};

use ipam_api::address::parse_address;
use ipam_api::name::{InterfaceName, Name, ObjectName, ResourceName};
use ipam_api::request::AttachmentKey;
use ipam_api::resource::{EndpointKey, Lifecycle, ScaleDown, Strategy};
use ipam_api::{Family, Problem};
use ipam_machine::command::{
    Allocate, AllocateMany, AllocateOptions, AllocationMetadata, Controller, Delegate, Delete, Dns,
    EndController, Expect, HostPolicyInterface, HostPolicySpec, InterfaceRequest, Kind, Leases,
    MaxUnavailable, Metadata, NamespaceSpec, NetworkSpec, NodeSpec, PoolPatterns, PoolSelectors, PoolSpec,
    Precondition, PrefixLevel, PrefixSource, Put, ReleaseAttachment, ReleaseAttachmentOf, Renew,
    ReservationSpec, Routing, ScaleController, SetPrefixes, SplitPool, Started, Stickiness, SubnetSpec, Text,
    Transaction,
};

/// The first epoch's share of every revision and id.
pub(crate) const EPOCH: u64 = 1 << 40;

/// One line, understood.
pub(crate) enum Line {
    /// Log time moves.
    At(u64, Option<u64>),
    /// A leadership begins.
    Leadership(u64, u64),
    /// The leadership that further proposals name.
    Under(u64),
    /// A proposal.
    Propose(Box<Command>),
    /// Explains a proposal.
    Explain(Box<Command>),
    /// A look at the state: what, and which.
    Show(String, String),
    /// Refusal by the types, before a proposal.
    Unreadable(Problem),
}

/// Reads one command; takes further lines where it has a body.
pub(crate) fn read(first: &str, rest: &mut VecDeque<&str>) -> Line {
    let mut words = Words::of(first);
    let mut verb = words.take();
    let explain = verb == "explain";
    if explain {
        verb = words.take();
    }
    match verb.as_str() {
        "at" => {
            let wall_ms = words.field("wall").map(|text| text.parse().unwrap());
            let log_time_ms = words.take().parse().unwrap();
            assert!(words.is_empty(), "a time stands on a line of its own: {first:?}");
            return Line::At(log_time_ms, wall_ms);
        }
        "leadership" => {
            let number = words.take().parse().unwrap();
            return Line::Leadership(number, words.take().parse().unwrap());
        }
        "under" => return Line::Under(words.take().parse().unwrap()),
        "show" => {
            let what = words.take();
            return Line::Show(what, words.0.join(" "));
        }
        _ => {}
    }
    let not_after_ms = words.field("before").map(|text| text.parse().unwrap());
    match action(&verb, &mut words, rest) {
        Ok(action) => {
            assert!(words.is_empty(), "not understood in {first:?}: {words:?}");
            let command = Box::new(command(action, not_after_ms));
            if explain { Line::Explain(command) } else { Line::Propose(command) }
        }
        Err(problem) => Line::Unreadable(problem),
    }
}

/// A proposal as a test's caller makes it.
pub(crate) fn command(action: Action, not_after_ms: Option<u64>) -> Command {
    let mut command = fixtures::command(action);
    command.origin.not_after_ms = not_after_ms;
    command
}

fn action(verb: &str, words: &mut Words, rest: &mut VecDeque<&str>) -> Result<Action, Problem> {
    match verb {
        "put" => put(words),
        "delete" => Ok(Action::Delete(Delete {
            kind: kind(&words.take()),
            name: ResourceName::new(&words.take())?,
            expect: expected(words),
            drain: words.flag("drain"),
        })),
        "allocate" => allocate(words),
        "split" => Ok(Action::SplitPool(SplitPool {
            name: Name::new(&words.take())?,
            into: Name::new(&words.field("into").unwrap())?,
            ranges: ranges(&words.list("ranges"))?,
            expect: expected(words),
        })),
        "delegate" => delegate(words),
        "set-prefixes" => {
            let (from, realm, prefixes) = levels(words)?;
            Ok(Action::SetPrefixes(SetPrefixes { from, realm, prefixes }))
        }
        "release" => release(words),
        "renew" => renew(words),
        "heartbeat" => agent::heartbeat(words),
        "orphans" => agent::orphans(words),
        "probes" => agent::probes(words),
        "end-quarantine" => agent::end_quarantine(words),
        "reclaim" => agent::reclaim(words),
        "end-incarnation" => agent::end_incarnation(words),
        "expire" => Ok(Action::Expire),
        "scale" => scale(words),
        "end-of" => end_of(words),
        "transaction" => transaction(words, rest),
        other => panic!("no such command: {other}"),
    }
}

fn put(words: &mut Words) -> Result<Action, Problem> {
    let kind = kind(&words.take());
    let name = words.take();
    let metadata = Metadata {
        description: Text::given(words.field("description").unwrap_or_default()),
        labels: labels(words),
        ..Metadata::default()
    };
    if kind.is_in_realm() {
        return put_in_realm(kind, &name, metadata, words);
    }
    let name = Name::new(&name)?;
    let expect = expected(words);
    let named = |field: Option<String>| field.map_or(Ok(Name::default_name()), |text| Name::new(&text));
    Ok(match kind {
        Kind::HostPolicy => host_policy(name, metadata, expect, words)?,
        Kind::Token | Kind::Node | Kind::Namespace => panic!("{kind}s are put elsewhere"),
        Kind::Network => {
            Action::PutNetwork(Put { spec: NetworkSpec { name, probing: words.probing(), metadata }, expect })
        }
        Kind::Subnet => {
            let cidr = words.field("cidr").unwrap();
            let spec = SubnetSpec {
                name,
                network: named(words.field("network"))?,
                cidr: ipam_api::address::parse_cidr(&cidr)?,
                gateway: words.field("gateway").map(|text| parse_address(&text)).transpose()?,
                vlan: words.field("vlan").map(|text| text.parse().unwrap()),
                mtu: words.field("mtu").map(|text| text.parse().unwrap()),
                routes: words.all("route").iter().map(|text| route(text)).collect::<Result<_, _>>()?,
                dns: Dns {
                    nameservers: words
                        .list("nameservers")
                        .iter()
                        .map(|text| parse_address(text))
                        .collect::<Result<_, _>>()?,
                    ..Dns::default()
                },
                automatic: words.automatic_rules()?,
                probing: words.probing(),
                metadata,
            };
            Action::PutSubnet(Put { spec, expect })
        }
        Kind::Pool => {
            let spec = PoolSpec {
                name,
                subnet: Name::new(&words.field("subnet").unwrap())?,
                network: words.field("network").map(|text| Name::new(&text)).transpose()?,
                ranges: ranges(&words.list("ranges"))?,
                exclude: ranges(&words.list("exclude"))?,
                strategy: match words.field("strategy").as_deref() {
                    None | Some("next") => Strategy::Next,
                    Some("sequential") => Strategy::Sequential,
                    Some("random") => Strategy::Random,
                    Some(other) => panic!("no such strategy: {other}"),
                },
                cooling_ms: words.field("cooling_ms").map_or(0, |text| text.parse().unwrap()),
                strict_cooling: words.flag("strict"),
                cooling_reserve: words.field("reserve").map_or(0, |text| text.parse().unwrap()),
                allow_edges: words.flag("edges"),
                gateway: words.field("gateway").map(|text| parse_address(&text)).transpose()?,
                routes: words.all("route").iter().map(|text| route(text)).collect::<Result<_, _>>()?,
                default: words.flag("default"),
                selectors: PoolSelectors {
                    realms: names(&words.list("realms"))?,
                    node_names: names(&words.list("nodes"))?,
                    node_selector: words.all("node_labelled").join(",").parse()?,
                    namespaces: names(&words.list("namespaces"))?,
                    namespace_selector: words.all("namespace_labelled").join(",").parse()?,
                    endpoint_selector: words.all("labelled").join(",").parse()?,
                    network_attachments: names(&words.list("attachments"))?,
                },
                scale_down: words.field("scale_down").map_or(Ok(ScaleDown::Release), |text| text.parse())?,
                disabled: words.flag("disabled"),
                terminating: words.flag("terminating"),
                drains_to: words.field("drains_to").map(|text| Name::new(&text)).transpose()?,
                reclaim: words.field("reclaim").map(|text| text == "yes"),
                probing: words.probing(),
                metadata,
            };
            Action::PutPool(Put { spec, expect })
        }
        Kind::Reservation => {
            let addresses = ranges(&words.list("addresses"))?;
            let network = named(words.field("network"))?;
            let endpoint = words.field("endpoint").map(|text| text.parse()).transpose()?;
            let spec = ReservationSpec { name, network, addresses, endpoint, metadata };
            Action::PutReservation(Put { spec, expect })
        }
    })
}

fn host_policy(name: Name, metadata: Metadata, expect: Expect, words: &mut Words) -> Result<Action, Problem> {
    let mut interfaces = Vec::new();
    for text in words.all("interface") {
        let (interface, pools) = text.split_once(':').unwrap();
        interfaces.push(HostPolicyInterface {
            name: InterfaceName::new(interface)?,
            ipv4_pools: names(&pools.split(',').map(str::to_owned).collect::<Vec<_>>())?,
            ipv6_pools: Vec::new(),
            clean_gateway: false,
        });
    }
    let captures = words.all("capture").into_iter().filter_map(|text| {
        let (name, pool) = text.split_once('=')?;
        Some((Text::given(name), Text::given(format!("ippool.{pool}.allocate"))))
    });
    let max_unavailable = match words.field("max_unavailable") {
        None => MaxUnavailable::Percent(50),
        Some(text) => match text.strip_suffix('%') {
            Some(percent) => MaxUnavailable::Percent(percent.parse().unwrap()),
            None => MaxUnavailable::Count(text.parse().unwrap()),
        },
    };
    let spec = HostPolicySpec {
        name,
        realm: words.field("realm").map_or(Ok(Name::default_name()), |text| Name::new(&text))?,
        node_selector: words.all("node_labelled").join(",").parse()?,
        interfaces,
        capture: captures.collect(),
        desired_state: Text::given(words.field("state").unwrap_or_else(|| "{}".to_owned())),
        max_unavailable,
        metadata,
    };
    Ok(Action::PutHostPolicy(Put { spec, expect }))
}

fn put_in_realm(kind: Kind, name: &str, metadata: Metadata, words: &mut Words) -> Result<Action, Problem> {
    let expect = expected(words);
    let (realm, name) = ResourceName::new(name)?.parts().expect("REALM/NAME");
    Ok(match kind {
        Kind::Node => Action::PutNode(Put { spec: NodeSpec { realm, name, metadata }, expect }),
        _ => {
            let default_pools = pools(words, "")?;
            let quota = words.quota(controller);
            let spec = NamespaceSpec { realm, name, default_pools, quota, metadata };
            Action::PutNamespace(Put { spec, expect })
        }
    })
}

fn pools(words: &mut Words, prefix: &str) -> Result<PoolPatterns, Problem> {
    Ok(PoolPatterns {
        ipv4: names(&words.list(&format!("{prefix}ipv4_pools")))?,
        ipv6: names(&words.list(&format!("{prefix}ipv6_pools")))?,
    })
}

fn labels(words: &mut Words) -> BTreeMap<Text, Text> {
    let labels = words.all("label").into_iter().filter_map(|text| {
        let (key, value) = text.split_once('=')?;
        Some((Text::given(key), Text::given(value)))
    });
    labels.collect()
}

fn allocate(words: &mut Words) -> Result<Action, Problem> {
    let endpoint: EndpointKey = words.take().parse()?;
    let others: Vec<String> = words.list("others");
    let others = others.iter().map(|name| ObjectName::new(name)).collect::<Result<Vec<_>, _>>()?;
    let uid = words.field("uid").map(Text::given);
    let labels = labels(words);
    let node = words.field("node").map(|text| ObjectName::new(&text)).transpose()?;
    let started = words.field("started").map(|text| started(&text));
    let attach = words.field("attach");
    let lifecycle = match words.field("lifecycle").as_deref() {
        None if attach.is_some() => Lifecycle::Attached,
        None | Some("held") => Lifecycle::Held,
        Some("attached") => Lifecycle::Attached,
        Some("leased") => Lifecycle::Leased,
        Some(other) => panic!("no such lifecycle: {other}"),
    };
    let stickiness = Stickiness {
        controller: words.field("controller").map(|text| controller(&text)),
        sticky: words.field("sticky").map(|text| text == "yes"),
        scale_down: words.field("scale_down").map(|text| text.parse()).transpose()?,
    };
    let automatic_pool = words.automatic_pool()?;
    let options = AllocateOptions {
        ttl_ms: words.field("ttl").map(|text| text.parse().unwrap()),
        adopt: words.flag("adopt"),
        take_over: words.flag("take_over"),
        wait: words.flag("wait"),
        metadata: AllocationMetadata {
            hostname: words.field("hostname").map(Text::given),
            description: Text::given(words.field("description").unwrap_or_default()),
        },
    };
    let mut routing = Routing {
        routes: words.all("route").iter().map(|text| route(text)).collect::<Result<_, _>>()?,
        clean: Vec::new(),
        default_interface: words.field("default_route").map(|text| text.parse()).transpose()?,
    };
    let mut interfaces = Vec::new();
    for mut words in words.split_at_plus() {
        let clean = words.flag("clean");
        let name = InterfaceName::new(&words.take())?;
        routing.clean.extend(clean.then(|| name.clone()));
        interfaces.push(InterfaceRequest {
            name,
            subnets: names(&words.list("subnets"))?,
            pools: pools(&mut words, "")?,
            default_pools: pools(&mut words, "default_")?,
            families: words.list("families").iter().map(|text| family(text)).collect(),
            addresses: words
                .list("addresses")
                .iter()
                .map(|text| parse_address(text))
                .collect::<Result<_, _>>()?,
            mac: words.field("mac").map(Text::given),
            network_attachment: words.field("by").map(|text| text.parse()).transpose()?,
            link_addresses: words
                .list("link")
                .iter()
                .map(|text| parse_address(text))
                .collect::<Result<_, _>>()?,
        });
        assert!(words.is_empty(), "not understood: {words:?}");
    }
    let attachment = match attach {
        // Without an interface of its own it is the first one's.
        Some(text) if text.split('/').count() == 3 => {
            let first = interfaces.first().map_or("eth0", |request| request.name.as_str());
            Some(attachment(&format!("{text}/{first}"))?)
        }
        Some(text) => Some(attachment(&text)?),
        None => None,
    };
    let request = Allocate {
        endpoint,
        uid,
        labels,
        node,
        attachment,
        stickiness,
        lifecycle,
        interfaces,
        automatic_pool,
        started,
        options,
        routing,
    };
    Ok(match others.is_empty() {
        true => Action::from(request),
        false => Action::AllocateMany(Box::new(AllocateMany { request, others })),
    })
}

/// `KIND/NAME` or `GROUP/KIND/NAME`, and behind a colon its uid.
fn controller(text: &str) -> Controller {
    let (names, uid) = text.split_once(':').map_or((text, None), |(names, uid)| (names, Some(uid)));
    let (group, kind, name) = match names.split('/').collect::<Vec<_>>()[..] {
        [kind, name] => ("", kind, name),
        [group, kind, name] => (group, kind, name),
        _ => panic!("no controller: {text}"),
    };
    let name = ObjectName::new(name).unwrap();
    Controller { group: Text::given(group), kind: Text::given(kind), name, uid: uid.map(Text::given) }
}

fn end_of(words: &mut Words) -> Result<Action, Problem> {
    let which = words.take();
    let (namespace, which) = which.split_once('/').unwrap();
    let (realm, namespace) = (Name::default_name(), ObjectName::new(namespace)?);
    Ok(Action::EndController(EndController { realm, namespace, controller: controller(which) }))
}

fn scale(words: &mut Words) -> Result<Action, Problem> {
    let which = words.take();
    let (namespace, which) = which.split_once('/').unwrap();
    let number = |text: String| text.parse().unwrap();
    Ok(Action::ScaleController(ScaleController {
        realm: Name::default_name(),
        namespace: ObjectName::new(namespace)?,
        controller: controller(which),
        replicas: words.field("replicas").map(number).unwrap(),
        start: words.field("start").map_or(0, number),
    }))
}

fn renew(words: &mut Words) -> Result<Action, Problem> {
    let which = match words.take().as_str() {
        "allocation" => Leases::Allocation(revision(&words.take()).into()),
        "endpoint" => Leases::Endpoint(words.take().parse()?),
        other => panic!("nothing to renew: {other}"),
    };
    Ok(Action::Renew(Renew { which, ttl_ms: words.field("ttl").map(|text| text.parse().unwrap()) }))
}

fn release(words: &mut Words) -> Result<Action, Problem> {
    Ok(match words.take().as_str() {
        "attachment" => {
            let key = attachment(&words.take())?;
            let release = ReleaseAttachment { key, started: started(&words.field("started").unwrap()) };
            match words.field("endpoint") {
                None => Action::ReleaseAttachment(release),
                Some(endpoint) => Action::ReleaseAttachmentOf(ReleaseAttachmentOf {
                    release,
                    endpoint: endpoint.parse()?,
                    uid: Text::given(words.field("uid").unwrap()),
                }),
            }
        }
        "allocation" => Action::ReleaseAllocation { id: revision(&words.take()).into() },
        "allocations" => {
            let ids = std::mem::take(&mut words.0);
            Action::ReleaseAllocations { ids: ids.iter().map(|id| revision(id).into()).collect() }
        }
        "endpoint" => Action::ReleaseEndpoint { key: words.take().parse()? },
        "prefix" => Action::ReleasePrefix { id: revision(&words.take()).into() },
        other => panic!("nothing to release: {other}"),
    })
}

/// The levels, one below the other; one without a length must be there.
fn delegate(words: &mut Words) -> Result<Action, Problem> {
    let wait = words.flag("wait");
    let (from, realm, levels) = levels(words)?;
    let request = Delegate { from, realm, levels };
    Ok(if wait { Action::DelegateOrWait(request) } else { Action::Delegate(request) })
}

fn levels(words: &mut Words) -> Result<(PrefixSource, Name, Vec<PrefixLevel>), Problem> {
    let from = words.field("from").unwrap();
    let from = match from.strip_prefix('#') {
        Some(id) => PrefixSource::Prefix(revision(id).into()),
        None => PrefixSource::Pool(Name::new(&from)?),
    };
    let realm = words.field("realm").map_or(Ok(Name::default_name()), |text| Name::new(&text))?;
    let mut levels = Vec::new();
    for mut words in words.split_at_plus() {
        let word = if words.is_empty() { break } else { words.take() };
        let (owner, length) = word.split_once('/').map_or((word.as_str(), None), |(o, l)| (o, Some(l)));
        levels.push(PrefixLevel {
            owner: ObjectName::new(owner)?,
            length: length.map(|text| text.parse().unwrap()),
            keep_edges: words.flag("keep-edges"),
            ttl_ms: words.field("ttl_ms").map(|text| text.parse().unwrap()),
        });
        assert!(words.is_empty(), "not understood: {words:?}");
    }
    Ok((from, realm, levels))
}

fn transaction(words: &mut Words, rest: &mut VecDeque<&str>) -> Result<Action, Problem> {
    let mut preconditions = Vec::new();
    for text in words.all("if") {
        let (which, state) = text.split_once(':').unwrap();
        let (of, name) = which.split_once('/').unwrap();
        preconditions.push(Precondition {
            kind: kind(of),
            name: ResourceName::new(name)?,
            expect: expect(state),
        });
    }
    let mut steps = Vec::new();
    loop {
        let line = rest.pop_front().expect("a transaction ends with `end`").trim();
        if line == "end" {
            return Ok(Action::Transaction(Transaction { preconditions, steps }));
        }
        let mut words = Words::of(line);
        let verb = words.take();
        steps.push(action(&verb, &mut words, rest)?);
        assert!(words.is_empty(), "not understood in {line:?}: {words:?}");
    }
}

/// The key of an attachment in the realm `default`.
pub(crate) fn attachment(text: &str) -> Result<AttachmentKey, Problem> {
    let [node, config, container_id, interface] =
        text.split('/').collect::<Vec<_>>().try_into().expect("NODE/CONFIG/CONTAINER/INTERFACE");
    Ok(AttachmentKey {
        realm: Name::default_name(),
        node: ObjectName::new(node)?,
        config: ObjectName::new(config)?,
        container_id: ObjectName::new(container_id)?,
        interface: InterfaceName::new(interface)?,
    })
}

fn kind(word: &str) -> Kind {
    match word {
        "network" => Kind::Network,
        "subnet" => Kind::Subnet,
        "pool" => Kind::Pool,
        "reservation" => Kind::Reservation,
        "node" => Kind::Node,
        "namespace" => Kind::Namespace,
        "host-policy" => Kind::HostPolicy,
        other => panic!("no such kind: {other}"),
    }
}

fn revision(text: &str) -> u64 {
    EPOCH + text.parse::<u64>().unwrap()
}

/// Expected revision, if the line has one.
fn expected(words: &mut Words) -> Expect {
    words.field("expect").map_or(Expect::Anything, |text| expect(&text))
}

fn expect(text: &str) -> Expect {
    if text == "absent" { Expect::Absent } else { Expect::Revision(revision(text)) }
}

fn started(text: &str) -> Started {
    let (boot_id, start) = text.split_once(':').unwrap();
    let (at_us, ticks) = start.split_once('/').map_or((start, None), |(at_us, ticks)| (at_us, Some(ticks)));
    let start_ticks = ticks.map(|ticks| ticks.parse().unwrap());
    Started { boot_id: Text::given(boot_id), at_us: at_us.parse().unwrap(), start_ticks }
}

fn family(text: &str) -> Family {
    match text {
        "4" => Family::V4,
        "6" => Family::V6,
        other => panic!("no such family: {other}"),
    }
}

fn names<N: std::str::FromStr<Err = Problem>>(list: &[String]) -> Result<Vec<N>, Problem> {
    list.iter().map(|text| text.parse()).collect()
}
