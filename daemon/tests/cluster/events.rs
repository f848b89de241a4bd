//! Events, as pages and as streams: the same from every member, and nothing in them can be forged.

use std::time::{Duration, Instant};

use ipam_api::client::{Call, Client};
use ipam_api::event::{AddressHistory, Event, EventPage};
use ipam_api::limits::EVENT_PROGRESS_MS;
use ipam_api::{Code, Problem};
use serde_json::{Value, json};

use crate::support::ask::{addresses, allocate, allocate_request, get, make_pools, put, refused};
use crate::support::raw::ask;
use crate::support::{Cluster, LONG, until};

/// All events of a query, page by page.
async fn all(client: &Client, query: &str) -> Vec<Event> {
    let mut events = Vec::new();
    let mut after = String::new();
    loop {
        let page: EventPage = get(client, &format!("/v1/events?limit=7{query}{after}")).await.unwrap();
        events.extend(page.items);
        match page.next {
            Some(next) => after = format!("&after={next}"),
            None => return events,
        }
    }
}

fn names(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| format!("{} {}", event.event_type, event.object)).collect()
}

/// A cluster in which a few things have happened.
async fn eventful() -> Cluster {
    let cluster = Cluster::up(3).await;
    let client = cluster.ask();
    make_pools(&client).await;
    let to = cluster.members[0].client;
    let body = json!({"name": "web", "subnet": "web", "cooling_ms": 0, "description": "front of house"});
    let headers = [("change-comment", "NET-4711"), ("request-id", "mine-1")];
    assert_eq!(ask(to, "PUT", "/v1/pools/web", &headers, &body).await.status, 200);
    for number in 0..10 {
        allocate(&client, &allocate_request(&format!("h{number}"), &["web", "web6"])).await.unwrap();
    }
    client.send(Call::delete("/v1/endpoints/host/default/default/h3").within(LONG)).await.unwrap();
    cluster
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_member_tells_the_same_history() {
    let cluster = eventful().await;
    let expected = all(&cluster.at(0), "").await;
    assert!(expected.is_sorted_by_key(|event| (event.revision, event.number)));
    for event in &expected {
        assert!(!event.by.principal.is_empty() && !event.by.request_id.is_empty(), "{event:?}");
        assert_eq!(event.by.via, "http");
    }
    for at in 1..3 {
        assert_eq!(all(&cluster.at(at), "").await, expected);
    }
    let client = cluster.ask();
    let mut backwards = all(&client, "&reverse=true").await;
    backwards.reverse();
    assert_eq!(backwards, expected);

    let changed = all(&client, "&kind=pool&pool=web").await;
    assert_eq!(
        names(&changed)[..3],
        ["pool.created web", "pool.condition web", "pool.changed web"],
        "{changed:?}"
    );
    let change = &changed[2];
    assert_eq!((change.comment.as_deref(), change.by.request_id.as_str()), (Some("NET-4711"), "mine-1"));
    assert_eq!(
        (change.changes[0].field.as_str(), change.changes[0].to.as_str()),
        ("description", "front of house")
    );
    let mine = all(&client, "&endpoint=host/default/default/h3").await;
    let what: Vec<&str> = mine.iter().map(|event| event.event_type.as_str()).collect();
    assert_eq!(what, ["address.allocated", "address.allocated", "address.released", "address.released"]);
    assert_eq!(mine[2].reason.as_deref(), Some("endpoint-released"));
    assert!(all(&client, "&network=elsewhere").await.is_empty());
    assert!(all(&client, "&principal=nobody").await.is_empty());

    for bad in ["after=x", "kind=pools", "limit=0", "limit=1001", "since=yesterday", "address=1.2.3", "odd=1"]
    {
        let answer = get::<Value>(&client, &format!("/v1/events?{bad}")).await;
        let problem = answer.unwrap_err();
        assert_eq!(problem.status / 100, 4, "{bad}: {problem}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_past_holder_of_an_address_is_exact() {
    let cluster = Cluster::up(3).await;
    let client = cluster.ask();
    make_pools(&client).await;
    let given = allocate(&client, &allocate_request("first", &["web"])).await.unwrap();
    let address = addresses(&given)[0];
    client.send(Call::delete("/v1/endpoints/host/default/default/first").within(LONG)).await.unwrap();
    let again = serde_json::from_value(json!({
        "endpoint": {"kind": "host", "name": "second"},
        "interfaces": [{"name": "eth0", "addresses": [address], "ipv4_pools": ["web"]}],
    }))
    .unwrap();
    allocate(&client, &again).await.unwrap();
    let path = format!("/v1/addresses/{address}/history");
    let history: AddressHistory = get(&client, &path).await.unwrap();
    let what: Vec<_> = history.events.iter().map(|event| event.event_type.as_str()).collect();
    assert_eq!(what, ["address.allocated", "address.released", "address.allocated"], "the newest first");
    assert_eq!((history.oldest_kept, &history.state), (None, &None));
    let holder = |event: &Event| event.endpoint.as_ref().unwrap().name.to_string();
    let [third, second, first] = &history.events[..] else { panic!("{history:?}") };
    assert_eq!([holder(first), holder(second), holder(third)], ["first", "first", "second"]);
    for (moment, word, last) in [
        (first.at.0 - 1, "free", None),
        (first.at.0, if first.at == second.at { "free" } else { "allocated" }, Some("first")),
        (third.at.0, "allocated", Some("second")),
        (third.at.0 + 60_000, "allocated", Some("second")),
    ] {
        if moment == first.at.0 && first.at == third.at {
            continue;
        }
        let at = ipam_api::time::Timestamp(moment);
        let then: AddressHistory = get(&client, &format!("{path}?at={at}")).await.unwrap();
        let found = then.last_holder.map(|holder| holder.name.to_string());
        assert_eq!((then.state.as_deref(), found.as_deref()), (Some(word), last), "at {at}");
        assert!(then.events.iter().all(|event| event.at.0 <= moment));
    }
    let elsewhere: AddressHistory = get(&client, &format!("{path}?network=lab")).await.unwrap();
    assert!(elsewhere.events.is_empty());
    refused(get::<Value>(&client, &format!("{path}?at=noon")).await, Code::InvalidFilter);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_goes_on_at_another_member_without_gap_or_repeat() {
    let mut cluster = eventful().await;
    let expected = all(&cluster.ask(), "").await;
    // One event from each member in turn, each time after the last one.
    let mut last = Some("0".to_owned());
    for (number, event) in expected.iter().enumerate() {
        let client = cluster.at(number % 3);
        let mut stream = client.events("/v1/events", last.clone(), LONG);
        assert_eq!(stream.next().await.unwrap(), *event);
        last = stream.last().map(str::to_owned);
        assert_eq!(last.as_deref(), Some(event.id().as_str()));
    }
    // An idle stream knows its position, and continues when its member stops.
    let urls = [cluster.members[1].url(), cluster.members[2].url()];
    let client = Client::new(&urls).unwrap();
    let mut stream = client.events("/v1/events?kind=network", None, LONG);
    let begun = Instant::now();
    until("the stream knows its position", async || {
        let event = tokio::time::timeout(Duration::from_millis(500), stream.next()).await;
        assert!(event.is_err(), "an idle stream has no event: {event:?}");
        if stream.last().is_some() { Ok(()) } else { Err("no position".to_owned()) }
    })
    .await;
    assert!(begun.elapsed() < Duration::from_millis(EVENT_PROGRESS_MS), "before any progress message");
    let stopped = cluster.stop(1).await;
    assert!(stopped.success(), "with a stream open: {stopped}");
    put(&cluster.ask(), "networks", json!({"name": "lab"})).await;
    assert_eq!(names(&[stream.next().await.unwrap()]), ["network.created lab"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_input_forges_a_line_of_the_stream() {
    let cluster = Cluster::up(1).await;
    let to = cluster.members[0].client;
    let nasty = "one\nid: 9\nevent: pool.deleted\ndata: {}\n\n\u{1b}[31mred\u{0}\u{2028}end";
    let client = cluster.ask();
    put(&client, "networks", json!({"name": "lab", "description": "plain"})).await;
    let answer = ask(to, "PUT", "/v1/networks/lab", &[], &json!({"name": "lab", "description": nasty})).await;
    let changed = answer.status == 200;
    for header in ["change-comment", "request-id"] {
        for value in ["a\tb", "a\u{1b}[0mb", "\u{7f}"] {
            let body = json!({"name": format!("by-{}", value.len())});
            let path = format!("/v1/networks/by-{}", value.len());
            ask(to, "PUT", &path, &[(header, value)], &body).await;
        }
    }
    let mut stream = client.events("/v1/events", Some("0".to_owned()), LONG);
    let events = all(&client, "").await;
    for event in &events {
        assert_eq!(stream.next().await.unwrap(), *event);
        let says = [Some(&event.by.request_id), event.comment.as_ref()];
        assert!(says.iter().flatten().all(|text| !text.chars().any(char::is_control)), "{event:?}");
    }
    if changed {
        let change = events.iter().find(|event| event.event_type == "network.changed").unwrap();
        assert!(change.changes[0].to.starts_with("one\nid: 9"), "as it was, in JSON");
    }
    // The bytes themselves: every line of a stream is one that we wrote.
    let lines = until("all events come", async || raw_stream(to, events.len()).await).await;
    let words = ["id: ", "event: ", "data: {"];
    let strange =
        lines.iter().find(|line| !line.is_empty() && !words.iter().any(|word| line.starts_with(word)));
    assert_eq!(strange, None);
    assert_eq!(ids(&lines), events.len());
    let logged = cluster.members[0].logged();
    assert!(!logged.contains("red\u{0}") && !logged.contains("\nid: 9"), "{logged}");
}

/// Number of the lines with the id of an event.
fn ids(lines: &[String]) -> usize {
    lines.iter().filter(|line| line.starts_with("id: ") && line.contains('.')).count()
}

/// Present output of a stream, by line; an error as long as fewer than `events` have come.
async fn raw_stream(to: std::net::SocketAddr, events: usize) -> Result<Vec<String>, String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(to).await.map_err(|error| error.to_string())?;
    let head = "GET /v1/events?after=0 HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
    stream.write_all(head.as_bytes()).await.map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(1), stream.read_to_end(&mut bytes)).await;
    assert!(read.is_err(), "the stream goes on");
    let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
    let (_, body) = text.split_once("\r\n\r\n").ok_or("no head yet")?;
    // Lines with the lengths of HTTP chunks end in CR LF, unlike ours.
    let lines = body.split('\n').filter(|line| !line.ends_with('\r')).map(str::to_owned);
    let lines: Vec<String> = lines.collect();
    // On a busy machine the time may end within a chunk, or before all chunks have come.
    match ids(&lines) {
        come if come < events => Err(format!("{come} of {events} events")),
        _ if !body.ends_with("\r\n") => Err("a part of a chunk".to_owned()),
        _ => Ok(lines),
    }
}

/// Problems that end a stream before it begins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_makes_no_sense_is_refused() {
    let cluster = Cluster::up(1).await;
    let to = cluster.members[0].client;
    let accept = ("accept", "text/event-stream");
    for (path, headers, code) in [
        ("/v1/events?reverse=true", vec![accept], Code::InvalidFilter),
        ("/v1/events?kind=nothing", vec![accept], Code::InvalidFilter),
        ("/v1/events", vec![accept, ("last-event-id", "yesterday")], Code::InvalidCursor),
    ] {
        let problem: Problem = ask(to, "GET", path, &headers, &Value::Null).await.problem();
        assert_eq!(problem.code, code, "{path}");
    }
}

/// `ipamctl events --follow`, until Ctrl-C.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_follows_and_says_where_to_go_on() {
    use std::process::{Command, Stdio};
    let cluster = Cluster::up(1).await;
    let client = cluster.ask();
    let log = cluster.dir.path().join("followed");
    let mut follower = Command::new(crate::support::programs::ipamctl())
        .args([
            "events",
            "--server",
            &cluster.members[0].url(),
            "--kind",
            "network",
            "--after",
            "0",
            "--follow",
        ])
        .stdout(std::fs::File::create(&log).unwrap())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    put(&client, "networks", json!({"name": "lab"})).await;
    until("it has followed", async || {
        let text = std::fs::read_to_string(&log).unwrap();
        if text.contains("network.created") && text.contains("lab") { Ok(()) } else { Err(text) }
    })
    .await;
    let pid = rustix::process::Pid::from_child(&follower);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(follower.wait().unwrap().code(), Some(130));
    let mut printed = String::new();
    std::io::Read::read_to_string(&mut follower.stderr.take().unwrap(), &mut printed).unwrap();
    assert!(printed.contains("continue: ipamctl events --follow --after "), "{printed}");
}
