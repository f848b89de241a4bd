//! Forms of partitions.

use crate::nemesis::choice::{chance, one_of, shuffled};
use crate::nemesis::{Link, View};
use crate::random::Random;

/// Form of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Two halves that don't reach each other.
    Halves,
    /// The leader in a minority.
    LeaderMinority,
    /// Two halves that only one member reaches, in both directions.
    Bridge,
    /// Each member reaches a majority, and no two members reach the same one.
    MajoritiesRing,
    /// One member receives frames from the others and can't send to them, or the reverse.
    OneWay,
    /// One member that neither members nor clients reach.
    Single,
    /// Members that do not reach each other.
    Shattered,
}

impl Form {
    pub(super) const ALL: &[Self] = &[
        Self::Halves,
        Self::LeaderMinority,
        Self::Bridge,
        Self::MajoritiesRing,
        Self::OneWay,
        Self::Single,
        Self::Shattered,
    ];
}

/// Links that a partition of this form cuts.
pub(super) fn links(form: Form, random: &mut Random, view: &View) -> Vec<Link> {
    let mut order = shuffled(random, &view.members);
    let few = view.minority();
    match form {
        Form::Halves => between(order.get(..few), order.get(few..)),
        Form::LeaderMinority => {
            // The leader comes first.
            order.sort_by_key(|name| Some(name) != view.leader.as_ref());
            between(order.get(..few), order.get(few..))
        }
        Form::Bridge => between(order.get(..few), order.get(few.saturating_add(1)..)),
        Form::MajoritiesRing if view.members.len() < RING_MIN => {
            between(order.get(..few), order.get(few.saturating_add(1)..))
        }
        Form::MajoritiesRing => ring(&order),
        Form::OneWay => one_way(random, &order, view),
        Form::Single => {
            let others = order.get(1..).unwrap_or_default().iter().chain(&view.hosts);
            let single = order.first();
            single.map(|one| others.flat_map(|other| Link::both(one, other)).collect()).unwrap_or_default()
        }
        Form::Shattered => pairs(&order).flat_map(|(one, other)| Link::both(one, other)).collect(),
    }
}

/// Fewest members with which a ring lacks some links.
const RING_MIN: usize = 4;

fn between(some: Option<&[String]>, others: Option<&[String]>) -> Vec<Link> {
    let others = others.unwrap_or_default();
    let pairs = some.unwrap_or_default().iter().flat_map(|one| others.iter().map(move |other| (one, other)));
    pairs.flat_map(|(one, other)| Link::both(one, other)).collect()
}

fn pairs(order: &[String]) -> impl Iterator<Item = (&String, &String)> {
    let rest = |at: usize| order.get(at.saturating_add(1)..).unwrap_or_default();
    order.iter().enumerate().flat_map(move |(at, one)| rest(at).iter().map(move |other| (one, other)))
}

/// Each member keeps its neighbours, as many on both sides as make a majority.
fn ring(order: &[String]) -> Vec<Link> {
    let count = order.len();
    let reach = count.div_euclid(2).div_ceil(2);
    let is_far = |one: usize, other: usize| {
        let distance = one.abs_diff(other);
        distance.min(count.saturating_sub(distance)) > reach
    };
    let place = |name: &String| order.iter().position(|other| other == name).unwrap_or_default();
    pairs(order)
        .filter(|(one, other)| is_far(place(one), place(other)))
        .flat_map(|(one, other)| Link::both(one, other))
        .collect()
}

fn one_way(random: &mut Random, order: &[String], view: &View) -> Vec<Link> {
    let leader = view.leader.clone().filter(|_| chance(random, 50));
    let Some(one) = leader.or_else(|| one_of(random, order)) else { return Vec::new() };
    let others: Vec<&String> = order.iter().filter(|other| **other != one).collect();
    // Sometimes a single link.
    let others = if chance(random, 25) { others.into_iter().take(1).collect() } else { others };
    let is_deaf = chance(random, 50);
    let link = |other: &String| match is_deaf {
        true => Link { from: other.clone(), to: one.clone() },
        false => Link { from: one.clone(), to: other.clone() },
    };
    others.into_iter().map(link).collect()
}
