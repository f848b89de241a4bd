//! Rows of `ipamd check-config` for `[meridio]`.

use ipam_api::address::Family;
use ipam_meridio::FamilySettings;

use super::section::MeridioSettings;

/// Every key of the section with its effective value; `-` for all of them without the front end.
pub(in crate::config) fn rows(settings: Option<&MeridioSettings>) -> Vec<(&'static str, String)> {
    fn dash(value: Option<impl ToString>) -> String {
        value.map_or_else(|| "-".to_owned(), |value| value.to_string())
    }
    let trench = settings.map(|settings| &settings.trench);
    let of = |family| trench.and_then(|trench| trench.family(family));
    let (ipv4, ipv6) = (of(Family::V4), of(Family::V6));
    let family = match (ipv4, ipv6) {
        (Some(_), Some(_)) => Some("dualstack"),
        (Some(_), None) => Some("ipv4"),
        (None, Some(_)) => Some("ipv6"),
        (None, None) => None,
    };
    let prefix = |family: Option<&FamilySettings>| dash(family.map(|family| family.prefix));
    let conduit = |family: Option<&FamilySettings>| dash(family.map(|family| family.conduit_length));
    let node = |family: Option<&FamilySettings>| dash(family.map(|family| family.node_length));
    let nsp = trench.and_then(|trench| trench.nsp.as_ref());
    let tls = settings.and_then(|settings| settings.tls.as_ref());
    let ids: Vec<_> = settings.into_iter().flat_map(|settings| &settings.spiffe_ids).collect();
    let ids: Vec<_> = ids.into_iter().map(ToString::to_string).collect();
    let socket = settings.and_then(|settings| settings.socket.as_ref());
    let client_ca = tls.and_then(|files| files.client_ca.as_ref());
    vec![
        ("meridio.listen", dash(settings.map(|settings| settings.listen))),
        ("meridio.socket", dash(socket.map(|path| path.display()))),
        ("meridio.trench", dash(trench.map(|trench| &trench.trench))),
        ("meridio.realm", dash(trench.map(|trench| &trench.realm))),
        ("meridio.network", dash(trench.map(|trench| &trench.network))),
        ("meridio.prefix_ipv4", prefix(ipv4)),
        ("meridio.conduit_prefix_length_ipv4", conduit(ipv4)),
        ("meridio.node_prefix_length_ipv4", node(ipv4)),
        ("meridio.prefix_ipv6", prefix(ipv6)),
        ("meridio.conduit_prefix_length_ipv6", conduit(ipv6)),
        ("meridio.node_prefix_length_ipv6", node(ipv6)),
        ("meridio.ip_family", dash(family)),
        ("meridio.expiry", dash(trench.map(|trench| trench.ttl_ms.is_some()))),
        ("meridio.ttl_ms", dash(trench.and_then(|trench| trench.ttl_ms))),
        ("meridio.nsp_service", dash(nsp.map(|nsp| &nsp.address))),
        ("meridio.grpc_keepalive_ms", dash(nsp.map(|nsp| nsp.keepalive.as_millis()))),
        ("meridio.grpc_max_backoff_ms", dash(nsp.map(|nsp| nsp.backoff_max.as_millis()))),
        ("meridio.grpc_compat", dash(trench.map(|trench| trench.compat))),
        ("meridio.spiffe_ids", dash((!ids.is_empty()).then(|| ids.join(", ")))),
        ("meridio.tls.certificate", dash(tls.map(|files| files.certificate.display()))),
        ("meridio.tls.key", dash(tls.map(|files| files.key.display()))),
        ("meridio.tls.client_ca", dash(client_ca.map(|path| path.display()))),
    ]
}
