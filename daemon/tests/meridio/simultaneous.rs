//! First allocations at the same time through all members.

use std::collections::BTreeMap;

use futures::future::join_all;

use super::clients::{Child, Client, IPV4, IPV6};
use super::trench::Trench;

/// Children of each family; each is allocated twice at once.
const CHILDREN: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m6_3_simultaneous_first_allocations_have_no_error_and_no_duplicate() {
    let trench = Trench::plain(3).up().await;
    trench.conduit("conduit-a").await;
    let clients = Client::all();
    let calls = (0..CHILDREN * 2 * 2).map(|number| {
        let family = if number % 2 == 0 { IPV4 } else { IPV6 };
        let name = format!("c{}", number / 2 % CHILDREN);
        let (server, client) = (trench.server(number % 3), &clients[(number % 2) ^ (number / 128)]);
        async move {
            let child = Child::new("conduit-a", "node-1", &name, family);
            // A busy machine refuses calls that it cannot serve in time, and clients repeat them.
            let mut answer = client.allocate(&server, &child).await;
            while answer.code == "UNAVAILABLE" && answer.text.contains("Retry in") {
                answer = client.allocate(&server, &child).await;
            }
            ((family, name), answer.prefix())
        }
    });
    let mut of_child: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for (child, prefix) in join_all(calls).await {
        of_child.entry(child).or_default().push(prefix);
    }
    assert_eq!(of_child.len(), 2 * CHILDREN);
    let mut all = Vec::new();
    for (child, prefixes) in of_child {
        assert!(prefixes.len() == 2 && prefixes[0] == prefixes[1], "{child:?}: {prefixes:?}");
        all.push(prefixes[0].clone());
    }
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 2 * CHILDREN, "no two children have one address");
}
