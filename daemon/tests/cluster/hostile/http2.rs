//! Streams of HTTP/2: each is refused alone, by the rules of HTTP/1.1.

use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Method, Request};
use ipam_api::Code;
use ipam_api::limits::{BODY_BYTES_MAX, HEADERS_MAX, HTTP2_STREAMS_MAX, REQUESTS_IN_FLIGHT_PER_CALLER_MAX};
use tokio::time::timeout;

use super::others_are_served;
use crate::support::http2::{Http2, answered, request};
use crate::support::{Cluster, LONG};

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_a_web_page_can_not_use_the_open_loopback_over_http2() {
    let cluster = Cluster::up(1).await;
    let two = Http2::to(cluster.members[0].client).await;
    let body: Option<&[u8]> = Some(br#"{"name":"a"}"#);
    for (authority, headers, status) in [
        // A name of the attacker's that leads to loopback.
        ("evil.example", &[JSON][..], 403),
        ("evil.example:7440", &[JSON], 403),
        // Two names: neither can be trusted.
        ("evil.example", &[JSON, ("host", "localhost")], 400),
        ("localhost", &[JSON, ("host", "evil.example")], 400),
        // A page of another site.
        ("localhost:7440", &[JSON, ("origin", "http://evil.example")], 403),
        ("localhost:7440", &[JSON, ("sec-fetch-site", "cross-site")], 403),
        // The page of this server.
        ("localhost:7440", &[JSON, ("origin", "http://localhost:7440")], 201),
    ] {
        let answer = two.send(request("POST", authority, "/v1/networks", headers), body).await.unwrap();
        assert_eq!(answer.status, status, "{authority} {headers:?}: {answer:?}");
        assert!(!answer.headers.contains_key("connection"));
    }
    others_are_served(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_odd_heads_over_http2_are_refused_alone() {
    let cluster = Cluster::up(1).await;
    let two = Http2::to(cluster.members[0].client).await;
    let connect = Request::builder().method(Method::CONNECT).uri("localhost:7440").body(()).unwrap();
    let many: Vec<String> = (0..=HEADERS_MAX).map(|number| format!("x-{number}")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "x")).collect();
    let long = format!("/{}", "x".repeat(20 << 10));
    for (request, status) in [
        (connect, 405),
        (request("OPTIONS", "localhost", "*", &[]), 404),
        (request("BREW", "localhost", "/readyz", &[]), 405),
        (request("GET", "localhost", "/readyz", &many), 413),
        (request("GET", "localhost", &long, &[]), 413),
        (request("GET", "localhost", "/%00%ff", &[]), 404),
        (request("GET", "user@localhost", "/v1/pools", &[]), 403),
    ] {
        let shown = format!("{} {}", request.method(), request.uri().path().get(..9).unwrap_or_default());
        let answer = two.send(request, None).await.unwrap();
        assert_eq!(answer.status, status, "{shown}: {answer:?}");
    }
    assert_eq!(two.send(request("GET", "localhost", "/readyz", &[]), None).await.unwrap().status, 200);
    others_are_served(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_slow_and_large_bodies_over_http2_are_refused_alone() {
    let cluster = Cluster::up(1).await;
    let two = Http2::to(cluster.members[0].client).await;
    let put = |path: &str, headers: &[(&str, &str)]| request("PUT", "localhost", path, headers);
    let (slow, mut stream) = two.begin(put("/v1/networks/slow", &[JSON]), false).await.unwrap();
    let dripping = tokio::spawn(async move {
        while stream.send_data(Bytes::from_static(b" "), false).is_ok() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let length = (BODY_BYTES_MAX + 1).to_string();
    for headers in [&[JSON, ("content-length", &*length)][..], &[JSON]] {
        let (large, mut stream) = two.begin(put("/v1/networks/large", headers), false).await.unwrap();
        stream.send_data(Bytes::from(vec![b' '; BODY_BYTES_MAX + 1]), true).unwrap();
        let large = answered(large).await.unwrap();
        assert_eq!((large.status.as_u16(), large.problem().code), (413, Code::TooLarge), "{large:?}");
        assert!(!large.headers.contains_key("connection"));
    }
    let made = two.send(put("/v1/networks/quick", &[JSON]), Some(br#"{"name":"quick"}"#)).await.unwrap();
    assert_eq!(made.status, 201, "{made:?}");
    let slow = answered(slow).await.unwrap();
    assert_eq!((slow.status.as_u16(), slow.problem().code), (408, Code::TooSlow), "{slow:?}");
    assert!(!slow.headers.contains_key("connection"));
    timeout(LONG, dripping).await.expect("the stream stays open").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_many_streams_take_the_places_of_one_caller_only() {
    let cluster = Cluster::up(1).await;
    let to = cluster.members[0].client;
    let put = || request("PUT", "localhost", "/v1/networks/slow", &[JSON]);
    let mut open = Vec::new();
    let connections = REQUESTS_IN_FLIGHT_PER_CALLER_MAX.div_ceil(HTTP2_STREAMS_MAX as usize);
    for _ in 0..connections {
        let two = Http2::to(to).await;
        two.send(request("GET", "localhost", "/livez", &[]), None).await.unwrap();
        for _ in 0..HTTP2_STREAMS_MAX {
            open.push(two.begin(put(), false).await.unwrap());
        }
    }
    assert_eq!(open.len(), REQUESTS_IN_FLIGHT_PER_CALLER_MAX);
    let one_more = Http2::to(to).await;
    let refused = async {
        loop {
            let answer = one_more.send(request("GET", "localhost", "/readyz", &[]), None).await.unwrap();
            if answer.status == 429 {
                return answer.problem();
            }
        }
    };
    // The last ones may still be on their way.
    assert_eq!(timeout(LONG, refused).await.unwrap().code, Code::TooManyRequests);
    let other = Http2::from("127.9.9.9:0", to).await;
    assert_eq!(other.send(request("GET", "localhost", "/readyz", &[]), None).await.unwrap().status, 200);
    // Reset streams give their places back.
    drop(open);
    let served = async {
        while one_more.send(request("GET", "localhost", "/readyz", &[]), None).await.unwrap().status != 200 {}
    };
    timeout(LONG, served).await.expect("the places stay taken");
}
