//! Random lifecycles, waiting requests and adoptions.

use ipam_machine::Action;
use ipam_machine::command::{Allocate, Leases, ReleaseAttachment, ReleaseAttachmentOf, Renew, Text};
use ipam_machine::model::{Allocation, Source};

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
            interface.link_addresses.clear();
        }
        request
    }

    /// A DEL that names its endpoint, mostly one that has adopted an address on that node.
    pub(super) fn release_of(&mut self, mut release: ReleaseAttachment) -> Action {
        let adopted = |row: &&Allocation| row.source == Source::Adopted && row.attachment.is_none();
        let rows: Vec<&Allocation> =
            self.state.allocations.iter().map(|(_, row)| row).filter(adopted).collect();
        let place = usize::try_from(self.dice.below(rows.len().max(1) as u64)).unwrap();
        let (mut endpoint, mut uid) = (self.endpoint(), None);
        if let (Some(row), true) = (rows.get(place), self.dice.chance(70)) {
            let holder = self.state.endpoints.get(row.endpoint).unwrap();
            (endpoint, uid) = (holder.key.clone(), holder.uid.clone());
            if let (Some(node), true) = (&row.node, self.dice.chance(70)) {
                release.key.node = node.clone();
                release.started = self.started(&release.key);
            }
        }
        let uid = uid.filter(|_| self.dice.chance(80));
        let uid = uid.unwrap_or_else(|| Text::given(self.dice.pick(&["x", "y"])));
        Action::ReleaseAttachmentOf(ReleaseAttachmentOf { release, endpoint, uid })
    }

    /// The same as something that exists already.
    pub(super) fn adopt(&mut self, mut request: Allocate) -> Allocate {
        request.options.adopt = true;
        if request.attachment.is_none() && self.dice.chance(70) {
            // As an import does for a pod.
            request.node = Some(self.dice.pick(&["n1", "n2"]).parse().unwrap());
            request.uid = request.uid.or(Some(Text::given("x")));
        }
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
