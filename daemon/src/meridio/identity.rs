//! Identities of clients: SPIFFE ids of certificates, users of the unix socket, and the anonymous.

use std::sync::{Arc, PoisonError, RwLock};

use ipam_api::limits::OBJECT_NAME_CHARS_MAX;
use ipam_api::name::SpiffePattern;
use ipam_meridio::Caller;

use super::grpc::{Code, Refused};
use crate::access::Access;
use crate::http::request::{ClientName, Peer};

/// Principal of the front end's own requests. Principals of clients begin with it and a slash.
pub(super) const PRINCIPAL: &str = "meridio";

/// Calls that a client may make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Permitted {
    All(Caller),
    /// Health checks only.
    Health,
}

/// Rules that identify clients. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Identities {
    access: Access,
    has_tls: bool,
    permitted: Arc<RwLock<Arc<[SpiffePattern]>>>,
}

impl Identities {
    /// Rules of a member. With TLS, clients need a SPIFFE id that one of the patterns fits, if there are any.
    pub(super) fn new(access: Access, has_tls: bool, permitted: &[SpiffePattern]) -> Self {
        Self { access, has_tls, permitted: Arc::new(RwLock::new(Arc::from(permitted))) }
    }

    /// Replaces the patterns, also for open connections.
    pub(super) fn replace(&self, permitted: &[SpiffePattern]) {
        *self.permitted.write().unwrap_or_else(PoisonError::into_inner) = Arc::from(permitted);
    }

    fn permits(&self, id: &str) -> bool {
        let permitted = Arc::clone(&self.permitted.read().unwrap_or_else(PoisonError::into_inner));
        permitted.is_empty() || permitted.iter().any(|pattern| pattern.fits(id))
    }

    /// Identifies the client of a connection.
    ///
    /// # Errors
    /// If the client has no identity, or no permission for any call.
    pub(super) fn identify(&self, peer: &Peer) -> Result<Permitted, Refused> {
        let caller = |name: String| Permitted::All(Caller(Arc::from(format!("{PRINCIPAL}/{name}"))));
        match peer {
            Peer::Socket { uid } if self.access.is_trusted(*uid) || self.access.is_open() => {
                Ok(caller(format!("uid/{uid}")))
            }
            // Probes run as any user.
            Peer::Socket { .. } => Ok(Permitted::Health),
            Peer::Tcp { .. } if !self.has_tls => Ok(caller("anonymous".to_owned())),
            Peer::Tcp { certificate, .. } => {
                let id = certificate.as_ref().and_then(spiffe_id);
                let id = id.ok_or(Refused(Code::Unauthenticated, "the client has no SPIFFE id"))?;
                if PRINCIPAL.len() + 1 + id.len() > OBJECT_NAME_CHARS_MAX {
                    return Err(Refused(Code::PermissionDenied, "the SPIFFE id is too long for a principal"));
                }
                if !self.permits(id) {
                    let why = "the SPIFFE id is not permitted (meridio.spiffe_ids)";
                    return Err(Refused(Code::PermissionDenied, why));
                }
                Ok(caller(id.to_owned()))
            }
        }
    }
}

/// SPIFFE id of a certificate.
fn spiffe_id(name: &ClientName) -> Option<&str> {
    match name {
        ClientName::Spiffe { id } => Some(id.as_str()),
        ClientName::Client { .. } | ClientName::Node { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use ipam_api::spiffe::SpiffeId;

    use super::*;
    use crate::access::AccessConfig;

    fn identities(open: bool, has_tls: bool, permitted: &[&str]) -> Identities {
        let access = AccessConfig { open, trusted_uids: vec![1001], ..AccessConfig::default() };
        let permitted: Vec<_> = permitted.iter().map(|text| SpiffePattern::new(text).unwrap()).collect();
        Identities::new(Access::new(access).unwrap(), has_tls, &permitted)
    }

    fn tcp(certificate: Option<ClientName>) -> Peer {
        Peer::Tcp { address: SocketAddr::from(([192, 0, 2, 1], 1)), certificate }
    }

    fn all(principal: &str) -> Result<Permitted, Refused> {
        Ok(Permitted::All(Caller(principal.into())))
    }

    #[test]
    fn users_of_the_socket_are_known_by_their_number() {
        let closed = identities(false, true, &[]);
        for (uid, expected) in [(1001, all("meridio/uid/1001")), (1002, Ok(Permitted::Health))] {
            assert_eq!(closed.identify(&Peer::Socket { uid }), expected);
        }
        assert_eq!(closed.identify(&Peer::Socket { uid: 0 }), all("meridio/uid/0"));
        let open = identities(true, true, &[]);
        assert_eq!(open.identify(&Peer::Socket { uid: 1002 }), all("meridio/uid/1002"));
    }

    #[test]
    fn clients_without_tls_are_anonymous() {
        assert_eq!(identities(false, false, &[]).identify(&tcp(None)), all("meridio/anonymous"));
    }

    #[test]
    fn workloads_are_known_by_permitted_spiffe_ids() {
        let of = |id: &str| tcp(Some(ClientName::Spiffe { id: SpiffeId::parse(id).unwrap() }));
        let proxy = "spiffe://example.org/ns/red/sa/proxy";
        let expected = all("meridio/spiffe://example.org/ns/red/sa/proxy");
        let any = identities(false, true, &[]);
        assert_eq!(any.identify(&of(proxy)), expected);
        let long = format!("spiffe://example.org/{}", "x".repeat(OBJECT_NAME_CHARS_MAX - 29));
        assert_eq!(any.identify(&of(&long)), all(&format!("meridio/{long}")));
        assert_eq!(any.identify(&of(&format!("{long}x"))).unwrap_err().0, Code::PermissionDenied);
        let red = identities(true, true, &["spiffe://example.com/*", "spiffe://example.org/ns/red/*"]);
        assert_eq!(red.identify(&of(proxy)), expected);
        for other in ["spiffe://example.org/ns/blue/sa/proxy", "spiffe://example.org/ns/red"] {
            assert_eq!(red.identify(&of(other)).unwrap_err().0, Code::PermissionDenied, "{other}");
        }
        red.clone().replace(&[SpiffePattern::new("spiffe://example.org/ns/blue/*").unwrap()]);
        assert_eq!(red.identify(&of(proxy)).unwrap_err().0, Code::PermissionDenied, "it is reloaded");
    }

    #[test]
    fn certificates_without_a_spiffe_id_are_no_identity() {
        let of_rest = ClientName::Client { name: "admin".parse().unwrap() };
        for certificate in [None, Some(of_rest)] {
            let refused = identities(true, true, &[]).identify(&tcp(certificate)).unwrap_err();
            assert_eq!(refused.0, Code::Unauthenticated);
        }
    }
}
