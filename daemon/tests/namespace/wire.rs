//! Sockets inside network namespaces, made by a thread that enters the namespace. A socket stays where it was
//! made, so no program has to run there.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use rustix::fd::AsFd as _;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::support::until;

/// Timeout of one attempt to connect two containers.
const CONNECT: Duration = Duration::from_secs(1);

/// Does something in a network namespace.
pub(crate) fn inside<T: Send>(namespace: &Path, work: impl FnOnce() -> T + Send) -> T {
    let namespace = File::open(namespace).unwrap();
    std::thread::scope(|scope| {
        let visit = scope.spawn(|| {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        });
        visit.join().unwrap()
    })
}

/// Listens inside a network namespace.
pub(crate) fn listener_inside(namespace: &Path, at: SocketAddr) -> TcpListener {
    inside(namespace, || TcpListener::bind(at).unwrap())
}

/// Waits until a message from one container reaches the other at its address, and the answer returns. An IPv6
/// address can be bound after duplicate address detection.
pub(crate) async fn reaches(from: (&Path, IpAddr), to: (&Path, IpAddr)) {
    let what = format!("{} reaches {}", from.1, to.1);
    until(&what, async || exchange(from, to).map_err(|error| error.to_string())).await;
}

fn exchange(from: (&Path, IpAddr), to: (&Path, IpAddr)) -> std::io::Result<()> {
    let listener = inside(to.0, || TcpListener::bind((to.1, 0)))?;
    let at: SocketAddr = listener.local_addr()?;
    let mut caller = inside(from.0, || TcpStream::connect_timeout(&at, CONNECT))?;
    let (mut called, peer) = listener.accept()?;
    assert_eq!(peer.ip(), from.1, "the caller's address is its own");
    for stream in [&caller, &called] {
        stream.set_read_timeout(Some(CONNECT))?;
    }
    caller.write_all(b"?")?;
    let mut word = [0];
    called.read_exact(&mut word)?;
    called.write_all(b"!")?;
    caller.read_exact(&mut word)?;
    assert_eq!(&word, b"!");
    Ok(())
}
