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
                self.fabric.deliver(&frame, port.sink.as_ref(), now);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use super::super::Impairment;
    use super::*;

    /// Frames that a port has sent.
    #[derive(Default)]
    struct Log(Mutex<Vec<Vec<u8>>>);

    impl Sink for Log {
        fn send(&self, frame: &[u8]) -> io::Result<()> {
            held(&self.0).push(frame.to_vec());
            Ok(())
        }
    }

    impl Log {
        /// Returns the last bytes of the frames, and forgets them.
        fn take(&self) -> Vec<u8> {
            held(&self.0).drain(..).filter_map(|frame| frame.last().copied()).collect()
        }
    }

    /// Switch with the ports 1, 2, 3 of the hosts `a`, `b`, `c`.
    fn make() -> (Switch, Vec<Arc<Log>>) {
        let mut switch = Switch::new(1);
        let logs: Vec<_> = ["a", "b", "c"]
            .iter()
            .map(|name| {
                let log = Arc::new(Log::default());
                switch.add_port(name, Arc::clone(&log) as _);
                log
            })
            .collect();
        (switch, logs)
    }

    /// Frame of IPv4; 0xff is a broadcast.
    fn frame(to: u8, from: u8, content: u8) -> Vec<u8> {
        let to = if to == 0xff { [0xff; 6] } else { [2, 0, 0, 0, 0, to] };
        [&to[..], &[2, 0, 0, 0, 0, from, 8, 0], &[0; 30], &[content]].concat()
    }

    #[test]
    fn unknown_receivers_are_flooded_and_known_ones_are_not() {
        let ((mut switch, logs), now) = (make(), Instant::now());
        let arrived = || logs.iter().map(|log| log.take()).collect::<Vec<_>>();
        switch.receive(1, &frame(20, 10, 1), now);
        assert_eq!(arrived(), [vec![], vec![1], vec![1]]);
        switch.receive(2, &frame(10, 20, 2), now);
        assert_eq!(arrived(), [vec![2], vec![], vec![]]);
        switch.receive(3, &frame(0xff, 30, 3), now);
        assert_eq!(arrived(), [vec![3], vec![3], vec![]]);
        // Two devices behind one port reach each other without the switch.
        switch.receive(1, &frame(0xff, 11, 4), now);
        arrived();
        switch.receive(1, &frame(11, 10, 5), now);
        assert_eq!(arrived(), [const { Vec::<u8>::new() }; 3]);
        // A device moves.
        switch.receive(3, &frame(0xff, 11, 6), now);
        arrived();
        switch.receive(1, &frame(11, 10, 7), now);
        assert_eq!(arrived(), [vec![], vec![], vec![7]]);
        switch.remove_port(3);
        switch.receive(1, &frame(11, 10, 8), now);
        assert_eq!(arrived(), [vec![], vec![8], vec![]]);
        switch.receive(1, &[0; 13], now);
    }

    #[test]
    fn jitter_keeps_the_order_also_when_it_ends() {
        let ((mut switch, logs), start) = (make(), Instant::now());
        switch.fabric.rules.impair("a", Impairment { delay_ms: 20, jitter_ms: 20, ..Impairment::default() });
        switch.fabric.refresh();
        for content in 0..100 {
            switch.receive(1, &frame(20, 10, content), start);
        }
        switch.fabric.rules.clear("a");
        switch.fabric.refresh();
        // The timer is late: its frames are due but held.
        switch.receive(1, &frame(20, 10, 100), start + Duration::from_millis(40));
        assert!(logs[1].take().is_empty());
        switch.deliver(start + Duration::from_millis(40), 1000);
        assert_eq!(logs[1].take(), (0..=100).collect::<Vec<u8>>());
        // Afterwards nothing waits.
        switch.receive(1, &frame(20, 10, 101), start + Duration::from_millis(41));
        assert_eq!(logs[1].take(), [101]);
    }

    #[test]
    fn corrupted_arp_is_dropped() {
        let ((mut switch, logs), now) = (make(), Instant::now());
        switch.fabric.rules.impair("b", Impairment { corrupt_percent: 100, ..Impairment::default() });
        switch.fabric.refresh();
        let mut arp = frame(20, 10, 1);
        arp[13] = 6;
        switch.receive(1, &arp, now);
        switch.receive(1, &frame(20, 10, 1), now);
        assert_eq!((logs[1].take().len(), logs[2].take().len()), (1, 2));
    }

    #[test]
    fn equal_seeds_lose_equal_frames() {
        let lose = |seed| {
            let log = Arc::new(Log::default());
            let mut switch = Switch::new(seed);
            switch.add_port("a", Arc::new(Log::default()));
            switch.add_port("b", Arc::clone(&log) as _);
            switch.fabric.rules.impair("a", Impairment { loss_percent: 50, ..Impairment::default() });
            switch.fabric.refresh();
            for content in 0..100 {
                switch.receive(1, &frame(20, 10, content), Instant::now());
            }
            log.take()
        };
        assert_eq!(lose(7), lose(7));
        assert_ne!(lose(7), lose(8));
    }
}
