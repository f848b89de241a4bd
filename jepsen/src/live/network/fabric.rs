//! Fabric: passes a frame from one port to another, with the faults of their link.

use std::collections::BTreeMap;
use std::io;
use std::time::Instant;

use super::count::{Count, Flow};
use super::frame::Frame;
use super::held::{Held, PortId};
use super::impairment::{Impairment, happens};
use super::rules::{Effect, Rules};
use crate::nemesis::Link;
use crate::random::Random;

/// Output of a port.
pub(super) trait Sink: Send + Sync {
    /// Writes one frame.
    fn send(&self, frame: &[u8]) -> io::Result<()>;
}

/// One ordered pair of ports.
#[derive(Debug)]
struct Pair {
    link: Link,
    effect: Effect,
    flow: Flow,
    /// Time at which the last frame in order is due; a later frame doesn't overtake it.
    busy_until: Option<Instant>,
}

/// State of all pairs, and the held frames.
#[derive(Debug)]
pub(super) struct Fabric {
    pairs: BTreeMap<(PortId, PortId), Pair>,
    pub(super) rules: Rules,
    pub(super) held: Held,
    random: Random,
    /// Traffic of pairs with a removed port.
    past: BTreeMap<Link, Flow>,
}

impl Fabric {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            pairs: BTreeMap::new(),
            rules: Rules::default(),
            held: Held::default(),
            random: Random::new(seed),
            past: BTreeMap::new(),
        }
    }

    pub(super) fn add_pair(&mut self, from: PortId, to: PortId, link: Link) {
        let effect = self.rules.effect(&link);
        self.pairs.insert((from, to), Pair { link, effect, flow: Flow::default(), busy_until: None });
    }

    pub(super) fn remove_port(&mut self, port: PortId) {
        for ((from, to), pair) in std::mem::take(&mut self.pairs) {
            if from == port || to == port {
                add_flow(&mut self.past, pair.link, pair.flow);
            } else {
                self.pairs.insert((from, to), pair);
            }
        }
    }

    /// Applies changed rules to all pairs.
    pub(super) fn refresh(&mut self) {
        for pair in self.pairs.values_mut() {
            pair.effect = self.rules.effect(&pair.link);
        }
    }

    /// Passes a frame that has just arrived at a port.
    pub(super) fn forward(
        &mut self,
        from: PortId,
        (to, sink): (PortId, &dyn Sink),
        frame: Frame<'_>,
        now: Instant,
    ) {
        let Some(pair) = self.pairs.get_mut(&(from, to)) else { return };
        let Effect { cut, blind, impairment } = pair.effect;
        if cut {
            pair.flow.count.cut += 1;
            return;
        }
        if blind && frame.is_probe() {
            pair.flow.count.blinded += 1;
            return;
        }
        let queued = pair.busy_until.is_some_and(|until| until > now);
        if impairment.is_none() && !queued {
            pair.flow.send(sink, frame.bytes(), now);
            return;
        }
        let impairment = impairment.unwrap_or_default();
        if happens(&mut self.random, impairment.loss_percent) {
            pair.flow.count.lost += 1;
            return;
        }
        let twice = happens(&mut self.random, impairment.duplicate_percent);
        pair.flow.count.duplicated += u64::from(twice);
        for _ in 0..=u8::from(twice) {
            let copy;
            let mut bytes = frame.bytes();
            if happens(&mut self.random, impairment.corrupt_percent) {
                pair.flow.count.corrupted += 1;
                if frame.is_arp() {
                    continue;
                }
                copy = frame.corrupted(&mut self.random);
                bytes = &copy;
            }
            match pair.due(&impairment, &mut self.random, now) {
                None => pair.flow.send(sink, bytes, now),
                Some(due) => {
                    if !self.held.add(due, from, to, bytes.to_vec()) {
                        pair.flow.count.refused += 1;
                    }
                }
            }
        }
    }

    /// Passes a held frame that is due.
    pub(super) fn deliver(
        &mut self,
        from: PortId,
        (to, sink): (PortId, &dyn Sink),
        bytes: &[u8],
        now: Instant,
    ) {
        let Some(pair) = self.pairs.get_mut(&(from, to)) else { return };
        if pair.effect.cut {
            pair.flow.count.cut += 1;
        } else {
            pair.flow.send(sink, bytes, now);
        }
    }

    /// Traffic of each link, with links of removed hosts.
    pub(super) fn flows(&self) -> BTreeMap<Link, Flow> {
        let mut flows = self.past.clone();
        for pair in self.pairs.values() {
            add_flow(&mut flows, pair.link.clone(), pair.flow);
        }
        flows
    }
}

impl Pair {
    /// Chooses the time at which a frame is due; none for at once.
    fn due(&mut self, impairment: &Impairment, random: &mut Random, now: Instant) -> Option<Instant> {
        let delay = impairment.delay(random);
        if !delay.is_zero() {
            self.flow.count.delayed += 1;
        }
        if happens(random, impairment.reorder_percent) {
            self.flow.count.reordered += 1;
            return Some(now + delay + Impairment::reorder_delay(random));
        }
        let due = self.busy_until.map_or(now, |until| until.max(now)).max(now + delay);
        self.busy_until = Some(due);
        (due > now).then_some(due)
    }
}

impl Flow {
    fn send(&mut self, sink: &dyn Sink, bytes: &[u8], now: Instant) {
        let Count { forwarded, bytes: sum, refused, .. } = &mut self.count;
        if sink.send(bytes).is_err() {
            *refused += 1;
            return;
        }
        *forwarded += 1;
        *sum += u64::try_from(bytes.len()).unwrap_or_default();
        self.last = Some(now);
    }
}

fn add_flow(flows: &mut BTreeMap<Link, Flow>, link: Link, flow: Flow) {
    let sum = flows.entry(link).or_default();
    sum.count += flow.count;
    sum.last = sum.last.max(flow.last);
}
