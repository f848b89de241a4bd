//! Run of a watcher.

use tokio::sync::watch::Sender;

use crate::backoff::Backoff;
use crate::connection::Connection;
use crate::mirror::{NamespaceMirror, NodeMirror};
use crate::servers::Servers;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::status::Status;
use crate::tasks::{
    Place, apply_custom, apply_node_pools, follow_controllers, mirror, reclaim_nodes, report_pods, roll_out,
    scan, send_facts, stream,
};

/// Watches a cluster until the future is dropped. Recovers from failures itself, and publishes its status.
pub async fn watch(settings: Settings, servers: impl Servers, status: Sender<Status>) {
    let mut backoff = Backoff::default();
    status.send_replace(Status::new());
    loop {
        let shared = Shared::new(settings.clone(), servers.clone(), status.clone());
        if let Err(error) = run(&shared).await {
            shared.note(|status| status.error = Some(error));
        }
        backoff.wait().await;
    }
}

/// Runs all tasks. Ends if the credentials can't be used.
async fn run(shared: &Shared<impl Servers>) -> Result<(), String> {
    let settings = &shared.settings;
    let connection = Connection::open(settings.kubeconfig.as_deref(), settings.context.as_deref()).await?;
    let client = connection.client(None)?;
    let nodes = Place::<NodeMirror> {
        kind: "Node",
        selector: |pool| &pool.node_selector,
        serves_hosts: true,
        view: |views| &mut views.nodes,
        end: |views, name| views.end_node(name),
    };
    let namespaces = Place::<NamespaceMirror> {
        kind: "Namespace",
        selector: |pool| &pool.namespace_selector,
        serves_hosts: false,
        view: |views| &mut views.namespaces,
        end: |views, name| views.namespaces.end(name),
    };
    tokio::select! {
        result = stream(shared, &connection) => result,
        () = mirror(shared, &client, &shared.wake.nodes, nodes) => Ok(()),
        () = mirror(shared, &client, &shared.wake.namespaces, namespaces) => Ok(()),
        () = send_facts(shared) => Ok(()),
        () = report_pods(shared) => Ok(()),
        () = reclaim_nodes(shared, &client) => Ok(()),
        () = follow_controllers(shared, &client) => Ok(()),
        () = scan(shared, &client) => Ok(()),
        () = roll_out(shared, &client), if shared.settings.custom_resources => Ok(()),
        () = apply_node_pools(shared, &client), if shared.settings.custom_resources => Ok(()),
        () = apply_custom(shared, &client), if shared.settings.custom_resources => Ok(()),
    }
}
