//! What somebody does who reaches a port and means harm. Whatever it is, the others are served meanwhile.

mod connections;
mod heads;
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

use crate::support::Cluster;

/// Longer than an undisturbed member ever takes, and shorter than any bound on what is slow.
const SOON: Duration = Duration::from_secs(5);

/// Somebody else asks, and is answered by every member.
async fn others_are_served(cluster: &Cluster) {
    for member in cluster.up_members() {
        let answer = member.ask().send(Call::get("/readyz").within(SOON)).await;
        answer.unwrap_or_else(|problem| panic!("{}: {problem}\n{}", member.name, member.tail()));
    }
}
