//! At random: the ADDs of one endpoint's interfaces, each with the list of all of them.

use ipam_api::resource::Route;
use ipam_machine::command::{Allocate, Routing};

use crate::support::random::Draw;

impl Draw<'_> {
    /// Mostly nothing.
    pub(crate) fn routing(&mut self) -> Routing {
        let mut routing = Routing::default();
        if self.dice.chance(70) {
            return routing;
        }
        let four = ["0.0.0.0/0", "10.9.0.0/16", "10.8.0.0/16"];
        let six = ["::/0", "2001:db8:9::/48"];
        for _ in 0..self.dice.below(3) {
            let destination = if self.dice.chance(70) { self.dice.pick(&four) } else { self.dice.pick(&six) };
            let gateway = match destination.contains(':') {
                true => self.dice.pick(&["2001:db8::1", "2001:db8::9", "fe80::1"]),
                false => self.dice.pick(&["10.0.0.1", "10.0.0.30", "10.0.0.1", "10.0.1.1", "10.3.0.1"]),
            };
            let route =
                Route { destination: destination.parse().unwrap(), gateway: gateway.parse().unwrap() };
            if routing.routes.iter().all(|other| other.destination != route.destination) {
                routing.routes.push(route);
            }
        }
        if self.dice.chance(30) {
            routing.clean.push("eth0".parse().unwrap());
        }
        if self.dice.chance(20) {
            routing.default_interface = Some(self.dice.pick(&["eth0", "eth1"]).parse().unwrap());
        }
        routing
    }

    /// The ADD of another interface of the same container, mostly one of the list.
    pub(crate) fn next_interface(&mut self, again: &mut Allocate) {
        let Some(mut key) = again.attachment.clone() else { return };
        let names: Vec<String> = again.interfaces.iter().map(|one| one.name.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let Some(next) = self.dice.pick_any(&names) else { return };
        key.interface = next.parse().unwrap();
        again.started = Some(self.started(&key));
        again.attachment = Some(key);
        if self.dice.chance(15) {
            // As one whose configuration knows nothing of the others.
            again.interfaces.retain(|one| one.name.as_str() == next);
        }
    }
}
