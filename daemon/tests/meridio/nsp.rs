//! NSP service of a test: it lists conduits, and sends the list again after each change.

use std::net::SocketAddr;
use std::pin::Pin;

use futures::stream::{Stream, unfold};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use ipam_meridio::wire::nsp::v1::configuration_manager_server::{
    ConfigurationManager, ConfigurationManagerServer,
};
use ipam_meridio::wire::nsp::v1::{Conduit, ConduitResponse, Trench};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::support::tls::Ca;

/// Running service. It ends with this value.
pub(crate) struct Nsp {
    pub(crate) address: SocketAddr,
    names: watch::Sender<Vec<String>>,
    server: JoinHandle<()>,
}

struct Service(watch::Receiver<Vec<String>>);

#[tonic::async_trait]
impl ConfigurationManager for Service {
    type WatchConduitStream = Pin<Box<dyn Stream<Item = Result<ConduitResponse, Status>> + Send>>;

    async fn watch_conduit(
        &self,
        request: Request<Conduit>,
    ) -> Result<Response<Self::WatchConduitStream>, Status> {
        let trench = request.into_inner().trench.ok_or_else(|| Status::invalid_argument("no trench"))?.name;
        let mut names = self.0.clone();
        names.mark_changed();
        let lists = unfold((names, trench), async |(mut names, trench)| {
            names.changed().await.ok()?;
            let of =
                |name: &String| Conduit { name: name.clone(), trench: Some(Trench { name: trench.clone() }) };
            let conduits = names.borrow_and_update().iter().map(of).collect();
            Some((Ok(ConduitResponse { conduits }), (names, trench)))
        });
        Ok(Response::new(Box::pin(lists)))
    }
}

impl Nsp {
    pub(crate) async fn start(names: &[&str]) -> Self {
        Self::start_with(names, None).await
    }

    /// Starts it with TLS: its certificate has a SPIFFE id and no host name, and its clients need one.
    pub(crate) async fn secure(names: &[&str], ca: &Ca) -> Self {
        let own = ca.spiffe("nsp", "spiffe://example.org/ns/red/sa/nsp", None);
        Self::start_with(names, Some(TlsAcceptor::from(ca.mutual_server(&own)))).await
    }

    async fn start_with(names: &[&str], tls: Option<TlsAcceptor>) -> Self {
        let (names, changes) = watch::channel(names.iter().map(|name| (*name).to_owned()).collect());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router =
            Routes::new(ConfigurationManagerServer::new(Service(changes))).prepare().into_axum_router();
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = TowerToHyperService::new(router.clone());
                let http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                let tls = tls.clone();
                tokio::spawn(async move {
                    match tls {
                        None => drop(http.serve_connection(TokioIo::new(stream), service).await),
                        Some(tls) => {
                            let Ok(stream) = tls.accept(stream).await else { return };
                            drop(http.serve_connection(TokioIo::new(stream), service).await);
                        }
                    }
                });
            }
        });
        Self { address, names, server }
    }

    /// Replaces the list.
    pub(crate) fn list(&self, names: &[&str]) {
        self.names.send_replace(names.iter().map(|name| (*name).to_owned()).collect());
    }
}

impl Drop for Nsp {
    fn drop(&mut self) {
        self.server.abort();
    }
}
