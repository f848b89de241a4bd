//! Sections `[[cluster_api]]` of members: their providers run on the leader, beside the watchers.

use ipam_api::reclaim::Tasks;
use test_apiserver::ApiServer;

use crate::kubernetes::watcher::scene::kubeconfig;
use crate::support::ask::get;
use crate::support::{Cluster, until};

/// Names of the tasks on a member that come from the sections.
async fn names(cluster: &Cluster, at: usize) -> Result<Vec<String>, String> {
    let tasks: Tasks = get(&cluster.at(at), "/v1/tasks").await.map_err(|problem| problem.detail)?;
    let names = tasks.tasks.into_iter().map(|task| task.name);
    Ok(names.filter(|name| name.contains('/')).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_runs_the_providers_of_all_sections() {
    let cluster = Cluster::of(3);
    let apis = ["one", "two", "three"].map(|name| (name, ApiServer::start()));
    let dir = cluster.dir.path();
    let [one, two, three] = apis.each_ref().map(|(name, api)| kubeconfig(name, api, dir));
    let sections = format!(
        "log = \"info\"\n\
         [[kubernetes]]\nrealm = \"eu\"\nkubeconfig = {one:?}\n\
         [[cluster_api]]\nrealm = \"site\"\nkubeconfig = {one:?}\ncontext = \"test\"\n\
         [[cluster_api]]\nkubeconfig = {two:?}\nnetwork_per_namespace = true\n\
         [[cluster_api]]\nrealm = \"site\"\nkubeconfig = {three:?}\nwatch_filter = \"blue\"\n",
    );
    std::fs::write(cluster.config(), sections).unwrap();
    let mut cluster = cluster.all_up().await;
    let expected = ["cluster-api/default", "cluster-api/site/1", "cluster-api/site/2", "kubernetes/eu"];
    let leader = cluster.leader().await;
    until("the leader shows its providers", async || {
        let mut names = names(&cluster, leader).await?;
        names.sort();
        if names == expected { Ok(()) } else { Err(format!("{names:?}")) }
    })
    .await;
    assert!(cluster.stop(leader).await.success(), "a provider delays no end");
    let next = cluster.leader().await;
    until("the next leader shows its providers", async || {
        let names = names(&cluster, next).await?;
        if names.len() == expected.len() { Ok(()) } else { Err(format!("{names:?}")) }
    })
    .await;
}
