//! Addresses on loopback for the members of a cluster.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use anyhow::{Context as _, Result};

/// Addresses with ports that were free just before. All of them have one IP address.
///
/// All of 127/8 is local: each cluster has an IP address of its own, so that no two clusters collide.
pub(crate) fn free_addresses(count: usize) -> Result<Vec<SocketAddr>> {
    let [_, x, y, z, ..] = *uuid::Uuid::new_v4().as_bytes();
    let ip = IpAddr::V4(Ipv4Addr::new(127, 128 + x % 64, y, z));
    // All ports are bound at once, so that they differ.
    let bound = (0..count).map(|_| TcpListener::bind((ip, 0))).collect::<Result<Vec<_>, _>>();
    let bound = bound.context("no free port on loopback")?;
    Ok(bound.iter().map(TcpListener::local_addr).collect::<Result<_, _>>()?)
}
