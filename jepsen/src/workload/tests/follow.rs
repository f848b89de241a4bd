//! Following of events at a server without streams.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::scripted::{Scripted, answer};
use crate::workload::Server as _;

fn event(revision: u64) -> Json {
    json!({
        "revision": revision, "number": 0, "at": "2026-11-20T00:00:00.000Z", "type": "pool.changed",
        "object": "web", "kind": "pool", "by": {"principal": "a", "via": "http", "request_id": "r"},
    })
}

#[tokio::test(start_paused = true)]
async fn pages_follow_each_other_without_gap_or_repetition() {
    let server = Scripted::new(|call| {
        let items = match call.path().rsplit_once("after=").unwrap().1 {
            "5" => json!([event(6), event(7)]),
            "7.0" => json!([event(8)]),
            _ => json!([]),
        };
        Ok(answer(&json!({"items": items, "revision": 8})))
    });
    let mut seen = Vec::new();
    let mut receive = |event: ipam_api::event::Event| seen.push(event.id());
    let time = Duration::from_millis(250);
    let followed = server.follow("/v1/events?kind=pool", "5".to_owned(), time, &mut receive).await;
    assert_eq!(followed.unwrap(), "8.0");
    assert_eq!(seen, ["6.0", "7.0", "8.0"]);
    assert!(server.calls().iter().all(|call| call.path().starts_with("/v1/events?kind=pool&after=")));
}
