//! Random lifecycles, waiting requests and adoptions.

use ipam_machine::command::{Allocate, Leases, Renew};

use super::Draw;

impl Draw<'_> {
    pub(super) fn renew(&mut self) -> Renew {
        let which = match self.issued.last_chunk::<6>() {
            Some(recent) if self.dice.chance(40) => {
                Leases::Allocation(recent[usize::try_from(self.dice.below(6)).unwrap()].into())
            }
            _ => Leases::Endpoint(self.endpoint()),
        };
        Renew { which, ttl_ms: self.dice.chance(30).then(|| self.ttl_ms()) }
    }

    pub(super) fn ttl_ms(&mut self) -> u64 {
        [1000, 1000, 1200, 2000][usize::try_from(self.dice.below(4)).unwrap()]
    }

    /// Adds `wait` to a request.
    pub(super) fn wait(&mut self, mut request: Allocate) -> Allocate {
        request.options.wait = request.attachment.is_none() && self.dice.chance(60);
        for interface in request.interfaces.iter_mut().filter(|_| request.options.wait) {
            interface.addresses.clear();
        }
        request
    }

    /// The same as something that exists already.
    pub(super) fn adopt(&mut self, mut request: Allocate) -> Allocate {
        request.options.adopt = true;
        for interface in &mut request.interfaces {
            interface.families.clear();
            interface.addresses.clear();
            interface.subnets.clear();
            let (four, six) = (interface.pools.ipv4.is_empty(), interface.pools.ipv6.is_empty());
            if !four || six {
                let subnet = self.dice.pick(&["lan", "lan", "lan", "link", "azure"]);
                interface.addresses.push(self.range(subnet, 1).first_address());
            }
            if !six {
                interface.addresses.insert(0, self.range("six", 1).first_address());
            }
        }
        request
    }
}
