//! Certificates: ECDSA P-256, valid from one hour ago, and restricted to their purpose.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use ipam_api::Problem;
use ipam_api::certificate::Identity;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType, date_time_ymd,
};

/// Backdating of certificates, so that a host whose clock is behind accepts a new one.
const BACKDATED: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// Names under which a member is reached on its own machine.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A certificate and its key, both in PEM.
pub(crate) struct Issued {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// Reason why no certificate was made.
#[derive(Debug)]
pub(crate) struct NotIssued(pub(crate) String);

impl From<rcgen::Error> for NotIssued {
    fn from(error: rcgen::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<Problem> for NotIssued {
    fn from(problem: Problem) -> Self {
        Self(format!("{}. {}", problem.detail, problem.help))
    }
}

/// Creates a CA.
pub(crate) fn authority(name: &str, days: u32) -> Result<Issued, NotIssued> {
    let key = new_key()?;
    let mut params = valid_for(days)?;
    params.distinguished_name = called(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = params.self_signed(&key)?;
    Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Issues a certificate for an identity. A member's certificate is also valid for `addresses`.
pub(crate) fn issue(
    authority: &Issued,
    identity: &Identity,
    addresses: &[String],
    days: u32,
) -> Result<Issued, NotIssued> {
    let issuer = Issuer::from_ca_cert_pem(&authority.certificate, KeyPair::from_pem(&authority.key)?)?;
    let key = new_key()?;
    let mut params = valid_for(days)?;
    params.distinguished_name = called(&identity.to_string());
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    params.subject_alt_names = vec![SanType::DnsName(identity.dns_name()?.try_into()?)];
    if let Identity::Member { .. } = identity {
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        for address in LOCAL.into_iter().chain(addresses.iter().map(String::as_str)) {
            params.subject_alt_names.push(match address.parse::<IpAddr>() {
                Ok(ip) => SanType::IpAddress(ip),
                Err(_) => SanType::DnsName(host(address)?.try_into()?),
            });
        }
    }
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn new_key() -> Result<KeyPair, rcgen::Error> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)
}

fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

fn valid_for(days: u32) -> Result<CertificateParams, NotIssued> {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_err(|error| NotIssued(error.to_string()))?;
    let mut params = CertificateParams::default();
    params.not_before = date_time_ymd(1970, 1, 1) + now.saturating_sub(BACKDATED);
    params.not_after = date_time_ymd(1970, 1, 1) + now + DAY * days;
    Ok(params)
}

/// Checks a host name. An ipamd identity is refused, because the certificate would be valid for it, too.
fn host(name: &str) -> Result<&str, NotIssued> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if name.is_empty() || name.len() > 253 || !name.chars().all(plain) || name.ends_with(".ipamd.internal") {
        return Err(NotIssued(format!(
            "{} is neither a host name nor an IP address",
            ipam_api::name::shown(name)
        )));
    }
    Ok(name)
}
