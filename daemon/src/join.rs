//! Join of a new member: it requests admission until the leader has connected to it.

use std::time::Duration;

use ipam_api::Problem;
use ipam_api::client::{Call, Client, Options};
use ipam_api::cluster::{JoinMemberRequest, MemberJoined};
use ipam_api::name::Name;
use ipam_machine::level;
use ipam_raft::node::Node;

use crate::config::JoinConfig;

/// Interval of attempts. A failure may last until an operator acts.
const PAUSE: Duration = Duration::from_secs(2);
/// Time limit of one attempt.
const PATIENCE: Duration = Duration::from_secs(5);

/// Repeats the join request to the configured servers. Each attempt reads the files again, so that a
/// corrected token needs no restart.
pub(crate) async fn run(node: Node, config: JoinConfig) {
    let servers = config.servers.join(", ");
    let client = || {
        let options = Options {
            ca_file: config.ca_file.clone(),
            token_file: config.token_file.clone(),
            ..Options::default()
        };
        Client::with(&config.servers, &options)
    };
    through(&node, &servers, client).await;
}

/// Repeats the join request until the leader connects. A data directory always gets the same answer.
pub async fn through(node: &Node, servers: &str, client: impl Fn() -> Result<Client, Problem>) {
    while let Some(applicant) = node.applicant() {
        let Ok(name) = Name::new(&applicant.name) else { return };
        let request = JoinMemberRequest {
            name,
            disk_id: applicant.disk_id,
            peer_address: applicant.peer_address,
            client_url: applicant.client_url,
            level: level::known(),
        };
        let asked = match client() {
            Ok(client) => ask(&client, &request).await,
            Err(problem) => Err(problem),
        };
        match asked {
            Ok(joined) => node.wait_for(format!(
                "a call of the leader: it is member {} of the cluster {} now, and has to be reached at {}",
                joined.id, joined.cluster_id, request.peer_address
            )),
            Err(problem) => {
                node.wait_for(format!("{servers} to take it in: {} ({})", problem.detail, problem.help));
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn ask(client: &Client, request: &JoinMemberRequest) -> Result<MemberJoined, Problem> {
    client.call(Call::post("/v1/cluster/members").json(request)?.repeatable().within(PATIENCE)).await
}
