//! A cluster that serves a trench to clients of Meridio.

use std::net::SocketAddr;

use ipam_api::client::Call;
use serde_json::json;

use super::clients::Server;
use crate::support::tls::{Ca, Holder};
use crate::support::{Cluster, LONG, until};

/// SPIFFE ids of the members and of a proxy.
pub(crate) const SERVER_ID: &str = "spiffe://example.org/ns/red/sa/ipam";
pub(crate) const PROXY_ID: &str = "spiffe://example.org/ns/red/sa/proxy";

/// Members with the front end for the trench `default`, with its default prefixes.
pub(crate) struct Trench {
    pub(crate) cluster: Cluster,
    /// Addresses of the front end, one for each member.
    fronts: Vec<SocketAddr>,
    /// Certificate of a proxy, if the front end uses TLS.
    proxy: Option<Holder>,
}

impl Trench {
    /// Stopped members that answer without TLS.
    pub(crate) fn plain(count: usize) -> Self {
        Self::with(Cluster::of(count), None, "")
    }

    /// Stopped members with TLS on all ports. The front end requires a SPIFFE id.
    pub(crate) fn secure(count: usize) -> (Self, Ca) {
        let (cluster, ca) = Cluster::secure(count);
        (Self::with(cluster, Some(&ca), ""), ca)
    }

    /// Stopped members with more settings of `[meridio]`.
    pub(crate) fn with(mut cluster: Cluster, ca: Option<&Ca>, settings: &str) -> Self {
        let fronts = cluster.free_ports(cluster.members.len());
        for (member, front) in cluster.members.iter_mut().zip(&fronts) {
            let ip = front.ip().to_string();
            member.config = format!("[meridio]\nlisten = \"{front}\"\n{settings}\n");
            if let Some(ca) = ca {
                let Holder { ca, certificate, key } = ca.spiffe(&member.name, SERVER_ID, Some(&ip));
                member.config += &format!(
                    "[meridio.tls]\ncertificate = {certificate:?}\nkey = {key:?}\nclient_ca = {ca:?}\n"
                );
            }
        }
        let proxy = ca.map(|ca| ca.spiffe("proxy", PROXY_ID, None));
        Self { cluster, fronts, proxy }
    }

    /// Starts all members and waits until each answers clients of Meridio.
    pub(crate) async fn up(mut self) -> Self {
        self.cluster = self.cluster.all_up().await;
        for member in &self.cluster.members {
            until(&format!("{} answers clients of Meridio", member.name), async || {
                let logged = member.logged();
                logged.contains("answering clients of Meridio").then_some(()).ok_or_else(|| member.tail())
            })
            .await;
        }
        self
    }

    /// The front end of a member.
    pub(crate) fn server(&self, at: usize) -> Server {
        Server { target: self.fronts[at].to_string(), tls: self.proxy.clone(), spiffe: None }
    }

    /// Cuts a conduit in both families.
    pub(crate) async fn conduit(&self, name: &str) {
        self.delegate(name, false).await;
    }

    /// Cuts a conduit in both families, or lets it wait for a free block.
    pub(crate) async fn conduit_or_wait(&self, name: &str) {
        self.delegate(name, true).await;
    }

    async fn delegate(&self, name: &str, wait: bool) {
        for (pool, length) in [("default-ipv4", 20), ("default-ipv6", 56)] {
            let body = json!({"pool": pool, "owner": name, "length": length, "wait": wait});
            let call = Call::post("/v1/prefixes").json(&body).unwrap().repeatable().within(LONG);
            self.cluster.ask().send(call).await.unwrap();
        }
    }
}
