//! Name resolution, in this program itself.
//!
//! The shipped programs are static. `getaddrinfo` of a static glibc loads the NSS modules of the host, which
//! belong to another build of the library and can crash the process. Hence no code calls it: all names pass
//! through [`addresses`], which reads `/etc/hosts` and queries the servers of `/etc/resolv.conf`.
//! `nsswitch.conf` has no effect.

use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::system_conf::parse_resolv_conf;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::TcpStream;

use crate::limits::NAMES_FILE_BYTES_MAX;
use crate::name::shown;

/// Names and addresses of the host itself.
const HOSTS: &str = "/etc/hosts";
/// Name servers, search domains and options.
const CONFIGURATION: &str = "/etc/resolv.conf";

/// Resolver of HTTP clients.
#[derive(Debug, Clone, Copy)]
pub struct Names;

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = addresses(name.as_str()).await?;
            Ok(Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

/// Connects to `host:port`; tries the addresses of the host in turn.
///
/// # Errors
/// An unknown name, or the failure of the last attempt.
pub async fn connect(place: &str) -> io::Result<TcpStream> {
    if let Ok(address) = place.parse::<SocketAddr>() {
        return TcpStream::connect(address).await;
    }
    let wrong = || io::Error::new(io::ErrorKind::InvalidInput, format!("{} is not host:port", shown(place)));
    let (host, port) = place.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse().map_err(|_| wrong())?;
    let found: Vec<_> = addresses(host).await?.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
    TcpStream::connect(found.as_slice()).await
}

/// Resolves a host name from `/etc/hosts`, or else with the name servers. An IP address resolves to itself.
///
/// Both files are read each time, so that a change needs no restart. Without `/etc/resolv.conf` only the
/// names of `/etc/hosts` and `localhost` are known.
///
/// # Errors
/// A name without addresses, or name servers without an answer.
pub async fn addresses(host: &str) -> io::Result<Vec<IpAddr>> {
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    found(host, &read(HOSTS).await, &read(CONFIGURATION).await, None).await
}

/// Reads a configuration file. A missing file equals an empty one.
async fn read(path: &'static str) -> Vec<u8> {
    let read = move || {
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(NAMES_FILE_BYTES_MAX).read_to_end(&mut bytes)?;
        io::Result::Ok(bytes)
    };
    tokio::task::spawn_blocking(read).await.ok().and_then(Result::ok).unwrap_or_default()
}

/// Resolves a name with these files. Tests name the port of the name servers.
async fn found(host: &str, hosts: &[u8], conf: &[u8], port: Option<u16>) -> io::Result<Vec<IpAddr>> {
    let listed = in_hosts(host, &String::from_utf8_lossy(hosts));
    if !listed.is_empty() {
        return Ok(listed);
    }
    // Without a usable file there are no servers: default servers would learn the names of this network.
    let (mut config, options) =
        parse_resolv_conf(conf).unwrap_or_else(|_| (ResolverConfig::default(), ResolverOpts::default()));
    for connection in config.name_servers.iter_mut().flat_map(|server| &mut server.connections) {
        connection.port = port.unwrap_or(connection.port);
    }
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    *builder.options_mut() = options;
    builder.options_mut().use_hosts_file = hickory_resolver::config::ResolveHosts::Never;
    let answer = match builder.build() {
        Ok(resolver) => resolver.lookup_ip(host).await,
        Err(error) => Err(error),
    };
    let answer =
        answer.map_err(|error| io::Error::other(format!("{} is not resolved: {error}", shown(host))))?;
    Ok(answer.iter().collect())
}

/// Addresses of a name in `/etc/hosts`, in order.
fn in_hosts(host: &str, hosts: &str) -> Vec<IpAddr> {
    let host = host.strip_suffix('.').unwrap_or(host);
    let lines = hosts.lines().map(|line| line.split('#').next().unwrap_or_default());
    let address = |line: &str| {
        let mut words = line.split_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(|name| name.eq_ignore_ascii_case(host)).then_some(address)
    };
    lines.filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::net::UdpSocket;

    use super::*;

    /// Starts a name server that resolves one name to `10.9.8.7`, and no other. Returns its port.
    async fn name_server(known: &'static str) -> u16 {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = socket.local_addr().unwrap().port();
        tokio::spawn(async move {
            let mut query = [0; 1024];
            while let Ok((_, from)) = socket.recv_from(&mut query).await {
                let _ = socket.send_to(&answer(&query, known), from).await;
            }
        });
        port
    }

    /// Answer to a query (RFC 1035, section 4.1).
    fn answer(query: &[u8], known: &str) -> Vec<u8> {
        let (mut name, mut at) = (String::new(), 12);
        while query[at] != 0 {
            let end = at + 1 + usize::from(query[at]);
            name = name + std::str::from_utf8(&query[at + 1..end]).unwrap() + ".";
            at = end;
        }
        let (is_known, is_ipv4) = (name.eq_ignore_ascii_case(known), query[at + 2] == 1);
        let (code, count) = (if is_known { 0 } else { 3 }, u8::from(is_known && is_ipv4));
        // Id, a recursive answer with its code, one question, and its answer.
        let mut answer = [&query[..2], &[0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0]].concat();
        answer.extend_from_slice(&query[12..at + 5]);
        if count == 1 {
            // The name of the question, type A, class IN, a minute, four bytes.
            answer.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 9, 8, 7]);
        }
        answer
    }

    async fn resolved(host: &str, hosts: &str, conf: &str, port: u16) -> Result<String, String> {
        let found = found(host, hosts.as_bytes(), conf.as_bytes(), Some(port)).await;
        let found = found.map_err(|error| error.to_string())?;
        Ok(found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    }

    #[tokio::test]
    async fn a_name_is_looked_up_in_the_hosts_file_then_at_the_name_servers() {
        let port = name_server("n1.lan.example.").await;
        let conf = "# made by a test\nnameserver 127.0.0.1\nsearch lan.example\noptions timeout:1 trust-ad\n";
        let hosts = "127.0.0.1 localhost # itself\n10.0.0.2 N2 n2.lan.example\nfd00::2 n2\nbroken n3\n";
        for (host, expected) in [
            ("n1.lan.example", "10.9.8.7"),
            ("n1.lan.example.", "10.9.8.7"),
            ("n1", "10.9.8.7"),
            ("n2", "10.0.0.2 fd00::2"),
            ("n2.LAN.example.", "10.0.0.2"),
            ("localhost", "127.0.0.1"),
        ] {
            assert_eq!(resolved(host, hosts, conf, port).await.as_deref(), Ok(expected), "{host}");
        }
        let refused = resolved("n3\u{1b}", hosts, conf, port).await.unwrap_err();
        assert!(refused.starts_with(r#""n3\u{1b}" is not resolved"#), "{refused}");
        assert!(resolved("n4", hosts, conf, port).await.is_err());
    }

    #[tokio::test]
    async fn addresses_and_hosts_need_no_name_server() {
        assert_eq!(addresses("192.0.2.1").await.unwrap(), [IpAddr::from([192, 0, 2, 1])]);
        assert_eq!(addresses("2001:db8::1").await.unwrap().len(), 1);
        for conf in ["", "nameserver nonsense\n"] {
            assert_eq!(resolved("n2", "10.0.0.2 n2", conf, 9).await.as_deref(), Ok("10.0.0.2"));
            let itself = resolved("localhost", "", conf, 9).await.unwrap();
            assert!(itself.contains("127.0.0.1"), "{itself}");
            assert!(resolved("n1.example", "", conf, 9).await.is_err());
        }
    }

    #[tokio::test]
    async fn a_connection_is_made_by_address_and_by_name() {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let at = listener.local_addr().unwrap();
        assert_eq!(connect(&at.to_string()).await.unwrap().peer_addr().unwrap(), at);
        let by_name = connect(&format!("localhost:{}", at.port())).await.unwrap();
        assert_eq!(by_name.peer_addr().unwrap(), at);
        for wrong in ["localhost", "localhost:", "localhost:70000"] {
            assert_eq!(connect(wrong).await.unwrap_err().kind(), io::ErrorKind::InvalidInput, "{wrong}");
        }
    }
}
