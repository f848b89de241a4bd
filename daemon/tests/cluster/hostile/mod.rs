//! Attacks on the ports: other clients are served meanwhile.

mod connections;
mod heads;
mod http2;
mod oversize;
mod peer_attack;
mod peers;
mod preface;
mod slots;
mod terminal;
mod tls;
mod work;

use std::time::Duration;

use ipam_api::client::Call;
use ipam_api::limits::HEAD_READ_MS_MAX;

use crate::support::Cluster;

/// Longer than an undisturbed member ever takes, and shorter than the time limits of slow heads and bodies.
const SOON: Duration = Duration::from_millis(HEAD_READ_MS_MAX - 1_000);

/// Another client sends a request to every member and is served.
async fn others_are_served(cluster: &Cluster) {
    for member in cluster.up_members() {
        let answer = member.ask().send(Call::get("/readyz").within(SOON)).await;
        answer.unwrap_or_else(|problem| panic!("{}: {problem}\n{}", member.name, member.tail()));
    }
}
