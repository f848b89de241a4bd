//! Leases: two clients that compete for one.

use serde_json::{Value, json};

use super::cluster::Cluster;

const LEASES: &str = "coordination.k8s.io/v1/leases";

fn held_by(mut lease: Value, holder: &str) -> Value {
    lease["spec"]["holderIdentity"] = holder.into();
    lease
}

#[tokio::test]
async fn one_of_two_clients_takes_a_lease() {
    let cluster = Cluster::start().await;
    let all = cluster.collection(LEASES);
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader"},
        "spec": {"holderIdentity": "none", "leaseDurationSeconds": 15},
    });
    let both = [held_by(lease.clone(), "a"), held_by(lease, "b")];
    let (a, b) = tokio::join!(cluster.post(&all, &both[0]), cluster.post(&all, &both[1]));
    let mut codes = [a.code, b.code];
    codes.sort_unstable();
    assert_eq!(codes, [201, 409]);
    let one = format!("{all}/leader");
    let seen = cluster.get(&one).await.expect(200);
    let (a, b) = (held_by(seen.clone(), "c"), held_by(seen, "d"));
    let (a, b) = tokio::join!(cluster.put(&one, &a), cluster.put(&one, &b));
    let (won, lost) = if a.code == 200 { (a, b) } else { (b, a) };
    lost.refused(409, "Conflict");
    let won = won.expect(200);
    assert_eq!(cluster.get(&one).await.expect(200)["spec"], won["spec"]);
    // The holder renews, and the other client doesn't with its old version.
    let renewed = cluster.put(&one, &held_by(won.clone(), "e")).await.expect(200);
    cluster.put(&one, &held_by(won, "f")).await.refused(409, "Conflict");
    assert_eq!(cluster.get(&one).await.expect(200), renewed);
}
