//! Member as the front end uses it: the REST API, and notifications about conduits and the leader.

use std::sync::{Arc, OnceLock};

use axum::Router;
use ipam_api::access::Role;
use ipam_api::client::{Answer, Call};
use ipam_api::name::Name;
use ipam_api::{Code, Problem};
use ipam_machine::Grant;
use ipam_meridio::{Caller, Servers};
use ipam_raft::node::Node;
use tokio::sync::watch::Receiver;

use super::conduits::Conduits;
use super::contact::Contact;
use super::identity::PRINCIPAL;
use crate::http::request::LocalServer;

/// Member from before its start to its end. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Member(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// API of the member for clients, once it is loaded.
    clients: OnceLock<LocalServer>,
    conduits: Conduits,
    contact: Contact,
}

impl Member {
    /// Serves requests from now on. Clients have the rights of an operator in one realm.
    pub(super) fn begin(&self, router: Router, realm: Name) {
        let grant = Grant { realms: vec![realm], ..Grant::of(Role::Operator) };
        // Called once. A second call would keep the first server.
        let _first = self.0.clients.set(LocalServer::new(router, PRINCIPAL, grant, None));
    }

    /// Follows the state of the member until the future is dropped.
    pub(super) async fn follow(&self, node: &Node, pools: &[Name]) {
        tokio::join!(self.0.conduits.follow(node, pools), self.0.contact.follow(node));
    }

    /// Member for requests of the front end itself, which also creates missing resources of the trench.
    pub(super) fn of_front_end(&self, router: Router, realm: Name, leadership: Option<u64>) -> Own {
        let grant = Grant { realms: vec![realm], allow_shared: true, ..Grant::of(Role::Operator) };
        Own { member: self.clone(), local: LocalServer::new(router, PRINCIPAL, grant, leadership) }
    }
}

impl Servers for Member {
    async fn send(&self, caller: &Caller, call: Call) -> Result<Answer, Problem> {
        match self.0.clients.get() {
            Some(clients) => clients.with_principal(&caller.0).send(call).await,
            None => Err(Problem::new(Code::NoLeader, "not ready: it is starting")),
        }
    }

    fn conduits(&self) -> Receiver<u64> {
        self.0.conduits.subscribe()
    }

    fn has_leader(&self) -> Receiver<bool> {
        self.0.contact.subscribe()
    }
}

/// Member for requests of the front end itself.
#[derive(Debug, Clone)]
pub(super) struct Own {
    member: Member,
    local: LocalServer,
}

impl Servers for Own {
    async fn send(&self, caller: &Caller, call: Call) -> Result<Answer, Problem> {
        self.local.with_principal(&caller.0).send(call).await
    }

    fn conduits(&self) -> Receiver<u64> {
        self.member.conduits()
    }

    fn has_leader(&self) -> Receiver<bool> {
        self.member.has_leader()
    }
}
