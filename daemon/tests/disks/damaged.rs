//! Disks that return altered data: detected by checksums, and never served.

use std::fs;
use std::path::{Path, PathBuf};

use ipam_api::client::{Call, Client};
use ipam_api::event::{Event, EventPage};
use serde_json::{Value, json};

use super::scene::DAMAGED;
use crate::support::ask::{allocate, allocate_request, get, make_pools};
use crate::support::{Cluster, LONG, until};

/// Takes a snapshot soon.
const RAFT: &str =
    "heartbeat_ms = 100\nelection_min_ms = 300\nelection_max_ms = 500\nsnapshot_every_entries = 50";

/// Three members with something to lose, a snapshot each, and one that is down without a warning.
async fn with_one_down() -> (Cluster, usize) {
    let mut cluster = Cluster::of_with(3, RAFT).all_up().await;
    let client = cluster.ask();
    make_pools(&client).await;
    for number in 0..80 {
        allocate(&client, &allocate_request(&format!("h{number}"), &["web"])).await.unwrap();
    }
    let down = cluster.follower().await;
    let snapshot = cluster.members[down].data_dir.join("snapshot/current");
    until("there is a snapshot", async || snapshot.exists().then_some(()).ok_or("none".to_owned())).await;
    cluster.settled().await;
    rows_are_written(&cluster.members[down].data_dir).await;
    cluster.members[down].kill();
    (cluster, down)
}

/// Waits until the row writer has nothing left to write.
async fn rows_are_written(data_dir: &Path) {
    let marker = data_dir.join("marker");
    let mut before = Vec::new();
    let mut same = 0;
    until("the marker rests", async || {
        let now = fs::read(&marker).unwrap_or_default();
        same = if now == before { same + 1 } else { 0 };
        before = now;
        // A second: four rounds of that thread.
        if same >= 100 { Ok(()) } else { Err(format!("for {same} looks")) }
    })
    .await;
}

/// Middle of a file, without the zeros at its end, which are room for more.
fn middle(content: &[u8]) -> usize {
    content.iter().rposition(|byte| *byte != 0).unwrap() / 2
}

/// Turns one bit in the middle of a file.
fn flip(path: &Path) {
    let mut content = fs::read(path).unwrap();
    let middle = middle(&content);
    content[middle] ^= 0x10;
    fs::write(path, content).unwrap();
}

/// Files of a folder with this prefix, in order.
fn files(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(prefix);
    let mut files: Vec<PathBuf> = entries.filter(named).collect();
    files.sort();
    files
}

/// A start that must be refused with the remedy; the other members continue.
async fn is_refused(mut cluster: Cluster, at: usize, path: &Path) {
    cluster.start(at);
    let status = cluster.members[at].exit().await;
    let member = &cluster.members[at];
    assert_eq!(status.code(), Some(DAMAGED), "{}", member.tail());
    let last = member.last_line();
    for word in [path.to_str().unwrap(), "is damaged", "move this data directory away"] {
        assert!(last.contains(word), "{word:?} is missing: {last}");
    }
    allocate(&cluster.ask(), &allocate_request("after", &["web"])).await.unwrap();
    assert_eq!(cluster.settled().await.addresses.allocated, 81);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_log_keeps_its_member_out() {
    let (cluster, down) = with_one_down().await;
    let log = cluster.members[down].data_dir.join("log");
    let newest = files(&log, "").pop().unwrap();
    flip(&newest);
    is_refused(cluster, down, &log).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_was_cut_keeps_its_member_out() {
    let (cluster, down) = with_one_down().await;
    let log = cluster.members[down].data_dir.join("log");
    let newest = files(&log, "").pop().unwrap();
    let mut content = fs::read(&newest).unwrap();
    content.truncate(middle(&content));
    fs::write(&newest, content).unwrap();
    is_refused(cluster, down, &log).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_copy_of_the_log_keeps_its_member_out() {
    let (mut cluster, down) = with_one_down().await;
    let log = cluster.members[down].data_dir.join("log");
    let copy = cluster.dir.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for file in files(&log, "") {
        fs::copy(&file, copy.join(file.file_name().unwrap())).unwrap();
    }
    cluster.start(down);
    cluster.ready().await;
    for number in 0..10 {
        allocate(&cluster.ask(), &allocate_request(&format!("late-{number}"), &["web"])).await.unwrap();
    }
    cluster.settled().await;
    rows_are_written(&cluster.members[down].data_dir).await;
    cluster.members[down].kill();
    fs::remove_dir_all(&log).unwrap();
    fs::rename(&copy, &log).unwrap();
    for number in 0..10 {
        let call = Call::delete(format!("/v1/endpoints/host/default/default/late-{number}")).within(LONG);
        cluster.ask().send(call).await.unwrap();
    }
    is_refused(cluster, down, &log).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_snapshot_keeps_its_member_out() {
    let (cluster, down) = with_one_down().await;
    let snapshot = cluster.members[down].data_dir.join("snapshot/current");
    flip(&snapshot);
    is_refused(cluster, down, &snapshot).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_rows_are_put_aside_and_made_afresh() {
    let (mut cluster, down) = with_one_down().await;
    let data_dir = cluster.members[down].data_dir.clone();
    // Part of it is unused: the first half of the file isn't.
    let rows = data_dir.join("rows/db");
    let mut content = fs::read(&rows).unwrap();
    let written = content.iter().rposition(|byte| *byte != 0).unwrap();
    for at in (0..written).step_by(written / 64) {
        content[at] ^= 0x10;
    }
    fs::write(&rows, content).unwrap();
    cluster.start(down);
    cluster.ready().await;
    let logged = cluster.members[down].logged();
    assert!(logged.contains("rows put aside"), "{logged}");
    assert_eq!(files(&data_dir, "rows.damaged").len(), 1);
    allocate(&cluster.ask(), &allocate_request("after", &["web"])).await.unwrap();
    assert_eq!(cluster.settled().await.addresses.allocated, 81);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_segment_of_the_journal_comes_from_another_member() {
    let cluster = Cluster::of_with(3, RAFT).all_up().await;
    let client = cluster.ask();
    make_pools(&client).await;
    let damaged = cluster.follower().await;
    let journal = cluster.members[damaged].data_dir.join("journal");
    let mut round = 0_u64;
    until("a segment is sealed and written", async || {
        round += 1;
        let steps: Vec<Value> = (0..200_u64).map(|step| long_description(1000 * round + step)).collect();
        let call = Call::post("/v1/transactions").json(&json!({"steps": steps})).unwrap().within(LONG);
        client.send(call).await.map_err(|problem| problem.to_string())?;
        let sealed = files(&journal, "segment-");
        if sealed.is_empty() { Err(format!("none after {round} rounds")) } else { Ok(()) }
    })
    .await;
    cluster.settled().await;
    let expected = all_events(&cluster.at((damaged + 1) % 3)).await.unwrap();
    let segment = files(&journal, "segment-").remove(0);
    flip(&segment);
    // The first read detects it; a later read returns whole data, and none returns altered data.
    let events = until("the segment is there again", async || {
        all_events(&cluster.at(damaged)).await.map_err(|problem| problem.to_string())
    })
    .await;
    assert!(events == expected, "{} events are not the {} of the others", events.len(), expected.len());
    assert_eq!(files(&journal, "segment-").iter().filter(|path| **path == segment).count(), 1);
    let logged = cluster.members[damaged].logged();
    for word in ["the journal is damaged", "was fetched from another member"] {
        assert!(logged.contains(word), "{word:?} is missing: {logged}");
    }
}

/// A step that changes the description of a pool to another long one.
fn long_description(number: u64) -> Value {
    let description = format!("{number} {}", "x".repeat(900));
    json!({"method": "PATCH", "path": "/v1/pools/web", "body": {"description": description}})
}

async fn all_events(client: &Client) -> Result<Vec<Event>, ipam_api::Problem> {
    let mut events = Vec::new();
    let mut after = String::new();
    loop {
        let page: EventPage = get(client, &format!("/v1/events?limit=1000{after}")).await?;
        events.extend(page.items);
        match page.next {
            Some(next) => after = format!("&after={next}"),
            None => return Ok(events),
        }
    }
}
