//! Peer port: its address, and how members authenticate each other.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use ipam_api::brand::PEER_PORT;
use ipam_api::name::{Name, shown};
use ipam_api::place::{PEER_ADDRESS_FORM, PeerAddress};
use ipam_raft::node::InitialMember;

use super::error::{ConfigError, wrong};

/// Advice in errors about members that have to reach each other.
const REMEDY: &str = "On one host, use a unix socket for each member, such as `unix:/var/lib/ipamd/peers/n1.sock`. Across hosts, set certificate, key and CA in [peer_tls] (`ipamctl cluster ca` creates them). A single member needs neither. `insecure = true` permits it on a trusted host and network";

/// Listener of a member for its peers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerListen {
    /// No listener: the member is alone.
    Closed,
    /// TCP port.
    Network(SocketAddr),
    /// A unix socket, for members on the same host and of the same user.
    Socket(PathBuf),
}

impl fmt::Display for PeerListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("-"),
            Self::Network(address) => address.fmt(f),
            Self::Socket(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl PeerListen {
    fn parse(text: &str) -> Result<Self, ConfigError> {
        match PeerAddress::parse(text) {
            Some(PeerAddress::Socket(path)) => return Ok(Self::Socket(path.to_owned())),
            Some(PeerAddress::Network(address)) => {
                if let Ok(address) = address.parse() {
                    return Ok(Self::Network(address));
                }
            }
            None => {}
        }
        let why = format!(
            "{} is not an address with a port, such as 127.0.0.1:{PEER_PORT}, nor a unix socket; {PEER_ADDRESS_FORM}",
            shown(text)
        );
        Err(wrong("peer_listen", &why))
    }
}

/// Settings of the peer port before they are checked against each other.
pub(super) struct PeerSettings<'a> {
    pub(super) name: &'a Name,
    /// `peer_listen`.
    pub(super) listen: Option<String>,
    /// `cluster.peer_address`.
    pub(super) address: Option<String>,
    pub(super) members: Vec<InitialMember>,
    /// True if the member founds a cluster instead of joining one.
    pub(super) founds: bool,
    pub(super) has_tls: bool,
    pub(super) insecure: bool,
}

/// Peer port after all checks.
pub(super) struct Peers {
    pub(super) listen: PeerListen,
    /// Address at which other members reach this one; empty if the port is closed.
    pub(super) address: String,
    pub(super) members: Vec<InitialMember>,
}

impl PeerSettings<'_> {
    pub(super) fn complete(mut self) -> Result<Peers, ConfigError> {
        let mine = self.members.iter().find(|member| member.name == *self.name);
        let mine = mine.map(|member| member.peer_address.clone());
        let address = self.address.take().map(|address| ("cluster.peer_address", address));
        let address = address.or(mine.map(|address| ("initial_members", address)));
        let listen = self.listen(address.as_ref().map(|(_, address)| address.as_str()))?;
        match &listen {
            PeerListen::Closed => {
                if let Some((key, address)) = &address {
                    return Err(wrong(key, &without_proof(address)));
                }
                if !self.is_alone() {
                    let why =
                        format!("other members have to reach this one, and it has no peer port. {REMEDY}");
                    return Err(wrong("peer_listen", &why));
                }
            }
            PeerListen::Network(at) if !self.has_tls && !self.insecure => {
                return Err(wrong("peer_listen", &without_proof(&at.to_string())));
            }
            PeerListen::Socket(_) if self.has_tls => {
                let why = format!(
                    "{listen} is a unix socket, at which [peer_tls] has no use: leave one of them out"
                );
                return Err(wrong("peer_listen", &why));
            }
            PeerListen::Network(_) | PeerListen::Socket(_) => {}
        }
        let mine = address.iter().map(|(key, address)| (*key, address.as_str()));
        let all = self.members.iter().map(|member| ("initial_members", member.peer_address.as_str()));
        for (key, address) in mine.chain(all) {
            one_kind(key, &listen, address)?;
        }
        let address = match (address, &listen) {
            (Some((_, address)), _) => address,
            (None, PeerListen::Closed) => String::new(),
            (None, _) => listen.to_string(),
        };
        if self.members.is_empty() && self.founds {
            self.members.push(InitialMember { name: self.name.clone(), peer_address: address.clone() });
        }
        Ok(Peers { listen, address, members: self.members })
    }

    fn is_alone(&self) -> bool {
        self.founds && self.members.iter().all(|member| member.name == *self.name)
    }

    /// Configured listener, or the default that TLS, the member's address or `insecure` implies.
    fn listen(&self, address: Option<&str>) -> Result<PeerListen, ConfigError> {
        if let Some(listen) = &self.listen {
            return PeerListen::parse(listen);
        }
        let default = PeerListen::Network(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PEER_PORT));
        if self.has_tls {
            return Ok(default);
        }
        match address.and_then(PeerAddress::parse) {
            Some(PeerAddress::Socket(path)) => Ok(PeerListen::Socket(path.to_owned())),
            _ if self.insecure && !self.is_alone() => Ok(default),
            _ => Ok(PeerListen::Closed),
        }
    }
}

/// Refuses a mix of members at unix sockets and members at addresses of the network.
fn one_kind(key: &str, listen: &PeerListen, address: &str) -> Result<(), ConfigError> {
    let sockets = matches!(listen, PeerListen::Socket(_));
    if PeerAddress::parse(address).is_some_and(|address| address.is_socket() == sockets) {
        return Ok(());
    }
    let why = if sockets {
        format!(
            "{address} is a network address, but this member listens on {listen}, which other hosts cannot reach. Use unix sockets for all members of one host, else [peer_tls] and an address host:port for all"
        )
    } else {
        format!(
            "{address} is a unix socket, which other hosts cannot reach, but this member listens on {listen}. Use an address host:port for all members, or remove [peer_tls] and peer_listen if they are on one host"
        )
    };
    Err(wrong(key, &why))
}

fn without_proof(address: &str) -> String {
    format!(
        "{address} is a network address without [peer_tls]: any process that reaches it, even of another user of this host, could impersonate a member and become an administrator. {REMEDY}"
    )
}

/// Warning at every start with `insecure = true`: the open listeners and their reach.
pub(super) fn opened(
    clients: SocketAddr,
    has_client_tls: bool,
    asks_for_tokens: bool,
    peers: &PeerListen,
    has_peer_tls: bool,
    also: Vec<String>,
) -> String {
    let mut open = also;
    let proven = has_client_tls && asks_for_tokens;
    if !proven && !clients.ip().is_loopback() {
        let clear = if has_client_tls { "" } else { ", in the clear" };
        let tokens = if asks_for_tokens { "" } else { ", and takes every request without a token" };
        open.push(format!("client_listen {clients} answers every process that reaches it{clear}{tokens}"));
    }
    if let PeerListen::Network(at) = peers
        && !has_peer_tls
    {
        open.push(format!(
            "peer_listen {at} believes every process that reaches it, which makes it an administrator"
        ));
    }
    match open.is_empty() {
        true => "insecure = true opens nothing here; leave it out".to_owned(),
        false => {
            format!("INSECURE, by `insecure = true`: {}. Use [tls] and [peer_tls] instead", open.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Flags;
    use crate::config::settings::tests::load;

    const TLS: &str = "[peer_tls]\ncertificate = \"c\"\nkey = \"k\"\nca = \"a\"\n";
    const SOCKETS: &str = "[[initial_members]]\nname = \"a\"\npeer = \"unix:/run/p/a\"\n[[initial_members]]\nname = \"b\"\npeer = \"unix:/run/p/b\"\n";
    const PORTS: &str = "[[initial_members]]\nname = \"a\"\npeer = \"127.0.0.1:1\"\n[[initial_members]]\nname = \"b\"\npeer = \"127.0.0.1:2\"\n";

    fn config(text: &str) -> Result<crate::config::Config, String> {
        load(&format!("name = \"a\"\n{text}"), &Flags::default(), &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_single_member_opens_a_peer_port_with_tls_or_a_socket_only() {
        let fresh = config("").unwrap();
        assert_eq!((&fresh.peer_listen, fresh.peer_address.as_str()), (&PeerListen::Closed, ""));
        assert_eq!(fresh.initial_members.len(), 1);
        assert_eq!(config("insecure = true").unwrap().peer_listen, PeerListen::Closed);
        assert_eq!(config(TLS).unwrap().peer_listen.to_string(), "127.0.0.1:7441");
        let socket = config("peer_listen = \"unix:/run/p/a\"").unwrap();
        assert_eq!(socket.peer_listen, PeerListen::Socket("/run/p/a".into()));
        assert_eq!(socket.peer_address, "unix:/run/p/a");
        let socket = config(SOCKETS).unwrap();
        assert_eq!(socket.peer_listen, PeerListen::Socket("/run/p/a".into()));
    }

    #[test]
    fn a_port_of_the_network_without_tls_is_refused_with_the_remedy() {
        let alone = "[[initial_members]]\nname = \"a\"\npeer = \"127.0.0.1:1\"\n";
        let joins = "[cluster]\njoin = [\"http://b:1\"]\n";
        let address = "[cluster]\npeer_address = \"a:1\"\n";
        for text in [
            "peer_listen = \"127.0.0.1:7441\"",
            "peer_listen = \"[::1]:0\"",
            "peer_listen = \"0.0.0.0:1\"",
            alone,
            PORTS,
            joins,
            address,
        ] {
            let error = config(text).map(|config| config.peer_listen).unwrap_err();
            for words in ["unix:/var/", "[peer_tls]", "ipamctl cluster ca", "insecure = true"] {
                assert!(error.contains(words), "{text}: {error}");
            }
            let permitted = config(&format!("insecure = true\n{text}"));
            assert!(permitted.is_ok() || text == alone || text == address, "{text}: {permitted:?}");
        }
        assert!(config(&format!("peer_listen = \"0.0.0.0:1\"\n{PORTS}{TLS}")).is_ok());
    }

    #[test]
    fn sockets_and_ports_are_not_mixed() {
        for (text, words) in [
            (format!("{SOCKETS}{TLS}"), "other hosts cannot reach"),
            (format!("peer_listen = \"unix:/run/p/a\"\n{TLS}"), "leave one of them out"),
            (format!("peer_listen = \"unix:/run/p/a\"\n{PORTS}"), "other hosts cannot reach"),
            (
                format!("{TLS}[cluster]\njoin = [\"http://b:1\"]\npeer_address = \"unix:/run/p/a\""),
                "other hosts cannot reach",
            ),
            (
                "peer_listen = \"unix:/run/p/a\"\n[cluster]\npeer_address = \"a:1\"".to_owned(),
                "else [peer_tls]",
            ),
            (
                format!("insecure = true\npeer_listen = \"127.0.0.1:1\"\n{SOCKETS}"),
                "other hosts cannot reach",
            ),
        ] {
            let error = config(&text).map(|config| config.peer_listen).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn addresses_have_a_form_and_a_bound() {
        let long = format!("unix:/{}", "x".repeat(107));
        for address in ["unix:relative", "unix:/", long.as_str(), "7441", "n\\u202e1:1"] {
            for text in [
                format!("peer_listen = \"{address}\""),
                format!("[cluster]\npeer_address = \"{address}\""),
                format!("[[initial_members]]\nname = \"a\"\npeer = \"{address}\""),
            ] {
                let error = config(&text).map(|config| config.peer_listen).unwrap_err();
                assert!(error.contains("at most 107 bytes"), "{text}: {error}");
            }
        }
        for url in
            ["n1:7440", "http://", "ftp://n1", "http://n1/x", "http://n1\\u001b[2J", "http://n\\u202e1"]
        {
            let error =
                config(&format!("client_url = \"{url}\"")).map(|config| config.client_url).unwrap_err();
            assert!(error.starts_with("client_url: "), "{error}");
        }
    }

    #[test]
    fn the_warning_of_an_insecure_start_names_what_is_open() {
        let warning = |text: &str| config(&format!("insecure = true\n{text}")).unwrap().warnings.join("\n");
        assert!(warning("").contains("opens nothing here"));
        let both =
            warning(&format!("client_listen = \"0.0.0.0:1\"\npeer_listen = \"127.0.0.1:2\"\n{}", PORTS));
        for words in [
            "client_listen 0.0.0.0:1",
            "in the clear",
            "without a token",
            "peer_listen 127.0.0.1:2",
            "an administrator",
        ] {
            assert!(both.contains(words), "{both}");
        }
        let tokens = warning("client_listen = \"0.0.0.0:1\"\n[access]\nrequire_tokens = true");
        assert!(tokens.contains("in the clear") && !tokens.contains("without a token"), "{tokens}");
        assert!(!tokens.contains("peer_listen"), "{tokens}");
        assert!(config("").unwrap().warnings.is_empty());
    }
}
