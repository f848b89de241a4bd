//! Many claims at once.

use std::collections::BTreeMap;
use std::time::Instant;

use futures::StreamExt as _;
use serde_json::{Value, json};

use super::scene::{Scene, ready};
use crate::support::until;

/// Environment variable with another number of claims.
const CLAIMS_ENV: &str = "IPAMD_TEST_CLAIMS";
const CLAIMS: usize = 1_000;
/// Claims that are created at the same time.
const CREATIONS: usize = 32;
/// Claims that are created one after the other.
const SINGLE: usize = 50;
/// Requests to the API server for a claim: a finalizer, an object, a status, and one that may be repeated.
const REQUESTS_MAX: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_14_a_thousand_claims_at_once_are_fulfilled_side_by_side() {
    let claims = std::env::var(CLAIMS_ENV).map_or(CLAIMS, |text| text.parse().expect(CLAIMS_ENV));
    let scene = Scene::start(1).await;
    scene.pool("web", json!({"addresses": ["10.0.0.0/16"], "prefix": 16})).await;
    scene.reason("ippools", "web", "Applied").await;

    let begun = Instant::now();
    for number in 0..SINGLE {
        scene.claim(&format!("single-{number}"), "web").await;
        scene.fulfilled(&format!("single-{number}")).await;
    }
    let single = begun.elapsed().as_secs_f64() / f64::from(u32::try_from(SINGLE).unwrap());

    let before = scene.management.own().map_or(0, |api| api.requests().len());
    let begun = Instant::now();
    let names: Vec<String> = (0..claims).map(|number| format!("m-{number}")).collect();
    let creations = futures::stream::iter(&names).map(|name| scene.claim(name, "web"));
    creations.buffer_unordered(CREATIONS).collect::<()>().await;
    let created = begun.elapsed();
    let mut looks = 0;
    until("all claims are fulfilled", async || {
        looks += 1;
        let all = scene.management.all("ipaddressclaims").await;
        let fulfilled = all.iter().filter(|claim| ready(claim).0 == "True").count();
        if fulfilled == claims + SINGLE { Ok(()) } else { Err(format!("{fulfilled} are")) }
    })
    .await;
    let elapsed = begun.elapsed();
    println!(
        "c5_14: {claims} claims created in {:.2} s, and fulfilled {:.2} s after the first; one after another \
         would take {:.2} s ({:.1} ms each, of {SINGLE})",
        created.as_secs_f64(),
        elapsed.as_secs_f64(),
        single * f64::from(u32::try_from(claims).unwrap()),
        single * 1e3,
    );
    if let Some(api) = scene.management.own() {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for request in &api.requests()[before..] {
            *counts.entry(format!("{} {}", request.verb, request.resource)).or_default() += 1;
        }
        println!("c5_14: requests to the API server, with those of the test: {counts:?}");
        let of_test = claims + looks;
        let sent = counts.values().sum::<usize>() - of_test;
        assert!(sent <= claims * REQUESTS_MAX, "{sent} requests for {claims} claims");
    }
    let held = scene.held().await;
    assert_eq!(held.len(), claims + SINGLE);
    let shown: Vec<Value> = scene.management.all("ipaddresses").await;
    assert_eq!(shown.len(), claims + SINGLE);
}
