//! DELs that arrive while an ADD of the same attachment waits for its turn.

use std::sync::Arc;
use std::time::Duration;

use ipam_api::client::Answer;
use ipam_api::problem::{Code, Problem};
use tokio::task::JoinHandle;

use super::{Container, Request, add, del};
use crate::fakes::{FakeCluster, FakeWire, body, key};
use crate::journal::{Entry, Phase};
use crate::node::Node;
use crate::turns::Turns;

/// Budget of an ADD.
const BUDGET: Duration = Duration::from_secs(20);
/// Budget of an ADD without a leader: the DEL takes one second, and the ADD takes all the rest.
const BUDGET_WITHOUT_LEADER: Duration = Duration::from_secs(8);

/// Node that sends one ADD at a time.
async fn node(cluster: &FakeCluster, dir: &std::path::Path) -> Arc<Node> {
    let mut node = cluster.node(dir, "").await;
    Arc::get_mut(&mut node).unwrap().turns = Turns::new(1, 8);
    node
}

/// Starts the ADD of a process with this start time.
fn adding(node: &Arc<Node>, at_us: u64, budget: Duration) -> JoinHandle<Result<Answer, Problem>> {
    let request = Request::read(node, &body(at_us)).unwrap();
    tokio::spawn(add(node.clone(), FakeWire::with(&[]), request, Container::default(), budget))
}

/// Starts an ADD that waits for its turn.
async fn waiting(node: &Arc<Node>, at_us: u64, budget: Duration) -> JoinHandle<Result<Answer, Problem>> {
    let waits = adding(node, at_us, budget);
    while node.turns.waiting(8) == 0 {
        tokio::task::yield_now().await;
    }
    waits
}

fn entry(node: &Node) -> Option<Entry> {
    node.journal.attachments().get(&key()).cloned()
}

#[tokio::test]
async fn a_del_during_the_wait_for_a_turn_survives_the_add() {
    let (cluster, dir) = (FakeCluster::default(), tempfile::tempdir().unwrap());
    let node = node(&cluster, dir.path()).await;
    let turn = node.turns.take(BUDGET).await.unwrap();
    let waits = waiting(&node, 1, BUDGET_WITHOUT_LEADER).await;
    cluster.model().is_down = true;
    let answer = del(node.clone(), Request::read(&node, &body(2)).unwrap()).await.unwrap();
    assert!(answer.is_none(), "answered from the journal");
    drop(turn);
    assert_eq!(waits.await.unwrap().unwrap_err().code, Code::NoLeader);
    assert!(entry(&node).unwrap().is_deleting());
    assert!(cluster.model().adds.is_empty(), "the DEL comes first");
    cluster.model().is_down = false;
    adding(&node, 3, BUDGET).await.unwrap().unwrap();
    let model = cluster.model();
    let [release] = model.releases.as_slice() else { panic!("{:?}", model.releases) };
    assert_eq!((&release["started"]["at_us"], model.adds.len()), (&2.into(), 1));
    assert_eq!(entry(&node).unwrap().phase, Phase::Attached);
}

#[tokio::test]
async fn a_del_during_the_wait_for_a_turn_ends_the_add() {
    let (cluster, dir) = (FakeCluster::default(), tempfile::tempdir().unwrap());
    let node = node(&cluster, dir.path()).await;
    let turn = node.turns.take(BUDGET).await.unwrap();
    let waits = waiting(&node, 1, BUDGET).await;
    assert!(del(node.clone(), Request::read(&node, &body(2)).unwrap()).await.unwrap().is_some());
    drop(turn);
    assert_eq!(waits.await.unwrap().unwrap_err().code, Code::AttachmentReleased);
    assert_eq!((entry(&node), cluster.model().held()), (None, Vec::new()));
}
