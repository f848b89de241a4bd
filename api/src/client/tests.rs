//! Tests of the client against fake servers.

use std::future::{Future, pending};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use tokio::net::{TcpListener, UnixListener};

use super::*;

/// Server that returns the lines of the request.
fn echo() -> Router {
    Router::new().fallback(|request: Request| async move {
        let header =
            |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let said = format!("{} {} {}", request.uri(), header("authorization"), header("comment"));
        ([("said", said.clone()), ("etag", "\"7\"".to_owned())], said)
    })
}

#[tokio::test]
async fn a_token_and_headers_go_to_every_kind_of_server_and_headers_come_back() {
    let dir = std::env::temp_dir().join(format!("ipam-api-client-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (socket, token) = (dir.join("s"), dir.join("token"));
    let _ = std::fs::remove_file(&socket);
    std::fs::write(&token, "s3cret\n").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let local = UnixListener::bind(&socket).unwrap();
    tokio::spawn(axum::serve(listener, echo()).into_future());
    tokio::spawn(axum::serve(local, echo()).into_future());
    let options = Options { token_file: Some(token), ..Options::default() };
    for server in [url, format!("unix:{}", socket.display())] {
        let client = Client::with(&[server], &options).unwrap();
        let call =
            Call::get("/v1/x?y=1").header("comment", "first").unwrap().header("Comment", "why").unwrap();
        let answer = client.send(call).await.unwrap();
        assert_eq!(answer.body, b"/v1/x?y=1 Bearer s3cret why");
        assert_eq!(answer.header("Said"), Some("/v1/x?y=1 Bearer s3cret why"));
        assert_eq!((answer.header("none"), answer.etag), (None, Some(7)));
        assert!(!format!("{client:?}").contains("s3cret"));
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Network of a simulation that answers with the place and the path of each request.
#[cfg(feature = "simulation")]
#[derive(Debug)]
struct Places;

#[cfg(feature = "simulation")]
impl Network for Places {
    fn exchange(&self, request: reqwest::Request) -> Exchange<'_> {
        Box::pin(async move { Ok(http::Response::new(request.url().to_string().into())) })
    }

    fn exchange_over<'a>(&'a self, socket: &'a std::path::Path, request: reqwest::Request) -> Exchange<'a> {
        let said = format!("{} {}", socket.display(), request.url().path());
        Box::pin(async move { Ok(http::Response::new(said.into())) })
    }
}

#[cfg(feature = "simulation")]
#[test]
fn a_client_that_is_made_in_a_simulation_sends_over_the_network_of_the_simulation() {
    // The simulation ends with the thread.
    let simulated = std::thread::spawn(|| {
        simulate(Arc::new(Places));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        for (server, said) in [("http://n1:7440", "http://n1:7440/v1/x"), ("unix:/run/s", "/run/s /v1/x")] {
            let answer = runtime.block_on(send(&[server], Call::get("/v1/x"))).unwrap();
            assert_eq!(answer.body, said.as_bytes());
        }
    });
    simulated.join().unwrap();
}

#[test]
fn a_malformed_header_is_refused() {
    for (name, value) in [("comment", "a\r\nhost: b"), ("comment", "a\0"), ("com ment", "a"), ("", "a")] {
        assert_eq!(Call::get("/").header(name, value).unwrap_err().code, Code::InvalidField);
    }
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn a_server_without_tls_is_called_that() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, echo()).into_future());
    let client = Client::new(&[url]).unwrap();
    let problem = client.send(Call::get("/").within(Duration::from_millis(500))).await.unwrap_err();
    assert_eq!(problem.code, Code::Unreachable);
    assert!(problem.detail.contains("doesn't speak TLS"), "{problem}");
}

/// Copy of a request, as a server received it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Copy {
    budget_ms: u64,
    /// Method, path, headers except those of the attempt, and body: the parts that identify a request.
    identity: (String, HeaderMap, Bytes),
}

/// A server that notes its requests, and answers them if it isn't stopped.
struct Noting {
    url: String,
    copies: Arc<Mutex<Vec<Copy>>>,
}

impl Noting {
    async fn start(is_stopped: bool) -> Self {
        let copies: Arc<Mutex<Vec<Copy>>> = Arc::default();
        let noted = Arc::clone(&copies);
        let note = move |request: Request| {
            let noted = Arc::clone(&noted);
            async move {
                let (mut head, body) = request.into_parts();
                head.headers.remove("host").unwrap();
                let budget_ms = head.headers.remove(HEADER_BUDGET_MS).unwrap();
                let budget_ms = budget_ms.to_str().unwrap().parse().unwrap();
                let line = format!("{} {}", head.method, head.uri);
                let body = axum::body::to_bytes(body, BODY_BYTES_MAX).await.unwrap();
                noted.lock().unwrap().push(Copy { budget_ms, identity: (line, head.headers, body) });
                if is_stopped {
                    pending::<()>().await;
                }
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(axum::serve(listener, Router::new().fallback(note)).into_future());
        Self { url, copies }
    }

    fn copies(&self) -> Vec<Copy> {
        self.copies.lock().unwrap().clone()
    }

    fn budgets(&self) -> Vec<u64> {
        self.copies().iter().map(|copy| copy.budget_ms).collect()
    }
}

/// Server that closes each connection.
async fn hanging_up() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.readable().await.unwrap();
        }
    });
    url
}

/// An address that refuses connections.
async fn closed() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

fn write() -> Call {
    let call = Call::post("/v1/pools").json(&serde_json::json!({"name": "web"})).unwrap();
    call.header("idempotency-key", "once").unwrap()
}

fn send(servers: &[&str], call: Call) -> impl Future<Output = Result<Answer, Problem>> {
    let client = Client::new(servers).unwrap();
    async move { client.send(call).await }
}

#[tokio::test]
async fn each_further_server_has_longer_and_the_last_one_the_rest() {
    let (one, two, three) =
        (Noting::start(true).await, Noting::start(true).await, Noting::start(false).await);
    let call = write().repeatable().within(Duration::from_secs(60));
    send(&[&one.url, &two.url, &three.url], call).await.unwrap();
    assert_eq!((one.budgets(), two.budgets()), (vec![ATTEMPT_MS_FIRST], vec![2 * ATTEMPT_MS_FIRST]));
    assert!(matches!(*three.budgets(), [rest] if rest > ATTEMPT_MS_MAX), "{:?}", three.budgets());
    // Each attempt sends the same request.
    let identities = [one, two, three].map(|server| server.copies()[0].identity.clone());
    assert!(identities.iter().all(|identity| *identity == identities[0]), "{identities:?}");
}

#[tokio::test]
async fn a_single_address_has_the_longest_time_and_is_asked_again() {
    let server = Noting::start(true).await;
    // The rest after the first attempt is shorter than a second attempt may take, so there is no third.
    let call = write().repeatable().within(Duration::from_millis(ATTEMPT_MS_MAX + 3_000));
    send(&[&server.url], call).await.unwrap_err();
    assert!(matches!(*server.budgets(), [ATTEMPT_MS_MAX, _]), "{:?}", server.budgets());
}

#[tokio::test]
async fn a_server_that_refuses_connections_is_still_left() {
    let server = Noting::start(true).await;
    let call = write().repeatable().within(Duration::from_secs(4));
    send(&[&closed().await, &server.url], call).await.unwrap_err();
    // The stopped server may recover while the other one is silent, so neither gets all of the time.
    assert!(
        server.budgets().starts_with(&[ATTEMPT_MS_FIRST, 2 * ATTEMPT_MS_FIRST]),
        "{:?}",
        server.budgets()
    );
}

#[tokio::test]
async fn a_slow_or_unrepeatable_call_is_not_cut_short() {
    let within = Duration::from_millis(ATTEMPT_MS_FIRST + 100);
    for (call, is_repeated) in [(write(), false), (write().repeatable().slow(), true)] {
        let (one, two) = (Noting::start(true).await, Noting::start(true).await);
        let problem = send(&[&one.url, &two.url], call.within(within)).await.unwrap_err();
        assert_eq!(problem.applied, Applied::Unknown, "{is_repeated}");
        assert!(matches!(*one.budgets(), [all] if all > ATTEMPT_MS_FIRST), "{:?}", one.budgets());
        assert_eq!(two.budgets(), [0_u64; 0]);
    }
}

/// Server that refuses each request.
async fn refusing(problem: Problem) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let refuse = move || {
        let (status, body) = (StatusCode::from_u16(problem.status).unwrap(), axum::Json(problem.clone()));
        async move { (status, body) }
    };
    tokio::spawn(axum::serve(listener, Router::new().fallback(refuse)).into_future());
    url
}

#[tokio::test]
async fn a_refusal_of_the_second_copy_is_none_of_the_first_without_a_key() {
    let problem = Problem::new(Code::PoolExhausted, "full");
    let (silent, refusing) = (Noting::start(true).await, refusing(problem).await);
    let claim = Call::post("/v1/allocations").json(&serde_json::json!({"wait": true})).unwrap();
    for (call, applied) in [(claim, Applied::Unknown), (write(), Applied::No)] {
        let call = call.repeatable().within(Duration::from_secs(60));
        let problem = send(&[&silent.url, &refusing], call.clone()).await.unwrap_err();
        assert_eq!((problem.code, problem.applied), (Code::PoolExhausted, applied), "{call:?}");
        let problem = send(&[&closed().await, &refusing], call).await.unwrap_err();
        assert_eq!(problem.applied, Applied::No);
    }
}

#[tokio::test]
async fn a_refusal_before_the_state_machine_is_none_of_an_earlier_copy_with_its_key() {
    for code in [Code::StorageFull, Code::TooManyRequests, Code::JournalUnwritable] {
        let (silent, refusing) = (Noting::start(true).await, refusing(Problem::new(code, "refused")).await);
        let call = write().repeatable().within(Duration::from_secs(3));
        let problem = send(&[&silent.url, &refusing], call.clone()).await.unwrap_err();
        assert_eq!((problem.code, problem.applied), (code, Applied::Unknown));
        let problem = send(&[&closed().await, &refusing], call).await.unwrap_err();
        assert_eq!(problem.applied, Applied::No);
    }
}

#[tokio::test]
async fn a_write_of_unknown_fate_is_repeated_only_with_an_identity() {
    let within = Duration::from_secs(60);
    let (bad, good) = (hanging_up().await, Noting::start(false).await);
    let problem = send(&[&bad, &good.url], write().within(within)).await.unwrap_err();
    assert_eq!((problem.applied, good.copies().len()), (Applied::Unknown, 0));
    send(&[&bad, &good.url], write().repeatable().within(within)).await.unwrap();
    assert_eq!(good.copies().len(), 1);
}

/// Server that counts its requests, and refuses each.
async fn counting(problem: Problem) -> (String, Arc<Mutex<usize>>) {
    let count: Arc<Mutex<usize>> = Arc::default();
    let counted = Arc::clone(&count);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let refuse = move || {
        *counted.lock().unwrap() += 1;
        let (status, body) = (StatusCode::from_u16(problem.status).unwrap(), axum::Json(problem.clone()));
        async move { (status, body) }
    };
    tokio::spawn(axum::serve(listener, Router::new().fallback(refuse)).into_future());
    (url, count)
}

#[tokio::test]
async fn an_overloaded_server_gets_the_pause_that_it_asks_for() {
    for code in [Code::Overloaded, Code::TooManyRequests] {
        let (url, count) = counting(Problem::new(code, "busy").retry_after(1_000)).await;
        let call = write().repeatable().within(Duration::from_secs(4));
        let problem = send(&[&url], call).await.unwrap_err();
        assert_eq!((problem.code, problem.applied), (code, Applied::No));
        // Without the pauses, there would be a dozen requests.
        let count = *count.lock().unwrap();
        assert!((2..=4).contains(&count), "{count} attempts in 4 s, with pauses of 1 s");
    }
}

#[tokio::test]
async fn a_pause_longer_than_the_remaining_time_ends_the_call_once_all_servers_refused() {
    let (url, count) = counting(Problem::new(Code::Overloaded, "busy").retry_after(9_000)).await;
    let call = write().repeatable().within(Duration::from_secs(8));
    let problem = send(&[&url, &url], call).await.unwrap_err();
    assert_eq!((problem.code, *count.lock().unwrap()), (Code::Overloaded, 2));
    assert!(problem.help.contains("Retry in 9 s"), "{}", problem.help);
}

#[tokio::test]
async fn a_pause_of_one_server_does_not_end_the_call_before_the_others_are_asked() {
    for code in [Code::Overloaded, Code::TooManyRequests] {
        // The pause is longer than the time limit of the call.
        let (busy, count) = counting(Problem::new(code, "busy").retry_after(9_000)).await;
        let idle = Noting::start(false).await;
        let call = write().repeatable().within(Duration::from_secs(8));
        send(&[&busy, &busy, &idle.url], call).await.unwrap();
        assert_eq!((*count.lock().unwrap(), idle.copies().len()), (2, 1), "{code:?}");
    }
}

#[tokio::test]
async fn a_limit_of_one_server_delays_no_attempt_at_another_and_that_of_the_cluster_does() {
    for (code, is_paused) in [(Code::TooManyRequests, false), (Code::Overloaded, true)] {
        let pause_ms = if is_paused { 200 } else { RETRY_AFTER_MS_MAX };
        let refusal = Problem::new(code, "busy").retry_after(pause_ms);
        let ((busy, count), idle) = (counting(refusal).await, Noting::start(false).await);
        let call = write().repeatable().within(Duration::from_secs(60));
        let began = Instant::now();
        send(&[&busy, &idle.url], call).await.unwrap();
        assert_eq!((*count.lock().unwrap(), idle.copies().len()), (1, 1));
        assert_eq!(began.elapsed() >= Duration::from_millis(pause_ms), is_paused, "{code:?}");
    }
}
