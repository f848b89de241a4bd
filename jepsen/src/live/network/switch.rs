//! Switch: ports, learned addresses, and the choice of the ports that get a frame.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use super::fabric::{Fabric, Sink};
use super::frame::{Frame, Mac, is_unicast};
use super::held::PortId;
use crate::nemesis::Link;
use crate::sync::held;

/// Switch, as its threads share it.
pub(super) struct Shared {
    switch: Mutex<Switch>,
    /// Signal that a frame is due earlier than all others, or that the switch is closed.
    pub(super) changed: Condvar,
}

impl Shared {
    pub(super) fn new(seed: u64) -> Self {
        Self { switch: Mutex::new(Switch::new(seed)), changed: Condvar::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Switch> {
        held(&self.switch)
    }
}

/// One port: a host, or the many devices behind it.
struct Port {
    name: String,
    sink: Arc<dyn Sink>,
}

/// State of the switch.
pub(super) struct Switch {
    ports: BTreeMap<PortId, Port>,
    macs: BTreeMap<Mac, PortId>,
    pub(super) fabric: Fabric,
    last_id: PortId,
    pub(super) closed: bool,
}

impl Switch {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            ports: BTreeMap::new(),
            macs: BTreeMap::new(),
            fabric: Fabric::new(seed),
            last_id: 0,
            closed: false,
        }
    }

    pub(super) fn add_port(&mut self, name: &str, sink: Arc<dyn Sink>) -> PortId {
        self.last_id += 1;
        let id = self.last_id;
        for (other_id, other) in &self.ports {
            let link = |from: &str, to: &str| Link { from: from.to_owned(), to: to.to_owned() };
            self.fabric.add_pair(id, *other_id, link(name, &other.name));
            self.fabric.add_pair(*other_id, id, link(&other.name, name));
        }
        self.ports.insert(id, Port { name: name.to_owned(), sink });
        id
    }

    pub(super) fn remove_port(&mut self, id: PortId) {
        self.ports.remove(&id);
        self.macs.retain(|_, port| *port != id);
        self.fabric.remove_port(id);
    }

    /// Passes a frame that arrived at a port to the port of its receiver, or to all other ports.
    pub(super) fn receive(&mut self, from: PortId, bytes: &[u8], now: Instant) {
        let Some(frame) = Frame::new(bytes) else { return };
        let sender = frame.from();
        if is_unicast(sender) && self.macs.get(&sender) != Some(&from) {
            self.macs.insert(sender, from);
        }
        let receiver = frame.to();
        let known = if is_unicast(receiver) { self.macs.get(&receiver).copied() } else { None };
        if let Some(to) = known {
            if to != from
                && let Some(port) = self.ports.get(&to)
            {
                self.fabric.forward(from, (to, port.sink.as_ref()), frame, now);
            }
            return;
        }
        for (to, port) in &self.ports {
            if *to != from {
                self.fabric.forward(from, (*to, port.sink.as_ref()), frame, now);
            }
        }
    }

    /// Passes held frames that are due, at most `limit`; returns true if more are due.
    pub(super) fn deliver(&mut self, now: Instant, limit: usize) -> bool {
        for _ in 0..limit {
            let Some(frame) = self.fabric.held.take_due(now) else { return false };
            if let Some(port) = self.ports.get(&frame.to) {
                self.fabric.deliver(frame.from, (frame.to, port.sink.as_ref()), &frame.bytes, now);
            }
        }
        true
    }
}
