//! Front end of one member, from its listeners to its last call.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use ipam_api::limits::SOCKET_CONNECTIONS_MAX;
use ipam_api::name::Name;
use ipam_api::tls::TlsError;
use ipam_meridio::{Caller, Routers, Settings, Unprepared, prepare};
use ipam_raft::node::Node;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::admission::Admission;
use super::certificates::Certificates;
use super::identity::{Identities, PRINCIPAL};
use super::member::Member;
use super::nsp;
use crate::access::Access;
use crate::config::{Config, MeridioSettings};
use crate::http::connection::server::{self, Listener};
use crate::http::connection::tls::ClientTls;
use crate::http::connection::{Protocols, bind_port, bind_socket};
use crate::tasks::Statuses;

/// Divisor of the member's network connections: the front end takes at most one fourth of them.
const CONNECTIONS_SHARE: usize = 4;

/// Reason for which the front end can't begin.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("meridio.listen {address} can't be bound: {error}; is another program on that port?")]
    Bind { address: SocketAddr, error: io::Error },
    #[error("meridio.socket {} can't be bound: {error}", path.display())]
    BindSocket { path: PathBuf, error: io::Error },
    #[error("meridio.tls: {0}")]
    Tls(#[from] TlsError),
}

/// Front end of one member.
#[derive(Debug)]
pub struct FrontEnd {
    settings: Arc<Settings>,
    listener: Option<TcpListener>,
    socket: Option<UnixListener>,
    certificates: Option<Certificates>,
    identities: Identities,
    admission: Admission,
    member: Member,
}

impl FrontEnd {
    /// Binds the listeners and reads the certificates.
    ///
    /// # Errors
    /// If something can't be bound or read.
    pub async fn open(settings: MeridioSettings, access: Access) -> Result<Self, OpenError> {
        let MeridioSettings { listen, socket, tls, spiffe_ids, trench } = settings;
        let certificates = tls.as_ref().map(Certificates::load).transpose()?;
        let listener = bind(listen).map_err(|error| OpenError::Bind { address: listen, error })?;
        let socket = match socket {
            Some(path) => match bind_socket(&path).await {
                Ok(socket) => Some(socket),
                Err(error) => return Err(OpenError::BindSocket { path, error }),
            },
            None => None,
        };
        let identities = Identities::new(access, certificates.is_some(), &spiffe_ids);
        Ok(Self {
            settings: Arc::new(trench),
            listener: Some(listener),
            socket,
            certificates,
            admission: Admission::new(identities.clone()),
            identities,
            member: Member::default(),
        })
    }

    /// TLS with clients.
    #[must_use]
    pub fn tls(&self) -> Option<ClientTls> {
        self.certificates.as_ref().map(Certificates::clients)
    }

    /// Returns how many of `connections_max` network connections are left for other clients.
    #[must_use]
    pub fn connections_left(&self, connections_max: usize) -> usize {
        let of_socket = if self.socket.is_some() { SOCKET_CONNECTIONS_MAX } else { 0 };
        let left = connections_max - connections_max / CONNECTIONS_SHARE;
        left.saturating_sub(of_socket).max(left / 2)
    }

    /// Begins to accept connections. Until [`Self::run`], only health checks are answered.
    pub async fn serve(
        &mut self,
        connections_max: usize,
        stop: &watch::Receiver<bool>,
    ) -> Vec<JoinHandle<()>> {
        let routers = Routers::new(Arc::clone(&self.settings), self.member.clone()).await;
        let network = self.listener.take().map(|listener| {
            let listener = Listener::Network { listener, tls: self.tls() };
            (listener, self.admission.around(routers.port))
        });
        let socket = self
            .socket
            .take()
            .map(|socket| (Listener::Socket(socket), self.admission.around(routers.socket)));
        let serve = |(listener, router)| {
            let share = connections_max / CONNECTIONS_SHARE;
            tokio::spawn(server::serve_with(Protocols::grpc(), listener, share.max(1), router, stop.clone()))
        };
        network.into_iter().chain(socket).map(serve).collect()
    }

    /// Puts another configuration in force, as far as that needs no restart.
    pub fn reload(&self) -> impl Fn(&Config) -> Result<(), String> + Send + Sync + 'static {
        let (certificates, identities) = (self.certificates.clone(), self.identities.clone());
        move |config| {
            let begins = || "[meridio] and [meridio.tls] begin and end with a restart only".to_owned();
            let settings = config.meridio.as_ref().ok_or_else(begins)?;
            match (&certificates, &settings.tls) {
                (None, None) => {}
                (Some(certificates), Some(files)) => certificates.replace(files)?,
                _ => return Err(begins()),
            }
            identities.replace(&settings.spiffe_ids);
            Ok(())
        }
    }

    /// Answers calls with a member that has loaded its state. Ends only if the trench can't be served.
    pub async fn run(self, node: &Node, router: Router, statuses: Arc<Statuses>) -> Unprepared {
        let Self { settings, certificates, admission, member, .. } = self;
        let realm = &settings.realm;
        member.begin(router.clone(), realm.clone());
        let pools: Vec<Name> = settings.families.iter().map(|family| family.pool.clone()).collect();
        let followed = async {
            let files = async {
                if let Some(certificates) = certificates.clone() {
                    certificates.follow().await;
                }
            };
            tokio::join!(member.follow(node, &pools), files);
            // Never reached: the followers run until they are dropped.
            pending::<Infallible>().await
        };
        let served = async {
            let own = member.of_front_end(router.clone(), realm.clone(), None);
            if let Err(why) = prepare(&settings, &own, &Caller(PRINCIPAL.into())).await {
                return why;
            }
            admission.open();
            tracing::info!(trench = settings.trench, "answering clients of Meridio");
            match nsp::run(node, &router, &settings, &member, certificates.as_ref(), &statuses).await {}
        };
        tokio::select! {
            never = followed => match never {},
            why = served => why,
        }
    }
}

/// Binds the port. A host without IPv6 has no `[::]`, and all of its addresses are IPv4.
fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    match bind_port(address) {
        Err(error) if address.ip().is_unspecified() && address.is_ipv6() && has_no_family(&error) => {
            bind_port((Ipv4Addr::UNSPECIFIED, address.port()).into())
        }
        bound => bound,
    }
}

/// True for the errors of a host without IPv6.
fn has_no_family(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let codes = [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL].map(|errno| Some(errno.raw_os_error()));
    codes.contains(&error.raw_os_error())
}
