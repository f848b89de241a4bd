//! Meridio's allocation of prefixes against the machine: both always give the same block.
//!
//! The allocation is a model of Meridio's Go code.

use crate::support::random::Dice;
use crate::support::script::{self, Line};
use ipam_api::Family;
use ipam_api::address::AddressRange;
use ipam_machine::command::{Delegate, PrefixLevel, PrefixSource};
use ipam_machine::model::Prefix;
use ipam_machine::{Action, Answer, At, Id, State, apply};
use ipnet::IpNet;
use std::collections::{BTreeMap, VecDeque};

const SEQUENCES: u64 = 10_000;
const STEPS: u64 = 12;

/// Blocks of one parent, as Meridio's code keeps them.
struct Meridio {
    parent: IpNet,
    /// Addresses that are never allocated.
    blocked: Vec<IpNet>,
    children: BTreeMap<String, IpNet>,
}

impl Meridio {
    /// First block from the start of the parent that collides with nothing.
    ///
    /// Behind a collision the search goes on with the next block.
    fn allocate(&self, length: u8) -> Option<IpNet> {
        if length <= self.parent.prefix_len() || length > self.parent.max_prefix_len() {
            return None;
        }
        let mut candidate = IpNet::new(self.parent.network(), length).unwrap();
        while self.parent.contains(&candidate) {
            let mut taken = self.children.values().chain(&self.blocked);
            let Some(collision) = taken.find(|taken| overlap(taken, &candidate)) else {
                return Some(candidate);
            };
            let last = IpNet::new(collision.broadcast(), length).unwrap();
            candidate = next_prefix(last)?;
        }
        None
    }
}

fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(&other.network()) || other.contains(&one.network())
}

/// Block behind one; none behind the end of the address space.
fn next_prefix(block: IpNet) -> Option<IpNet> {
    let range = AddressRange::of_cidr(block.trunc());
    let next = range.last().checked_add(1)?;
    let highest = if range.family() == Family::V4 { u32::MAX.into() } else { u128::MAX };
    (next <= highest).then(|| IpNet::new(range.family().address(next), block.prefix_len()).unwrap())
}

/// State with one prefix that others are cut from, and the lengths that are asked of it.
fn parents() -> Vec<(State, Id<Prefix>, Vec<u8>)> {
    let wide = |cidr: &str, keep: &str, lengths: &[u8]| {
        let lines = [
            format!("put subnet lan cidr={cidr}"),
            "put pool lan subnet=lan edges".to_owned(),
            format!("delegate from=lan parent/{}{keep}", cidr.split_once('/').unwrap().1),
        ];
        let mut state = State::new();
        for line in lines {
            let Line::Propose(command) = script::read(&line, &mut VecDeque::new()) else { panic!("{line}") };
            apply(&mut state, At::default(), &command).0.unwrap();
        }
        let parent = state.prefixes.first().unwrap().0;
        (state, parent, lengths.to_vec())
    };
    vec![
        wide("169.16.0.0/16", "", &[17, 18, 20, 20, 24, 24, 32, 32]),
        wide("169.16.0.0/24", "", &[25, 26, 27, 28, 30, 31, 32, 24, 23]),
        wide("172.0.0.0/28", " keep-edges", &[29, 30, 31, 32, 32, 32, 32]),
        wide("255.255.255.240/28", "", &[29, 30, 31, 32, 32, 32]),
        wide("2001:1::/32", "", &[33, 34, 48, 64, 64, 128, 128]),
        wide("2001:1::/124", " keep-edges", &[125, 126, 127, 128, 128, 128]),
        wide("fe00:ffff:ffff:ffff:ffff:ffff:ffff:fff0/124", "", &[125, 126, 127, 128, 128]),
    ]
}

#[test]
fn blocks_are_those_that_meridio_allocates() {
    let parents = parents();
    let (mut given, mut refused) = (0, 0);
    for sequence in 0..SEQUENCES {
        let mut dice = Dice(sequence);
        let (start, parent, lengths) = &parents[usize::try_from(sequence).unwrap() % parents.len()];
        let mut state = start.clone();
        let row = state.prefixes.get(*parent).unwrap();
        let edges = [row.cidr.network(), row.cidr.broadcast()].map(IpNet::from);
        let blocked = if row.keep_edges { edges.to_vec() } else { Vec::new() };
        let mut meridio = Meridio { parent: row.cidr, blocked, children: BTreeMap::new() };
        for step in 0..STEPS {
            if dice.chance(30) && !meridio.children.is_empty() {
                let nth = usize::try_from(dice.below(meridio.children.len() as u64)).unwrap();
                let owner = meridio.children.keys().nth(nth).unwrap().clone();
                let gone = meridio.children.remove(&owner).unwrap();
                let mut below = state.prefixes_below((*parent).into());
                let id = below.find(|id| state.prefixes.get(*id).unwrap().cidr == gone).unwrap();
                drop(below);
                run(&mut state, Action::ReleasePrefix { id });
                continue;
            }
            let length = lengths[usize::try_from(dice.below(lengths.len() as u64)).unwrap()];
            let owner = format!("o{step}");
            let level = PrefixLevel {
                owner: owner.parse().unwrap(),
                length: Some(length),
                keep_edges: false,
                ttl_ms: None,
            };
            let ours = run(
                &mut state,
                Action::Delegate(Delegate {
                    from: PrefixSource::Prefix(*parent),
                    realm: "default".parse().unwrap(),
                    levels: vec![level],
                }),
            );
            let theirs = meridio.allocate(length);
            assert_eq!(ours, theirs, "/{length} in {} beside {:?}", meridio.parent, meridio.children);
            given += u32::from(theirs.is_some());
            refused += u32::from(theirs.is_none());
            meridio.children.extend(theirs.map(|block| (owner, block)));
        }
    }
    assert!(given > 20_000 && refused > 5_000, "{given} given, {refused} refused");
}

/// Carries an action out. Returns the delegated block, if any.
fn run(state: &mut State, action: Action) -> Option<IpNet> {
    let (outcome, _) = apply(state, At::default(), &script::command(action, None));
    match outcome.ok()?.answer {
        Answer::Delegated { prefixes, .. } => Some(prefixes[0].cidr),
        _ => None,
    }
}
