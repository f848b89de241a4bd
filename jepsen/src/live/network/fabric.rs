//! Fabric: passes a frame from one port to another, with the faults of their link.

use std::collections::BTreeMap;
use std::io;
use std::time::Instant;

use super::count::{Count, Flow};
use super::frame::Frame;
use super::held::{Held, HeldFrame, PortId};
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
    /// Number of held frames that later frames don't overtake.
    waiting: u32,
    /// Time at which the last of these frames is due.
    busy_until: Instant,
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
        let (flow, busy_until) = (Flow::default(), Instant::now());
        self.pairs.insert((from, to), Pair { link, effect, flow, waiting: 0, busy_until });
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
        pair.flow.count.sent += 1;
        let Effect { cut, blind, impairment } = pair.effect;
        if cut {
            pair.flow.count.cut += 1;
            return;
        }
        if blind && frame.is_probe() {
            pair.flow.count.blinded += 1;
            return;
        }
        if impairment.is_none() && pair.waiting == 0 {
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
            let (due, in_order) = pair.due(&impairment, &mut self.random, now);
            if due <= now && pair.waiting == 0 {
                pair.flow.send(sink, bytes, now);
            } else if self.held.is_full() {
                pair.flow.count.refused += 1;
            } else {
                pair.hold(due, in_order);
                self.held.add(due, in_order, (from, to), bytes);
            }
        }
    }

    /// Passes a held frame that is due.
    pub(super) fn deliver(&mut self, frame: &HeldFrame, sink: &dyn Sink, now: Instant) {
        let Some(pair) = self.pairs.get_mut(&(frame.from, frame.to)) else { return };
        pair.waiting -= u32::from(frame.in_order);
        if pair.effect.cut {
            pair.flow.count.cut += 1;
        } else {
            pair.flow.send(sink, &frame.bytes, now);
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
    /// Chooses the time at which a frame is due, and whether it stays in order.
    fn due(&mut self, impairment: &Impairment, random: &mut Random, now: Instant) -> (Instant, bool) {
        let delay = impairment.delay(random);
        self.flow.count.delayed += u64::from(!delay.is_zero());
        if happens(random, impairment.reorder_percent) {
            self.flow.count.reordered += 1;
            return (now + delay + Impairment::reorder_delay(random), false);
        }
        let due = now + delay;
        (if self.waiting > 0 { due.max(self.busy_until) } else { due }, true)
    }

    fn hold(&mut self, due: Instant, in_order: bool) {
        if in_order {
            self.waiting += 1;
            self.busy_until = due;
        }
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
