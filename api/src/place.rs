//! Addresses of a member: its peer address and its client URL.
//!
//! **Invariant:** every address that is accepted here is printable ASCII of a bounded length, so it is safe
//! in a log and on a terminal.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::Path;

use crate::limits::{CLIENT_URL_CHARS_MAX, DNS_DOMAIN_CHARS_MAX, SOCKET_PATH_BYTES_MAX};

/// The prefix of a peer address that is a unix socket.
const SOCKET: &str = "unix:";

const _: () = assert!(SOCKET_PATH_BYTES_MAX == 107 && CLIENT_URL_CHARS_MAX == 300, "the forms name them");

/// The form that a peer address must have.
pub const PEER_ADDRESS_FORM: &str =
    "write it as host:port, or as unix:/absolute/path of at most 107 bytes, in printable ASCII";
/// The form that a client URL must have.
pub const CLIENT_URL_FORM: &str =
    "write it as http://host:port or https://host:port, with at most 300 characters of printable ASCII";

/// An address at which a member answers its peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerAddress<'a> {
    /// `host:port`.
    Network(&'a str),
    /// `unix:/path`: a socket of this host.
    Socket(&'a Path),
}

impl<'a> PeerAddress<'a> {
    /// Parses an address; `None` unless it has the [form](PEER_ADDRESS_FORM).
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        match text.strip_prefix(SOCKET) {
            Some(path) => {
                let plain = path.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
                let fits =
                    path.starts_with('/') && !path.ends_with('/') && path.len() <= SOCKET_PATH_BYTES_MAX;
                (plain && fits).then(|| Self::Socket(Path::new(path)))
            }
            None => is_host_and_port(text, true).then_some(Self::Network(text)),
        }
    }

    /// Returns true for a unix socket, which no other host reaches.
    #[must_use]
    pub fn is_socket(&self) -> bool {
        matches!(self, Self::Socket(_))
    }
}

/// Returns true for a URL at which a member serves clients.
#[must_use]
pub fn is_client_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let rest = rest.map(|rest| rest.strip_suffix('/').unwrap_or(rest));
    text.len() <= CLIENT_URL_CHARS_MAX && rest.is_some_and(|rest| is_host_and_port(rest, false))
}

/// Returns true for a host with a port, which is optional unless `needed`.
fn is_host_and_port(text: &str, needed: bool) -> bool {
    if text.starts_with('[') {
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        return text.parse::<SocketAddr>().is_ok()
            || (!needed && bare.is_some_and(|ip| ip.parse::<Ipv6Addr>().is_ok()));
    }
    match text.split_once(':') {
        Some((host, port)) => is_host(host) && is_port(port),
        None => !needed && is_host(text),
    }
}

fn is_host(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    !text.is_empty() && text.len() <= DNS_DOMAIN_CHARS_MAX && text.bytes().all(plain)
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peer_addresses_are_read_strictly() {
        for text in ["n1:7441", "127.0.0.1:7441", "[::1]:7441", "n1.ipam.example:1", "a_b-c:65535"] {
            assert_eq!(PeerAddress::parse(text), Some(PeerAddress::Network(text)), "{text}");
        }
        let longest = format!("unix:/{}", "x".repeat(SOCKET_PATH_BYTES_MAX - 1));
        for text in ["unix:/run/ipamd/peer", "unix:/a b", &longest] {
            assert!(PeerAddress::parse(text).unwrap().is_socket(), "{text}");
        }
        for text in [
            "",
            "n1",
            "n1:",
            ":7441",
            "n1:65536",
            "n1:+1",
            "n1:7441:1",
            "::1:7441",
            "[::1]",
            "[::1",
            "a b:1",
            "http://n1:7441",
            "n1\n:1",
            "n1\u{202e}:1",
            "ä:1",
            "\u{1b}[31mn1:1",
            "unix:",
            "unix:x",
            "unix:/",
            "unix:/run/",
            "unix:/a\nb",
            "unix:/a\u{202e}b",
            "unix:/a\0b",
            &format!("{longest}x"),
            &format!("{}:1", "x".repeat(254)),
        ] {
            assert_eq!(PeerAddress::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn client_urls_are_read_strictly() {
        for text in [
            "http://n1",
            "https://n1.ipam.example:7440",
            "http://[::1]:7440/",
            "http://[::1]",
            "http://1.2.3.4:1/",
        ] {
            assert!(is_client_url(text), "{text}");
        }
        for text in [
            "",
            "n1:7440",
            "http://",
            "http:///",
            "HTTP://n1",
            "ftp://n1",
            "javascript:alert(1)",
            "http://n1/v1",
            "http://n1?x",
            "http://user@n1",
            "http://user:secret@n1",
            "http://n1:x",
            "http://n1:",
            "http://n1 ",
            "http://n\u{1b}[31m1",
            "http://n1\u{202e}",
            "http://[::1",
            "http://[x]",
            &format!("http://{}", "x".repeat(CLIENT_URL_CHARS_MAX)),
        ] {
            assert!(!is_client_url(text), "{text:?}");
        }
    }
}
