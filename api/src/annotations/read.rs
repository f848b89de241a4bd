//! Parsers of the annotations, in Spiderpool's syntax.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::de::DeserializeOwned;

use super::members::Members;
use super::{DEFAULT_ROUTE, IP_NUMBER, PREFIX, RECLAIM, RECLAIM_OLD, ROUTES, key};
use crate::name::{InterfaceName, Name, NamePattern, ObjectName, shown};
use crate::resource::{Labels, PoolSize, Route};
use crate::strict::nearest;
use crate::{Code, Problem};

/// Source of one interface's addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item<N> {
    /// Interface, in all items of a list or in none. Ignored outside a list.
    pub(super) interface: Option<InterfaceName>,
    /// Pools or subnets of IPv4.
    pub(super) ipv4: Vec<N>,
    /// Pools or subnets of IPv6.
    pub(super) ipv6: Vec<N>,
    /// True if the interface gets no default route.
    pub(super) cleangateway: bool,
}

impl<N: DeserializeOwned> Item<N> {
    fn read(word: &str, members: &Members) -> Result<Self, Problem> {
        misspelt(word, members, &["interface", "ipv4", "ipv6", "cleangateway"])?;
        // An empty name equals a missing one, as in Go.
        let interface: String = member(word, members, "interface")?;
        let interface = Some(interface).filter(|name| !name.is_empty());
        let unreadable = |problem: Problem| wrong(word, &format!("can't be read: {}", problem.detail));
        Ok(Self {
            interface: interface.map(|name| InterfaceName::new(&name).map_err(unreadable)).transpose()?,
            ipv4: member(word, members, "ipv4")?,
            ipv6: member(word, members, "ipv6")?,
            cleangateway: member(word, members, "cleangateway")?,
        })
    }
}

impl Item<ObjectName> {
    /// Returns the item with the names that `ipamctl apply` assigns to imported subnets.
    fn converted(self) -> Item<Name> {
        let names = |names: &[ObjectName]| names.iter().map(Name::from_foreign).collect();
        let Self { interface, ipv4, ipv6, cleangateway } = self;
        Item { interface, ipv4: names(&ipv4), ipv6: names(&ipv6), cleangateway }
    }
}

/// Parsed annotations of one pod.
#[derive(Debug, Default)]
pub(super) struct Overrides {
    pub(super) subnets: Option<Vec<Item<Name>>>,
    pub(super) subnet: Option<Item<Name>>,
    pub(super) pools: Option<Vec<Item<NamePattern>>>,
    pub(super) pool: Option<Item<NamePattern>>,
    pub(super) size: Option<PoolSize>,
    pub(super) reclaim: Option<bool>,
    pub(super) routes: Vec<Route>,
    pub(super) default_route_interface: Option<InterfaceName>,
}

/// Parses all annotations, also overridden ones: a malformed annotation is always an error.
pub(super) fn read(annotations: &Labels) -> Result<Overrides, Problem> {
    let mut overrides = Overrides::default();
    for (name, text) in annotations {
        let Some(word) = name.strip_prefix(PREFIX) else { continue };
        match word {
            super::SUBNETS => {
                let items = items(word, text)?.into_iter();
                overrides.subnets = Some(items.map(Item::<ObjectName>::converted).collect());
            }
            super::SUBNET => {
                let item: Item<ObjectName> = Item::read(word, &json(word, text)?)?;
                overrides.subnet = Some(named(word, item)?.converted());
            }
            super::POOLS => overrides.pools = Some(items(word, text)?),
            super::POOL => overrides.pool = Some(named(word, Item::read(word, &json(word, text)?)?)?),
            IP_NUMBER => {
                overrides.size = Some(text.parse().map_err(|problem: Problem| within(word, problem))?)
            }
            RECLAIM | RECLAIM_OLD => {
                let reclaim = truth(word, text)?;
                if overrides.reclaim.is_some_and(|before| before != reclaim) {
                    let detail = format!("{} and {} contradict each other", key(RECLAIM), key(RECLAIM_OLD));
                    return Err(Problem::new(Code::InvalidField, detail).help("Leave one of them out."));
                }
                overrides.reclaim = Some(reclaim);
            }
            ROUTES => overrides.routes = routes(text)?,
            DEFAULT_ROUTE => {
                let interface = InterfaceName::new(text).map_err(|problem| within(word, problem))?;
                overrides.default_route_interface = Some(interface);
            }
            ignored if super::IGNORED.contains(&ignored) => {}
            other => return Err(unknown(other)),
        }
    }
    Ok(overrides)
}

fn items<N: DeserializeOwned>(word: &str, text: &str) -> Result<Vec<Item<N>>, Problem> {
    let items: Vec<Members> = json(word, text)?;
    if items.is_empty() {
        return Err(wrong(word, "names no interface"));
    }
    let read = |members: &Members| named(word, Item::read(word, members)?);
    let items: Vec<Item<N>> = items.iter().map(read).collect::<Result<_, _>>()?;
    let with_name = items.iter().filter(|item| item.interface.is_some()).count();
    if with_name != 0 && with_name != items.len() {
        return Err(wrong(word, "names the interface of some entries and not of others")
            .help("Name all of them, or none: then they are eth0, net1, net2 and so on."));
    }
    let mut names = items.iter().filter_map(|item| item.interface.as_ref());
    while let Some(name) = names.next() {
        if names.clone().any(|other| other == name) {
            return Err(wrong(word, &format!("names {name} twice")));
        }
    }
    Ok(items)
}

fn named<N>(word: &str, item: Item<N>) -> Result<Item<N>, Problem> {
    if item.ipv4.is_empty() && item.ipv6.is_empty() {
        return Err(wrong(word, "names neither anything of IPv4 nor of IPv6"));
    }
    Ok(item)
}

/// Parses routes. Host bits of a destination are dropped, as in Go.
fn routes(text: &str) -> Result<Vec<Route>, Problem> {
    let route = |members: &Members| {
        misspelt(ROUTES, members, &["dst", "gw"])?;
        let missing = |field: &str| wrong(ROUTES, &format!("can't be read: missing field `{field}`"));
        let destination: Option<IpNet> = member(ROUTES, members, "dst")?;
        let gateway: Option<IpAddr> = member(ROUTES, members, "gw")?;
        Ok(Route {
            destination: destination.ok_or_else(|| missing("dst"))?.trunc(),
            gateway: gateway.ok_or_else(|| missing("gw"))?,
        })
    };
    json::<Vec<Members>>(ROUTES, text)?.iter().map(route).collect()
}

/// Reads a boolean as Go's `strconv.ParseBool` does.
fn truth(word: &str, text: &str) -> Result<bool, Problem> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(wrong(word, &format!("must be true or false, and is {}", shown(text)))),
    }
}

fn json<T: DeserializeOwned>(word: &str, text: &str) -> Result<T, Problem> {
    serde_json::from_str(text).map_err(|error| wrong(word, &format!("can't be read: {error}")))
}

fn member<T: DeserializeOwned + Default>(word: &str, members: &Members, name: &str) -> Result<T, Problem> {
    members.get(name).map_err(|why| wrong(word, &format!("can't be read: {why}")))
}

fn misspelt(word: &str, members: &Members, known: &[&str]) -> Result<(), Problem> {
    members.check(known).map_err(|why| within(word, Problem::new(Code::UnknownField, why.0)))
}

/// Adds the name of the annotation to a problem.
fn within(word: &str, problem: Problem) -> Problem {
    let detail = format!("{}: {}", key(word), problem.detail);
    Problem { detail, ..problem }.at(pointer(word))
}

/// Problem for an annotation.
pub(super) fn wrong(word: &str, why: &str) -> Problem {
    Problem::new(Code::InvalidField, format!("{} {why}", key(word))).at(pointer(word))
}

fn pointer(word: &str) -> String {
    format!("/annotations/{}", key(word).replace('/', "~1"))
}

fn unknown(word: &str) -> Problem {
    let known = super::KNOWN.iter().copied();
    if super::is_of_namespaces(&key(word)) {
        return wrong(word, "is said of a namespace, and not of what runs in it")
            .help("Describe the namespace: ipamctl namespace set NAME --ipv4-pool POOL.");
    }
    let detail = match nearest(word, known) {
        Some(near) => format!("unknown annotation {}; did you mean \"{}\"?", shown(&key(word)), key(near)),
        None => format!("unknown annotation {}", shown(&key(word))),
    };
    Problem::new(Code::UnknownField, detail).at(pointer(word))
}
