//! Users of the agent's socket.

use std::os::unix::fs::PermissionsExt as _;

use crate::support::Cluster;
use crate::support::agent::Agent;
use crate::support::ask::{allocations, make_pools};
use crate::support::plugin::Plugin;

/// A user without any rights on Debian.
const NOBODY: u32 = 65_534;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_is_not_permitted_gets_nothing_from_the_socket() {
    let cluster = Cluster::up(1).await;
    make_pools(&cluster.ask()).await;
    for (uids, mode, is_permitted) in [("[]", 0o600, false), ("[1]", 0o666, false), ("[65534]", 0o666, true)]
    {
        let agent = Agent::up(&cluster.urls(), "node-1", &format!("uids = {uids}")).await;
        // The folder lets any user pass, so that the socket alone decides.
        std::fs::set_permissions(agent.dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let socket = std::fs::metadata(agent.socket()).unwrap();
        assert_eq!(socket.permissions().mode() & 0o777, mode);
        let add = Plugin::new("ADD", "c1", &agent.network(&["web"])).with_uid(NOBODY);
        if is_permitted {
            add.run().await.succeeds();
            assert_eq!(allocations(&cluster.ask()).await.len(), 1);
        } else {
            // The plugin tries again until its time is over.
            add.deadline_ms(1_000).run().await.fails(11);
            assert!(allocations(&cluster.ask()).await.is_empty());
        }
    }
}
