//! Certificates with SPIFFE ids (X.509-SVID), and TLS with servers that have one.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};
use webpki::EndEntityCert;

use super::{Credentials, TlsError, VERSIONS, provider, reason};
use crate::name::shown;
use crate::spiffe::{SpiffeId, is_spiffe};

/// SPIFFE id of a certificate; none without one. The caller must have verified the certificate.
///
/// # Errors
/// For a certificate that can't be read, whose id is invalid, or that has another URI beside the id.
pub fn spiffe_id_of(certificate: &CertificateDer<'_>) -> Result<Option<SpiffeId>, TlsError> {
    let certificate = EndEntityCert::try_from(certificate)
        .map_err(|error| TlsError(format!("the certificate can't be read: {error}")))?;
    let uris: Vec<&str> = certificate.valid_uri_names().collect();
    match uris.as_slice() {
        uris if !uris.iter().any(|uri| is_spiffe(uri)) => Ok(None),
        [uri] => match SpiffeId::parse(uri) {
            Some(id) => Ok(Some(id)),
            None => Err(TlsError(format!("the certificate has no valid SPIFFE id: {}", shown(uri)))),
        },
        uris => Err(TlsError(format!(
            "the certificate has {} URIs; one with a SPIFFE id has no other",
            uris.len()
        ))),
    }
}

/// Configuration of a client of gRPC whose server has a SPIFFE id instead of a host name.
///
/// The server's certificate must be issued by one of `roots` and have one of the `accepted` ids; if that list
/// is empty, any id is accepted. A CA with constraints on URIs is refused, since these constraints can't be
/// checked.
///
/// # Errors
/// If the own certificate can't be used.
pub fn spiffe_client_config(
    own: Credentials,
    roots: RootCertStore,
    accepted: BTreeSet<SpiffeId>,
) -> Result<ClientConfig, TlsError> {
    let unusable = |error: Error| TlsError(format!("the certificate can't be used: {}", reason(&error)));
    let provider = provider();
    let algorithms = provider.signature_verification_algorithms;
    let verifier = Arc::new(Verifier { roots, accepted, algorithms });
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(VERSIONS);
    let builder = builder.map_err(unusable)?.dangerous().with_custom_certificate_verifier(verifier);
    let mut config = builder.with_client_auth_cert(own.chain, own.key).map_err(unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    // A resumed session carries no certificate to verify.
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// Verifier of servers by their SPIFFE ids.
#[derive(Debug)]
struct Verifier {
    roots: RootCertStore,
    accepted: BTreeSet<SpiffeId>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let (roots, algorithms) = (&self.roots, self.algorithms.all);
        verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, algorithms)?;
        let refused = |why: TlsError| Error::from(CertificateError::Other(OtherError(Arc::new(why))));
        let id = spiffe_id_of(end_entity).map_err(refused)?;
        let id = id.ok_or_else(|| refused(TlsError::new("it has no SPIFFE id")))?;
        if !self.accepted.is_empty() && !self.accepted.contains(&id) {
            return Err(refused(TlsError(format!("it is of {id}, which is not accepted"))));
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{
        BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
        SanType, date_time_ymd,
    };
    use rustls::server::WebPkiClientVerifier;
    use rustls::{ClientConnection, ServerConfig, ServerConnection};

    use super::*;

    type Ca = CertifiedIssuer<'static, KeyPair>;

    const NSP: &str = "spiffe://example.org/nsp";
    const IPAM: &str = "spiffe://example.org/ipam";

    fn ca() -> Ca {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "trust domain");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    }

    fn roots(ca: &Ca) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(ca.der().clone()).unwrap();
        roots
    }

    fn uris(uris: &[&str]) -> CertificateParams {
        let mut params = CertificateParams::default();
        let uri = |uri: &&str| SanType::URI((*uri).try_into().unwrap());
        params.subject_alt_names = uris.iter().map(uri).collect();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params
    }

    fn issued(ca: &Ca, params: &CertificateParams) -> Credentials {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, ca).unwrap();
        Credentials { chain: vec![certificate.der().clone()], key: key.into() }
    }

    fn id_in(params: &CertificateParams) -> Result<Option<String>, String> {
        let id = spiffe_id_of(&issued(&ca(), params).chain[0]);
        id.map(|id| id.map(|id| id.to_string())).map_err(|error| error.to_string())
    }

    #[test]
    fn a_certificate_has_one_id_or_none() {
        assert_eq!(id_in(&uris(&[NSP])), Ok(Some(NSP.to_owned())));
        let mut named = uris(&[NSP]);
        named.subject_alt_names.push(SanType::DnsName("nsp-service".try_into().unwrap()));
        assert_eq!(id_in(&named), Ok(Some(NSP.to_owned())));
        assert_eq!(id_in(&uris(&[])), Ok(None));
        assert_eq!(id_in(&uris(&["https://example.org/nsp"])), Ok(None));
        for two in [[NSP, IPAM], [NSP, NSP], [NSP, "https://example.org"]] {
            assert!(id_in(&uris(&two)).unwrap_err().contains("2 URIs"), "{two:?}");
        }
        for wrong in ["spiffe://example.org", "SPIFFE://example.org/nsp", "spiffe://example.org/a\u{1}b"] {
            assert!(id_in(&uris(&[wrong])).unwrap_err().contains("no valid SPIFFE id"), "{wrong}");
        }
    }

    /// Result of a handshake with a server, as its client has it. The server demands a certificate.
    fn shake(client: ClientConfig, ca: &Ca, server: Credentials) -> Result<ServerConnection, String> {
        let roots = Arc::new(roots(ca));
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build().unwrap();
        let builder =
            ServerConfig::builder_with_provider(provider()).with_protocol_versions(VERSIONS).unwrap();
        let mut config =
            builder.with_client_cert_verifier(verifier).with_single_cert(server.chain, server.key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let mut server = ServerConnection::new(Arc::new(config)).unwrap();
        let name = ServerName::try_from("nsp-service").unwrap();
        let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
        while client.is_handshaking() || server.is_handshaking() {
            let mut bytes = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut bytes).unwrap();
            }
            server.read_tls(&mut &*bytes).unwrap();
            server.process_new_packets().map_err(|error| format!("server: {}", reason(&error)))?;
            bytes.clear();
            while server.wants_write() {
                server.write_tls(&mut bytes).unwrap();
            }
            client.read_tls(&mut &*bytes).unwrap();
            client.process_new_packets().map_err(|error| reason(&error))?;
        }
        Ok(server)
    }

    #[test]
    fn a_server_is_known_by_its_id_and_not_by_its_host() {
        let ca = ca();
        let client = |accepted: &[&str]| {
            let accepted = accepted.iter().map(|id| SpiffeId::parse(id).unwrap()).collect();
            spiffe_client_config(issued(&ca, &uris(&[IPAM])), roots(&ca), accepted).unwrap()
        };
        let nsp = || issued(&ca, &uris(&[NSP]));
        for accepted in [&[][..], &[NSP], &[IPAM, NSP]] {
            let server = shake(client(accepted), &ca, nsp()).unwrap();
            let own = server.peer_certificates().unwrap().first().unwrap();
            assert_eq!(spiffe_id_of(own).unwrap().unwrap().as_str(), IPAM);
            assert_eq!(server.alpn_protocol(), Some(&b"h2"[..]));
        }
        let error = shake(client(&[IPAM]), &ca, nsp()).map(drop).unwrap_err();
        assert!(error.contains("it is of spiffe://example.org/nsp, which is not accepted"), "{error}");
    }

    #[test]
    fn red_team_a_server_without_a_good_certificate_is_refused() {
        let (own, other) = (ca(), ca());
        let mut expired = uris(&[NSP]);
        expired.not_before = date_time_ymd(2001, 1, 1);
        expired.not_after = date_time_ymd(2002, 1, 1);
        let mut host_name = uris(&[]);
        host_name.subject_alt_names = vec![SanType::DnsName("nsp-service".try_into().unwrap())];
        let mut client_only = uris(&[NSP]);
        client_only.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let mut authority = uris(&[NSP]);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        for (server, why) in [
            (issued(&own, &expired), "has expired"),
            (issued(&other, &uris(&[NSP])), "of another CA"),
            (issued(&own, &host_name), "it has no SPIFFE id"),
            (issued(&own, &uris(&[NSP, IPAM])), "2 URIs"),
            (issued(&own, &client_only), "can't be accepted"),
            (issued(&own, &authority), "can't be accepted"),
        ] {
            let client = spiffe_client_config(issued(&own, &uris(&[IPAM])), roots(&own), BTreeSet::new());
            let error = shake(client.unwrap(), &own, server).map(drop).unwrap_err();
            assert!(error.contains(why), "{why}: {error}");
        }
    }
}
