//! The little of ipamd that the plugin sees: two pools, attachments, tombstones.
//!
//! It reads requests strictly, with the daemon's own types, so that a request that the daemon would refuse
//! is refused here.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipam_api::name::Name;
use ipam_api::request::{
    AllocateRequest, Allocated, Attachment, AttachmentKey, ReleaseAttachmentRequest, Released, Started,
};
use ipam_api::resource::{Dns, EndpointKey, GivenAddress, Interface, Route};
use ipam_api::{Code, Problem};

/// Allocations of the test server.
#[derive(Debug, Default)]
pub(crate) struct Model {
    held: BTreeMap<AttachmentKey, (EndpointKey, Interface)>,
    tombstones: BTreeMap<AttachmentKey, Started>,
    revision: u64,
    pub(crate) no_ipv6_left: bool,
}

struct Plan {
    pool: &'static str,
    cidr: &'static str,
    gateway: &'static str,
    first: u128,
    count: u128,
}

const PLANS: [Plan; 2] = [
    Plan { pool: "p4", cidr: "10.1.2.0/29", gateway: "10.1.2.1", first: 0x0a01_0202, count: 5 },
    Plan {
        pool: "p6",
        cidr: "2001:db8:1::/64",
        gateway: "2001:db8:1::1",
        first: 0x2001_0db8_0001_0000_0000_0000_0000_0002,
        count: 1000,
    },
];

impl Model {
    pub(crate) fn allocate(&mut self, request: AllocateRequest) -> Result<Allocated, Problem> {
        let key = request.attachment.clone().unwrap();
        let [wanted] = request.interfaces.as_slice() else { panic!("the plugin asks for one interface") };
        if let Some((endpoint, interface)) = self.held.get(&key) {
            return Ok(Allocated {
                endpoint: endpoint.clone(),
                interfaces: vec![interface.clone()],
                repeated: true,
                waiting: None,
                revision: self.revision,
            });
        }
        let late = self.tombstones.get(&key).zip(request.started.as_ref());
        let began = |started: &Started| (started.start_ticks, started.at_us);
        if late.is_some_and(|(tomb, add)| tomb.boot_id == add.boot_id && began(tomb) > began(add)) {
            return Err(Problem::new(Code::AttachmentReleased, format!("{key} was released")));
        }
        let mut addresses = Vec::new();
        for plan in &PLANS {
            let named =
                if plan.pool == "p4" { &wanted.default_ipv4_pools } else { &wanted.default_ipv6_pools };
            if !named.is_empty() {
                let mut one = self.pick(plan, &wanted.addresses)?;
                let cidr: ipnet::IpNet = plan.cidr.parse().unwrap();
                one.routes
                    .extend(request.routes.iter().filter(|route| cidr.contains(&route.gateway)).cloned());
                one.clean_gateway = wanted.clean_gateway;
                one.mtu = (!request.routes.is_empty()).then_some(9000);
                addresses.push(one);
            }
        }
        let given = |address: &IpAddr| addresses.iter().any(|one| one.address.addr() == *address);
        if let Some(address) = wanted.addresses.iter().find(|address| !given(address)) {
            return Err(Problem::new(Code::AddressOutsidePools, format!("{address} is in no pool")));
        }
        self.revision += 1;
        let interface = Interface {
            name: wanted.name.clone(),
            attachment: Some(key.clone()),
            also_attached: Vec::new(),
            kept: false,
            preallocated: false,
            addresses,
        };
        self.held.insert(key, (request.endpoint.clone(), interface.clone()));
        Ok(Allocated {
            endpoint: request.endpoint,
            interfaces: vec![interface],
            repeated: false,
            waiting: None,
            revision: self.revision,
        })
    }

    fn pick(&self, plan: &Plan, wanted: &[IpAddr]) -> Result<GivenAddress, Problem> {
        let cidr: ipnet::IpNet = plan.cidr.parse().unwrap();
        let gateway: IpAddr = plan.gateway.parse().unwrap();
        let family = ipam_api::Family::of(gateway);
        let address = match wanted.iter().find(|address| cidr.contains(*address)) {
            Some(address) if *address == gateway => {
                return Err(Problem::new(Code::AddressReserved, format!("{address} is subnet's gateway")));
            }
            Some(address) if self.is_held(*address) => {
                let detail = format!("{address} of pool {} is held", plan.pool);
                return Err(Problem::new(Code::AddressTaken, detail));
            }
            Some(address) => *address,
            None => (plan.first..plan.first + plan.count)
                .map(|number| family.address(number))
                .find(|address| !self.is_held(*address) && (!self.no_ipv6_left || address.is_ipv4()))
                .ok_or_else(|| Problem::new(Code::PoolExhausted, format!("pool {} has 0 free", plan.pool)))?,
        };
        let routes = match family {
            ipam_api::Family::V4 => vec![Route { destination: "10.9.0.0/16".parse().unwrap(), gateway }],
            ipam_api::Family::V6 => Vec::new(),
        };
        Ok(GivenAddress {
            address: ipnet::IpNet::new(address, cidr.prefix_len()).unwrap(),
            gateway: Some(gateway),
            clean_gateway: false,
            routes,
            dns: Dns { nameservers: vec![gateway], ..Dns::default() },
            vlan: None,
            mtu: None,
            pool: Name::new(plan.pool).unwrap(),
            allocation: self.revision + 1,
            checked: false,
            probes: ipam_api::probe::NeededProbes::default(),
            lease: None,
            mac: None,
            hostname: None,
            description: String::new(),
        })
    }

    fn is_held(&self, address: IpAddr) -> bool {
        self.addresses().contains(&address)
    }

    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        let interfaces = self.held.values().map(|(_, interface)| interface);
        interfaces.flat_map(|interface| &interface.addresses).map(|one| one.address.addr()).collect()
    }

    pub(crate) fn endpoints(&self) -> Vec<String> {
        self.held.values().map(|(endpoint, _)| endpoint.to_string()).collect()
    }

    pub(crate) fn release(&mut self, request: ReleaseAttachmentRequest) -> Released {
        self.revision += 1;
        let gone = self.held.remove(&request.attachment);
        if let Some(started) = request.started {
            self.tombstones.insert(request.attachment, started);
        }
        let addresses = gone.into_iter().flat_map(|(_, interface)| interface.addresses);
        Released {
            addresses: addresses.map(|one| one.address.addr()).collect(),
            more: 0,
            late: false,
            revision: self.revision,
        }
    }

    pub(crate) fn attachment(&self, path: &str) -> Result<Attachment, Problem> {
        let found = self.held.iter().find(|(key, _)| key.to_string() == path);
        let (key, (endpoint, interface)) =
            found.ok_or_else(|| Problem::new(Code::NotFound, format!("no attachment {path}")))?;
        Ok(Attachment {
            attachment: key.clone(),
            endpoint: endpoint.clone(),
            interface: interface.clone(),
            revision: self.revision,
        })
    }
}
