//! Allocations of Meridio's clients through one gRPC connection, beside the same requests over REST.
//!
//! `cargo xtask measure --meridio`. Three members on this machine share its cores with the clients. Calls
//! begin at a fixed rate, whether or not earlier ones have their answers, so waiting counts. Read the figures
//! as ratios.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a program for people who measure"
)]

#[path = "../tests/support/mod.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod support;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::client::conn::http2;
use hyper::{Request, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use ipam_api::client::{Call, Client};
use ipam_meridio::wire::ipam::v1::ipam_client::IpamClient;
use ipam_meridio::wire::ipam::v1::{Child, Subnet};
use ipam_meridio::wire::nsp::v1::{Conduit, Trench};
use serde_json::json;
use support::{Cluster, LONG, until};
use tokio::net::TcpStream;
use tokio::time::{sleep_until, timeout};
use tonic::body::Body;

/// Calls per second.
const RATES: [u32; 3] = [1_000, 4_000, 10_000];
/// Duration of the load with each rate.
const LOAD: Duration = Duration::from_secs(5);
/// Longest wait for one answer, which is reported as its time.
const PATIENCE: Duration = Duration::from_secs(30);
const IPV6: i32 = 1;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut cluster = Cluster::of(3);
    let fronts = cluster.free_ports(3);
    for (member, front) in cluster.members.iter_mut().zip(&fronts) {
        member.config = format!("[meridio]\nlisten = \"{front}\"\n");
    }
    let cluster = cluster.all_up().await;
    let leader = cluster.leader().await;
    until("the trench has its pools", async || {
        let call = Call::get("/v1/pools/default-ipv6").within(LONG);
        cluster.ask().send(call).await.map_err(|problem| problem.to_string())
    })
    .await;
    let conduit = json!({"pool": "default-ipv6", "owner": "conduit-a", "length": 56});
    cluster.ask().send(Call::post("/v1/prefixes").json(&conduit).unwrap().within(LONG)).await.unwrap();
    let rest = Arc::new(Client::new(&[cluster.members[leader].url()]).unwrap());
    let grpc = connect(fronts[leader]).await;
    for rate in RATES {
        let of = |kind: &str, number: u32| format!("{kind}-{rate}-{number}");
        let through_grpc = load(rate, |number| {
            let (mut grpc, child) = (grpc.clone(), child(&of("grpc", number)));
            async move { grpc.allocate(child).await.is_ok() }
        });
        show("gRPC", rate, through_grpc.await);
        let over_rest = load(rate, |number| {
            let (rest, call) = (Arc::clone(&rest), delegation(&of("rest", number)));
            async move { rest.send(call).await.is_ok() }
        });
        show("REST", rate, over_rest.await);
    }
}

async fn connect(front: SocketAddr) -> IpamClient<Transport> {
    let stream = TcpStream::connect(front).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let origin: Uri = format!("http://{front}").parse().unwrap();
    let transport: Transport =
        tower::util::BoxCloneService::new(tower::service_fn(move |request: Request<Body>| {
            let mut sender = sender.clone();
            async move { sender.send_request(request).await }
        }));
    IpamClient::with_origin(transport, origin)
}

type Transport =
    tower::util::BoxCloneService<Request<Body>, hyper::Response<hyper::body::Incoming>, hyper::Error>;

fn child(name: &str) -> Child {
    let trench = Some(Trench { name: "default".to_owned() });
    let conduit = Some(Conduit { name: "conduit-a".to_owned(), trench });
    let subnet = Subnet { conduit, node: "node-grpc".to_owned(), ip_family: IPV6 };
    Child { name: name.to_owned(), subnet: Some(subnet) }
}

/// The request to which a call of gRPC leads.
fn delegation(name: &str) -> Call {
    let node = json!({"owner": "node-rest", "length": 64, "keep_edges": true, "ttl_ms": 2_400_000});
    let request = json!({
        "pool": "default-ipv6", "owner": name, "length": 128, "ttl_ms": 2_400_000,
        "through": [{"owner": "conduit-a"}, node],
    });
    Call::post("/v1/prefixes").json(&request).unwrap().repeatable().within(PATIENCE)
}

/// Times of calls that begin at a rate; none for one that failed.
async fn load<F: Future<Output = bool> + Send + 'static>(
    rate: u32,
    call: impl Fn(u32) -> F,
) -> Vec<Option<Duration>> {
    let begun = tokio::time::Instant::now();
    let calls = rate * u32::try_from(LOAD.as_secs()).unwrap();
    let mut running = Vec::new();
    for number in 0..calls {
        let at = begun + Duration::from_secs(1) * number / rate;
        sleep_until(at).await;
        let call = call(number);
        running.push(tokio::spawn(async move {
            let done = timeout(PATIENCE, call).await.unwrap_or_default();
            done.then(|| Instant::now() - at.into_std())
        }));
    }
    let mut times = Vec::new();
    for call in running {
        times.push(call.await.unwrap());
    }
    times
}

fn show(door: &str, rate: u32, times: Vec<Option<Duration>>) {
    let failed = times.iter().filter(|time| time.is_none()).count();
    let mut times: Vec<Duration> = times.into_iter().flatten().collect();
    times.sort_unstable();
    let at = |share: usize| {
        times
            .get(times.len().saturating_sub(1) * share / 100)
            .map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    };
    println!(
        "{door} {rate:>6} calls/s   p50 {:>8.2} ms   p99 {:>8.2} ms   {failed} of {} failed",
        at(50),
        at(99),
        times.len() + failed
    );
}
