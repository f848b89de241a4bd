//! Wires between members that can be cut: a relay for each direction, known to the caller as the other's address.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// One relay for each ordered pair of members.
pub(crate) struct Links {
    relays: BTreeMap<(usize, usize), Relay>,
}

struct Relay {
    address: SocketAddr,
    whole: watch::Sender<bool>,
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

    /// Where one member finds another.
    pub(crate) fn address(&self, from: usize, to: usize) -> SocketAddr {
        self.relays[&(from, to)].address
    }

    /// Cuts what is between two, in both directions, or mends it.
    pub(crate) fn set(&self, one: usize, other: usize, whole: bool) {
        for pair in [(one, other), (other, one)] {
            self.relays[&pair].whole.send_replace(whole);
        }
    }
}

impl Relay {
    async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let whole = watch::Sender::new(true);
        let state = whole.subscribe();
        tokio::spawn(async move {
            // Ends with the sender.
            while state.has_changed().is_ok() {
                let Ok((mut near, _)) = listener.accept().await else { return };
                let mut state = state.clone();
                tokio::spawn(async move {
                    let carry = async {
                        let mut far = TcpStream::connect(target).await?;
                        copy_bidirectional(&mut near, &mut far).await
                    };
                    tokio::select! {
                        _ = carry => {}
                        _ = state.wait_for(|whole| !whole) => {}
                    }
                });
            }
        });
        Self { address, whole }
    }
}
