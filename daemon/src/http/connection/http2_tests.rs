//! HTTP/2 on a listener: well-behaved clients, and frames that no client library sends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, Version};
use axum::response::IntoResponse as _;
use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use ipam_api::limits::{
    GRPC_STREAMS_MAX, HEAD_BYTES_MAX, HTTP2_ERROR_RESETS_MAX, HTTP2_RESETS_PENDING_MAX, HTTP2_STREAMS_MAX,
};
use ipam_api::resolve::connect;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Protocols;
use super::server::{Listener, serve_with};
use crate::http::request::Peer;

const LONG: Duration = Duration::from_secs(30);
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types of frames, and a flag (RFC 9113, section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// Head of `GET /` of `http`, with the static table of HPACK.
const GET: &[u8] = &[0x82, 0x84, 0x86, 0x41, 1, b'x'];

struct Server {
    address: SocketAddr,
    /// Requests at `/wait` answer after it.
    go_on: Arc<Notify>,
    stop: watch::Sender<bool>,
    served: JoinHandle<()>,
}

impl Server {
    async fn with(protocols: Protocols) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopping) = watch::channel(false);
        let go_on = Arc::new(Notify::new());
        let router = router(Arc::clone(&go_on));
        let listener = Listener::Network { listener, tls: None };
        let served = tokio::spawn(serve_with(protocols, listener, 9, router, stopping));
        Self { address, go_on, stop, served }
    }

    async fn stream(&self) -> TcpStream {
        connect(&self.address.to_string()).await.unwrap()
    }
}

fn router(go_on: Arc<Notify>) -> Router {
    let respond = async move |request: Request| match request.uri().path() {
        "/wait" => {
            go_on.notified().await;
            // The body was not read, and was kept.
            drop(request);
            "done".into_response()
        }
        "/short" => vec![7_u8; 1 << 10].into_response(),
        "/large" => vec![7_u8; 1 << 20].into_response(),
        "/echo" => request.into_body().into_response(),
        _ => {
            let host = request.headers().get("host").map(|host| host.to_str().unwrap().to_owned());
            let peer = request.extensions().get::<Peer>().unwrap();
            format!("{:?} {host:?} {peer:?}", request.version()).into_response()
        }
    };
    Router::new().fallback(respond)
}

/// Client of a well-behaved library, and its end.
async fn client(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> (SendRequest<Bytes>, JoinHandle<Result<(), h2::Error>>) {
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    (client, tokio::spawn(connection))
}

fn request(method: &str, path: &str) -> axum::http::Request<()> {
    let uri = format!("http://localhost:7440{path}");
    axum::http::Request::builder().version(Version::HTTP_2).method(method).uri(uri).body(()).unwrap()
}

async fn text(mut body: RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut text = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len()).unwrap();
        text.extend_from_slice(&piece);
    }
    Ok(text)
}

async fn ask(client: &SendRequest<Bytes>, path: &str) -> Result<(StatusCode, HeaderMap, String), h2::Error> {
    let mut client = client.clone().ready().await?;
    let (response, _) = client.send_request(request("GET", path), true)?;
    let (head, body) = timeout(LONG, response).await.unwrap()?.into_parts();
    let text = String::from_utf8(text(body).await?).unwrap();
    Ok((head.status, head.headers, text))
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn opening() -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()
}

/// One frame that a server sent.
#[derive(Debug)]
struct Received {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Received {
    /// Reason of the end of a stream or of the connection.
    fn reason(&self) -> Option<Reason> {
        let at = match self.kind {
            RST_STREAM => 0,
            GOAWAY => 4,
            _ => return None,
        };
        Some(u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap()).into())
    }
}

/// Frames until the server closes.
async fn frames(stream: &mut (impl AsyncRead + Unpin)) -> Vec<Received> {
    let mut all = Vec::new();
    while let Some(frame) = next(stream).await {
        all.push(frame);
    }
    all
}

async fn next(stream: &mut (impl AsyncRead + Unpin)) -> Option<Received> {
    let reading = async {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).await.ok()?;
        let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
        Some(Received { kind: head[3], flags: head[4], stream, payload })
    };
    timeout(LONG, reading).await.expect("the server neither sends nor closes")
}

#[tokio::test]
async fn both_versions_are_served_on_sockets_of_both_kinds() {
    let server = Server::with(Protocols::rest()).await;
    let stream = server.stream().await;
    let peer = Peer::Tcp { address: stream.local_addr().unwrap(), certificate: None };
    let (two, _) = client(stream).await;
    let (status, headers, text) = ask(&two, "/").await.unwrap();
    assert_eq!((status, text), (StatusCode::OK, format!("HTTP/2.0 Some(\"localhost:7440\") {peer:?}")));
    assert!(!headers.contains_key("connection"));
    let mut one = server.stream().await;
    one.write_all(b"GET / HTTP/1.1\r\nhost: y\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    one.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("HTTP/1.1 Some(\"y\")"), "{answer}");

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let listener = Listener::Socket(UnixListener::bind(&path).unwrap());
    let router = router(Arc::default());
    tokio::spawn(serve_with(Protocols::grpc(), listener, 9, router, server.stop.subscribe()));
    let (two, _) = client(UnixStream::connect(&path).await.unwrap()).await;
    let uid = rustix::process::getuid().as_raw();
    let (_, _, text) = ask(&two, "/").await.unwrap();
    assert!(
        text.starts_with("HTTP/2.0 ") && text.ends_with(&format!("{:?}", Peer::Socket { uid })),
        "{text}"
    );
}

#[tokio::test]
async fn a_stopping_server_finishes_streams_and_takes_no_more() {
    let server = Server::with(Protocols::rest()).await;
    let (two, connection) = client(server.stream().await).await;
    let waiting = tokio::spawn({
        let two = two.clone();
        async move { ask(&two, "/wait").await }
    });
    // Later requests of a connection are answered meanwhile, so the first one has arrived.
    ask(&two, "/").await.unwrap();
    server.stop.send(true).unwrap();
    let refused = async { while ask(&two, "/").await.is_ok() {} };
    timeout(LONG, refused).await.expect("requests are accepted for ever");
    server.go_on.notify_one();
    assert_eq!(waiting.await.unwrap().unwrap().2, "done");
    drop(two);
    connection.await.unwrap().unwrap();
    timeout(LONG, server.served).await.unwrap().unwrap();
}

#[tokio::test]
async fn red_team_half_an_opening_is_hung_up_on() {
    let limit = Duration::from_millis(100);
    let server = Server::with(Protocols { head_read_max: limit, ..Protocols::rest() }).await;
    for begin in [&b""[..], b"PRI", PREFACE] {
        let mut stream = server.stream().await;
        stream.write_all(begin).await.unwrap();
        assert!(frames(&mut stream).await.is_empty(), "{begin:?}");
    }
}

#[tokio::test]
async fn red_team_a_client_that_answers_no_ping_is_hung_up_on() {
    let (ping, pong_max) = (Duration::from_millis(100), Duration::from_millis(200));
    let server = Server::with(Protocols { ping, pong_max, ..Protocols::rest() }).await;
    // Idle; in the midst of a head; with a stream that is open.
    let half = frame(HEADERS, 0, 1, GET);
    let open = frame(HEADERS, END_HEADERS, 1, GET);
    let silent = [opening(), [opening(), half].concat(), [opening(), open].concat()].map(|bytes| {
        let server = &server;
        async move {
            let mut stream = server.stream().await;
            stream.write_all(&bytes).await.unwrap();
            let frames = frames(&mut stream).await;
            assert!(frames.iter().any(|frame| frame.kind == PING && frame.flags == 0), "{frames:?}");
        }
    });
    futures::future::join_all(silent).await;
}

#[tokio::test]
async fn an_idle_client_that_answers_pings_keeps_its_connection() {
    let (ping, pong_max) = (Duration::from_millis(20), Duration::from_secs(10));
    let server = Server::with(Protocols { ping, pong_max, ..Protocols::grpc() }).await;
    let mut stream = server.stream().await;
    stream.write_all(&opening()).await.unwrap();
    let mut pings = 0;
    while pings < 20 {
        let received = next(&mut stream).await.expect("the connection stays");
        if received.kind == PING {
            pings += 1;
            stream.write_all(&frame(PING, ACK, 0, &received.payload)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_client_may_send_any_number_of_pings() {
    let server = Server::with(Protocols::grpc()).await;
    let mut stream = server.stream().await;
    stream.write_all(&opening()).await.unwrap();
    for number in 0..2_000_u64 {
        stream.write_all(&frame(PING, 0, 0, &number.to_be_bytes())).await.unwrap();
        loop {
            let received = next(&mut stream).await.expect("the connection stays");
            assert_ne!(received.kind, GOAWAY, "{:?}", received.reason());
            if received.kind == PING && received.flags == ACK {
                assert_eq!(received.payload, number.to_be_bytes());
                break;
            }
        }
    }
}

#[tokio::test]
async fn red_team_streams_above_the_limit_are_refused_alone() {
    for (protocols, limit) in [(Protocols::rest(), HTTP2_STREAMS_MAX), (Protocols::grpc(), GRPC_STREAMS_MAX)]
    {
        let server = Server::with(protocols).await;
        let (two, _connection) = client(server.stream().await).await;
        // The client learns the limit with the first answer.
        ask(&two, "/").await.unwrap();
        assert_eq!(two.current_max_send_streams(), limit as usize);
        let mut stream = server.stream().await;
        let mut bytes = opening();
        // Each is open: its body has not ended.
        for number in 0..=limit {
            bytes.extend(frame(
                HEADERS,
                END_HEADERS,
                2 * number + 1,
                &[0x83, 0x44, 5, b'/', b'e', b'c', b'h', b'o', 0x86],
            ));
        }
        stream.write_all(&bytes).await.unwrap();
        let refused = loop {
            let received = next(&mut stream).await.expect("the connection stays");
            if let Some(reason) = received.reason() {
                break (received.kind, received.stream, reason);
            }
        };
        assert_eq!(refused, (RST_STREAM, 2 * limit + 1, Reason::REFUSED_STREAM));
    }
}

#[tokio::test]
async fn red_team_streams_that_are_reset_at_once_end_the_connection() {
    let server = Server::with(Protocols::rest()).await;
    let mut stream = server.stream().await;
    let mut bytes = opening();
    for number in 0..4 * u32::try_from(HTTP2_RESETS_PENDING_MAX).unwrap() {
        let id = 2 * number + 1;
        bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, id, GET));
        bytes.extend(frame(RST_STREAM, 0, id, &8_u32.to_be_bytes()));
    }
    stream.write_all(&bytes).await.unwrap();
    let frames = frames(&mut stream).await;
    let end = frames.iter().find(|frame| frame.kind == GOAWAY).unwrap();
    assert_eq!(end.reason(), Some(Reason::ENHANCE_YOUR_CALM), "{frames:?}");
}

#[tokio::test]
async fn red_team_streams_with_errors_end_the_connection() {
    let server = Server::with(Protocols::rest()).await;
    let mut stream = server.stream().await;
    stream.write_all(&opening()).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let ended = tokio::spawn(async move { frames(&mut read).await });
    for number in 0..4 * u32::try_from(HTTP2_ERROR_RESETS_MAX).unwrap() {
        let id = 2 * number + 1;
        // A window that is too large is an error of the stream.
        let bytes =
            [frame(HEADERS, END_HEADERS, id, GET), frame(WINDOW_UPDATE, 0, id, &i32::MAX.to_be_bytes())];
        if write.write_all(&bytes.concat()).await.is_err() {
            break;
        }
    }
    let frames = ended.await.unwrap();
    let end = frames.iter().find(|frame| frame.kind == GOAWAY);
    assert_eq!(end.and_then(Received::reason), Some(Reason::ENHANCE_YOUR_CALM));
    let resets = frames.iter().filter(|frame| frame.kind == RST_STREAM).count();
    assert!(resets <= HTTP2_ERROR_RESETS_MAX + 1, "{resets}");
}

#[tokio::test]
async fn red_team_a_head_without_end_ends_the_connection() {
    let server = Server::with(Protocols::rest()).await;
    let mut stream = server.stream().await;
    stream.write_all(&[opening(), frame(HEADERS, 0, 1, GET)].concat()).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let ended = tokio::spawn(async move { frames(&mut read).await });
    let mut sent = 0;
    // The smallest pieces, and large ones.
    for payload in [&[][..], &[0; 16 << 10]] {
        let piece = frame(CONTINUATION, 0, 1, payload);
        while sent < 64 * HEAD_BYTES_MAX && write.write_all(&piece).await.is_ok() {
            sent += piece.len();
        }
    }
    let frames = ended.await.unwrap();
    assert!(sent < 64 * HEAD_BYTES_MAX, "{sent} bytes were read");
    assert!(frames.iter().all(|frame| frame.kind != HEADERS && frame.kind != DATA), "{frames:?}");
}

#[tokio::test]
async fn red_team_a_large_head_is_refused_alone() {
    let server = Server::with(Protocols::rest()).await;
    let (two, _connection) = client(server.stream().await).await;
    for (bytes, answer) in
        [(HEAD_BYTES_MAX / 2, StatusCode::OK), (HEAD_BYTES_MAX, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)]
    {
        let mut request = request("GET", "/");
        request.headers_mut().insert("x", "x".repeat(bytes).parse().unwrap());
        let (response, _) = two.clone().send_request(request, true).unwrap();
        assert_eq!(timeout(LONG, response).await.unwrap().unwrap().status(), answer);
    }
    assert_eq!(ask(&two, "/").await.unwrap().0, StatusCode::OK);
}

#[tokio::test]
async fn red_team_a_response_that_is_not_accepted_ends_alone() {
    // The second response ends well only if a slow machine accepts each of its pieces within this time.
    let stall_max = Duration::from_secs(2);
    let server = Server::with(Protocols { stall_max, ..Protocols::rest() }).await;
    let (two, _connection) = client(server.stream().await).await;
    let mut accepts = two.clone().ready().await.unwrap();
    // The client library accepts 65,535 bytes, and no more while nothing is read.
    let (response, _) = accepts.send_request(request("GET", "/large"), true).unwrap();
    let mut body = timeout(LONG, response).await.unwrap().unwrap().into_body();
    let mut read = 0;
    let error = loop {
        match timeout(LONG, body.data()).await.expect("it is waited for, for ever").unwrap() {
            Ok(piece) => read += piece.len(),
            Err(error) => break error,
        }
    };
    assert!(error.is_reset() && read < 1 << 20, "{error} after {read} bytes");
    // The connection and its other streams go on.
    drop(body);
    let (response, _) = two.clone().send_request(request("GET", "/large"), true).unwrap();
    assert_eq!(text(response.await.unwrap().into_body()).await.unwrap().len(), 1 << 20);
}

/// With a window of one byte, a whole frame would wait in a buffer after its stream has no task any more.
#[tokio::test]
async fn red_team_a_short_response_that_is_not_accepted_ends_as_well() {
    let stall_max = Duration::from_millis(300);
    let server = Server::with(Protocols { stall_max, ..Protocols::rest() }).await;
    let mut narrow = h2::client::Builder::new();
    narrow.initial_window_size(1);
    let (two, connection) = narrow.handshake::<_, Bytes>(server.stream().await).await.unwrap();
    tokio::spawn(connection);
    let (response, _) = two.clone().send_request(request("GET", "/short"), true).unwrap();
    let mut body = timeout(LONG, response).await.unwrap().unwrap().into_body();
    let error = loop {
        if let Err(error) = timeout(LONG, body.data()).await.expect("it waits for ever").unwrap() {
            break error;
        }
    };
    assert!(error.is_reset(), "{error}");
}

#[tokio::test]
async fn red_team_unread_bodies_stay_small() {
    let server = Server::with(Protocols::rest()).await;
    let (two, _connection) = client(server.stream().await).await;
    ask(&two, "/").await.unwrap();
    // `/wait` reads no body.
    let mut sends = Vec::new();
    let mut bodies = Vec::new();
    for _ in 0..20 {
        let mut two = two.clone().ready().await.unwrap();
        let (response, mut body) = two.send_request(request("GET", "/wait"), false).unwrap();
        body.reserve_capacity(1 << 20);
        sends.push(response);
        bodies.push(body);
    }
    let mut accepted = 0;
    for body in &mut bodies {
        while let Ok(Some(Ok(capacity))) =
            timeout(Duration::from_millis(50), futures::future::poll_fn(|cx| body.poll_capacity(cx))).await
        {
            accepted += capacity;
            body.send_data(Bytes::from(vec![0; capacity]), false).unwrap();
        }
    }
    let limit = ipam_api::limits::HTTP2_CONNECTION_WINDOW_BYTES as usize;
    assert!(accepted > 0 && accepted <= limit, "{accepted}");
}

#[tokio::test]
async fn a_body_arrives_and_its_answer_comes_back() {
    let server = Server::with(Protocols::rest()).await;
    let (two, _connection) = client(server.stream().await).await;
    let (response, mut body) = two.clone().send_request(request("POST", "/echo"), false).unwrap();
    let sent: Bytes = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    body.send_data(sent.clone(), true).unwrap();
    let received = text(response.await.unwrap().into_body()).await.unwrap();
    assert!(sent == received);
}
