//! Clusters under test.

use ipam_machine::command::Text;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ipam_api::Name;
use ipam_api::limits::LEASE_GRACE_MS_DEFAULT;
use ipam_machine::command::{ChangeMembers, JoinMember};
use ipam_machine::{Action, Answer, Applied, Command, State, fixtures};
use ipam_raft::StoreError;
use ipam_raft::node::{
    InitialMember, Member, Node, NodeConfig, PeerPort, ProposeError, Role, SnapshotPolicy, StartError, Timing,
};
use ipam_raft::socket::PrivateSocket;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpSocket};

use crate::links::{Links, Wire};

/// Longer than anything may take on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(90);

/// Times of a cluster whose leader stays: longer than a busy machine keeps a member from running.
const STEADY: Timing = Timing {
    heartbeat_ms: 100,
    election_min_ms: 800,
    election_max_ms: 1_200,
    lease_grace_ms: LEASE_GRACE_MS_DEFAULT,
};
/// Times of a cluster that loses leaders; elections on a busy machine may be repeated.
const QUICK: Timing = Timing { election_min_ms: 300, election_max_ms: 500, ..STEADY };

/// Times of a cluster that replaces a silent leader long before a read round and the connections to that
/// leader time out, which takes at least a second.
const SWIFT: Timing = Timing { heartbeat_ms: 50, election_min_ms: 150, election_max_ms: 250, ..STEADY };

/// Times of a cluster in which a leader that falls silent is replaced late.
const PATIENT: Timing = Timing { election_min_ms: 500, election_max_ms: LEASE.as_millis() as u64, ..STEADY };
/// The lease of a leader in a patient cluster.
pub(crate) const LEASE: Duration = Duration::from_secs(10);

/// Builds a command that creates a network of this name. Other tests don't depend on its contents.
pub(crate) fn command(name: &str) -> Command {
    let action = Action::PutNetwork(fixtures::put(fixtures::network(name)));
    let mut command = fixtures::command(action);
    command.origin.request_id = Text::given(name);
    command
}

/// True if a state has the network that such a command creates.
pub(crate) fn has(state: &State, name: &str) -> bool {
    state.rows().any(|(_, row)| row.windows(name.len()).any(|window| window == name.as_bytes()))
}

/// A member that may or may not be up.
pub(crate) struct Place {
    pub(crate) name: Name,
    /// Address for peers behind links that can be cut.
    pub(crate) address: SocketAddr,
    /// Address for peers without such links.
    pub(crate) socket: PathBuf,
    pub(crate) dir: TempDir,
    pub(crate) node: Option<Node>,
    /// True if it joined later and isn't among the initial members.
    pub(crate) joins: bool,
}

impl Place {
    fn new(name: Name, address: SocketAddr, sockets: &Path) -> Self {
        let socket = sockets.join("peers").join(name.as_str());
        Self { name, address, socket, dir: TempDir::new().unwrap(), node: None, joins: false }
    }

    /// Address for the other members, without links.
    pub(crate) fn peer_address(&self) -> String {
        format!("unix:{}", self.socket.display())
    }
}

/// Members that are to be one cluster.
pub(crate) struct Cluster {
    pub(crate) places: Vec<Place>,
    pub(crate) snapshots: SnapshotPolicy,
    timing: Timing,
    sockets: TempDir,
    /// Links that can be cut; without them the members connect directly.
    links: Option<Links>,
}

impl Cluster {
    /// Creates a cluster of this many members, none of which runs.
    pub(crate) fn of(count: usize) -> Self {
        // Each cluster has a separate address, so that neither other clusters nor outgoing connections use
        // its ports while a member is down.
        static CLUSTERS: AtomicU8 = AtomicU8::new(0);
        let [low, high, ..] = std::process::id().to_le_bytes();
        let cluster = CLUSTERS.fetch_add(1, Relaxed);
        let sockets = TempDir::new().unwrap();
        let mut places = Vec::new();
        for number in 1..=count {
            let ip = Ipv4Addr::new(127, 1 + low % 250, cluster, number as u8);
            let address = SocketAddr::from((ip, 20_000 + u16::from(high)));
            let name = Name::new(&format!("n{number}")).unwrap();
            places.push(Place::new(name, address, sockets.path()));
        }
        Self { places, snapshots: SnapshotPolicy::default(), timing: STEADY, sockets, links: None }
    }

    /// Creates a cluster that soon replaces a lost leader.
    pub(crate) fn quick(count: usize) -> Self {
        Self { timing: QUICK, ..Self::of(count) }
    }

    /// Creates a cluster that replaces a silent leader before its connections are closed.
    pub(crate) fn swift(count: usize) -> Self {
        Self { timing: SWIFT, ..Self::of(count) }
    }

    /// Creates a cluster that replaces a silent leader late.
    pub(crate) fn patient(count: usize) -> Self {
        Self { timing: PATIENT, ..Self::of(count) }
    }

    /// Makes the members take snapshots often, and keep little of the log after them.
    pub(crate) fn snapshot_every_entries(mut self, every_entries: u64) -> Self {
        self.snapshots = SnapshotPolicy { every_entries, keep_entries: every_entries, ..self.snapshots };
        self
    }

    /// Adds a member, starts it and admits it; returns its place and id.
    pub(crate) async fn join(&mut self, name: &str) -> (usize, u64) {
        let at = self.add(name);
        self.start(at).await;
        (at, self.take_in(at).await)
    }

    /// Adds a place next to the others.
    pub(crate) fn add(&mut self, name: &str) -> usize {
        let mut address = self.places.last().unwrap().address;
        let IpAddr::V4(ip) = address.ip() else { panic!("{address}") };
        address.set_ip(IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() + 1)));
        let place = Place::new(Name::new(name).unwrap(), address, self.sockets.path());
        self.places.push(Place { joins: true, ..place });
        self.places.len() - 1
    }

    /// Admits a member that belongs to no cluster; returns its id.
    pub(crate) async fn take_in(&self, at: usize) -> u64 {
        let Member { name, disk_id, peer_address, client_url } = self.node(at).applicant().unwrap();
        let action = Action::JoinMember(JoinMember {
            name: name.parse().unwrap(),
            disk_id: Text::given(disk_id),
            peer_address: Text::given(peer_address),
            client_url: Text::given(client_url),
            known: self.node(0).known_members(),
        });
        let Answer::Members { ids } = self.decide(0, action).await.answer else { panic!("no member") };
        ids[0]
    }

    /// Proposes an action, which must succeed.
    pub(crate) async fn decide(&self, at: usize, action: Action) -> Applied {
        let command = Command { action, ..command("decide") };
        self.node(at).propose(command, Instant::now() + LONG).await.unwrap().unwrap()
    }

    /// Promotes and removes members, and waits until the member at `at` has the result.
    pub(crate) async fn change(&self, at: usize, promote: &[u64], remove: &[u64]) {
        let seen = self.node(at).members(Instant::now() + LONG).await.unwrap();
        let voters: Vec<u64> = seen.iter().filter(|member| member.votes()).map(|member| member.id).collect();
        let mut wanted: Vec<u64> = voters.iter().chain(promote).copied().collect();
        wanted.retain(|id| !remove.contains(id));
        let (promote, remove) = (promote.to_vec(), remove.to_vec());
        let known = self.node(at).known_members();
        self.decide(at, Action::ChangeMembers(ChangeMembers { promote, remove, voters, known })).await;
        eventually("the voters are those that were decided on", || async {
            let Ok(seen) = self.node(at).members(Instant::now() + LONG).await else { return false };
            wanted.iter().eq(seen.iter().filter(|member| member.votes()).map(|member| &member.id))
        })
        .await;
    }

    /// Starts a cluster of this many members, and waits for a leader.
    pub(crate) async fn up(count: usize) -> Self {
        Self::of(count).started().await
    }

    /// Starts all members of this cluster, and waits for a leader.
    pub(crate) async fn started(mut self) -> Self {
        for at in 0..self.places.len() {
            self.start(at).await;
        }
        self.leader().await;
        self
    }

    /// Connects the members by links that can be cut.
    pub(crate) async fn linked(self) -> Self {
        let addresses: Vec<SocketAddr> = self.places.iter().map(|place| place.address).collect();
        let links = Some(Links::among(&addresses).await);
        Self { links, ..self }
    }

    /// Cuts or mends the wires between two members.
    pub(crate) fn link(&self, one: usize, other: usize, whole: bool) {
        self.wire(one, other, if whole { Wire::Whole } else { Wire::Cut });
    }

    /// Sets the wires between two members.
    pub(crate) fn wire(&self, one: usize, other: usize, wire: Wire) {
        self.links.as_ref().unwrap().set(one, other, wire);
    }

    /// Connections from one member to another that have ended.
    pub(crate) fn ended(&self, from: usize, to: usize) -> usize {
        self.links.as_ref().unwrap().ended(from, to)
    }

    /// Starts a member.
    pub(crate) async fn start(&mut self, at: usize) {
        let begun = Instant::now();
        let node = loop {
            match self.try_start(at, self.places[at].dir.path()).await {
                Ok(node) => break node,
                // After a crash threads of the store may still be ending, which a process would have taken
                // along.
                Err(StartError::Store(error)) if begun.elapsed() < LONG => {
                    let locked = matches!(error, StoreError::Locked { .. });
                    assert!(locked || error.to_string().contains("lock"), "{error}");
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Err(error) => panic!("{error}"),
            }
        };
        self.places[at].node = Some(node);
    }

    /// Starts a member on some directory.
    pub(crate) async fn try_start(&self, at: usize, dir: &Path) -> Result<Node, StartError> {
        let place = &self.places[at];
        let founders = self.places.iter().enumerate().filter(|(_, place)| !place.joins);
        let initial_members = founders.map(|(to, other)| {
            let link = self.links.as_ref().filter(|_| to != at).map(|links| links.address(at, to));
            let peer_address = link.map_or_else(|| other.peer_address(), |link| link.to_string());
            InitialMember { name: other.name.clone(), peer_address }
        });
        // With links between members, a direct call must not bypass a link.
        let peer_address = match self.links {
            Some(_) => "127.0.0.1:1".to_owned(),
            None => place.peer_address(),
        };
        let peer_port = match self.links {
            Some(_) => PeerPort::Open(listen(place.address).await),
            None => PeerPort::Socket(bind(&place.socket).await),
        };
        let config = NodeConfig {
            timing: self.timing,
            snapshots: self.snapshots,
            joins: place.joins,
            ..NodeConfig::new(
                dir.to_owned(),
                place.name.clone(),
                peer_port,
                peer_address,
                format!("http://{}", place.name),
                initial_members.collect(),
            )
        };
        Node::start(config).await
    }

    /// Stops a member as a crash would.
    pub(crate) fn crash(&mut self, at: usize) {
        drop(self.places[at].node.take());
    }

    /// Stops a member gracefully.
    pub(crate) async fn stop(&mut self, at: usize) {
        let node = self.places[at].node.take().unwrap();
        node.shutdown(Instant::now() + LONG).await;
    }

    /// Gives a member, which is down, an empty disk.
    pub(crate) fn wipe(&mut self, at: usize) {
        self.places[at].dir = TempDir::new().unwrap();
    }

    pub(crate) fn node(&self, at: usize) -> &Node {
        self.places[at].node.as_ref().unwrap()
    }

    /// Members that are up, by place.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.places.iter().enumerate().filter_map(|(at, place)| Some((at, place.node.as_ref()?)))
    }

    /// Waits until all running members follow one leader that is ready for work; returns its place.
    pub(crate) async fn leader(&self) -> usize {
        let mut leader = 0;
        eventually("there is a leader", || {
            let leaders: Vec<_> =
                self.nodes().filter(|(_, node)| node.leadership().borrow().is_some()).collect();
            let agreed = match leaders[..] {
                [(at, node)] => {
                    leader = at;
                    let id = node.status().member_id;
                    self.nodes().all(|(_, node)| node.status().leader.map(|leader| leader.id) == id)
                }
                _ => false,
            };
            std::future::ready(agreed)
        })
        .await;
        leader
    }

    /// Returns a running member that doesn't lead.
    pub(crate) async fn follower(&self) -> usize {
        let leader = self.leader().await;
        self.nodes().map(|(at, _)| at).find(|at| *at != leader).unwrap()
    }

    /// Returns another running member.
    pub(crate) fn follower_of(&self, leader: usize) -> usize {
        self.nodes().map(|(at, _)| at).find(|at| *at != leader).unwrap()
    }

    /// Proposes a network at a member, which must succeed.
    pub(crate) async fn propose(&self, at: usize, name: &str) -> Applied {
        propose(self.node(at), name).await.unwrap()
    }

    /// Like `propose`, while leaders are lost. Repeats the call while the outcome is unknown or there is no
    /// leader, as clients do.
    pub(crate) async fn propose_through(&self, at: usize, name: &str) {
        eventually("a proposal comes through", || async {
            match propose(self.node(at), name).await {
                Ok(_) => true,
                Err(ProposeError::Unknown { .. } | ProposeError::NoLeader) => false,
                Err(error) => panic!("{error}"),
            }
        })
        .await;
    }

    /// Waits until all running members have applied the same entry.
    pub(crate) async fn settled(&self) {
        eventually("all have the same state", || {
            let mut states: Vec<_> =
                self.nodes().map(|(_, node)| (node.status().applied, node.stale().0.digest())).collect();
            states.dedup();
            std::future::ready(states.len() == 1)
        })
        .await;
    }
}

/// Proposes a network, and returns the outcome.
pub(crate) async fn propose(node: &Node, name: &str) -> Result<Applied, ProposeError> {
    node.propose(command(name), Instant::now() + LONG).await.map(|outcome| outcome.unwrap())
}

/// True if a member leads.
pub(crate) fn leads(node: &Node) -> bool {
    node.status().role == Role::Leader
}

/// Waits until a condition holds.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < LONG, "it never came about that {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Binds the socket that a member had before, whose tasks may still be ending.
async fn bind(path: &Path) -> PrivateSocket {
    let begun = Instant::now();
    loop {
        match PrivateSocket::bind(path).await {
            Ok(socket) => return socket,
            Err(error) => assert!(begun.elapsed() < LONG, "{}: {error}", path.display()),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Listens where a member listened before.
async fn listen(address: SocketAddr) -> TcpListener {
    let mut listener = None;
    eventually("the port is free", || {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        listener = socket.bind(address).and_then(|()| socket.listen(128)).ok();
        std::future::ready(listener.is_some())
    })
    .await;
    listener.unwrap()
}
