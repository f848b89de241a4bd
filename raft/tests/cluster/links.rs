//! Connections between members that can be cut. A relay for each direction is known as the peer's address.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// One relay for each ordered pair of members.
pub(crate) struct Links {
    relays: BTreeMap<(usize, usize), Relay>,
}

struct Relay {
    address: SocketAddr,
    wire: watch::Sender<Wire>,
    /// Connections of the caller that have ended.
    ended: Arc<AtomicUsize>,
}

/// State of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// Bytes arrive.
    Whole,
    /// Bytes wait, as at a stopped process: connections stay open.
    Held,
    /// Connections are closed.
    Cut,
}

impl Links {
    /// Wires among members that listen at these addresses.
    pub(crate) async fn among(members: &[SocketAddr]) -> Self {
        let mut relays = BTreeMap::new();
        for from in 0..members.len() {
            for (to, target) in members.iter().enumerate().filter(|(to, _)| *to != from) {
                relays.insert((from, to), Relay::start(*target).await);
            }
        }
        Self { relays }
    }

    /// Address at which one member finds another.
    pub(crate) fn address(&self, from: usize, to: usize) -> SocketAddr {
        self.relays[&(from, to)].address
    }

    /// Sets the state of the link between two members, in both directions.
    pub(crate) fn set(&self, one: usize, other: usize, wire: Wire) {
        for pair in [(one, other), (other, one)] {
            self.relays[&pair].wire.send_replace(wire);
        }
    }

    /// Connections from one member to another that have ended.
    pub(crate) fn ended(&self, from: usize, to: usize) -> usize {
        self.relays[&(from, to)].ended.load(Relaxed)
    }
}

impl Relay {
    async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let wire = watch::Sender::new(Wire::Whole);
        let state = wire.subscribe();
        let ended = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&ended);
        tokio::spawn(async move {
            // The loop ends with the sender.
            while state.has_changed().is_ok() {
                let Ok((near, _)) = listener.accept().await else { return };
                let (state, count) = (state.clone(), Arc::clone(&count));
                tokio::spawn(async move {
                    carry(near, target, state).await;
                    count.fetch_add(1, Relaxed);
                });
            }
        });
        Self { address, wire, ended }
    }
}

/// Carries bytes until the caller hangs up or the wire is cut.
async fn carry(near: TcpStream, target: SocketAddr, mut state: watch::Receiver<Wire>) {
    let (mut from, mut to) = near.into_split();
    let Ok(far) = TcpStream::connect(target).await else { return };
    let (mut back, mut forth) = far.into_split();
    let (there, here) = (state.clone(), state.clone());
    tokio::select! {
        () = copy(&mut from, &mut forth, there) => {}
        () = copy(&mut back, &mut to, here) => {}
        _ = state.wait_for(|wire| *wire == Wire::Cut) => {}
    }
}

/// Copies one direction. Bytes that arrive while the wire is held wait; the end of the stream doesn't.
async fn copy(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf, mut state: watch::Receiver<Wire>) {
    let (mut piece, mut waiting) = (vec![0; 64 << 10], Vec::new());
    loop {
        tokio::select! {
            read = from.read(&mut piece) => match read {
                Ok(length @ 1..) => waiting.extend_from_slice(&piece[..length]),
                _ => return,
            },
            open = flows(&mut state), if !waiting.is_empty() => {
                if !open || to.write_all(&waiting).await.is_err() {
                    return;
                }
                waiting.clear();
            }
        }
    }
}

/// Waits until bytes may arrive; false if they never will. Nothing passes once the wire is cut.
async fn flows(state: &mut watch::Receiver<Wire>) -> bool {
    state.wait_for(|wire| *wire != Wire::Held).await.is_ok_and(|wire| *wire == Wire::Whole)
}
