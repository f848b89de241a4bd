//! Clients of Meridio: messages, and connections to the front end.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use std::{env, fs, process};

use axum::Extension;
use ipam_api::address::Family;
use ipam_api::client::{Answer, Call};
use ipam_api::name::Name;
use ipam_api::{Code, Problem};
use ipam_meridio::wire::ipam::v1::{Child, Prefix};
use ipam_meridio::wire::nsp::v1::ConduitResponse;
use ipam_meridio::{Caller, FamilySettings, Routers, Servers, Settings};
use ipamd::http::connection::server::{Listener, serve};
use prost::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::{Builder, Runtime, UnhandledPanic};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::parts::{choice, parts};

/// Reads a message of a client, or of Meridio's NSP service.
pub(crate) fn message(data: &[u8]) {
    let (kind, body) = choice(data);
    match kind % 3 {
        0 => again::<Child>(body),
        1 => again::<Prefix>(body),
        _ => again::<ConduitResponse>(body),
    }
}

fn again<T: Message + Default + PartialEq + Debug>(body: &[u8]) {
    if let Ok(message) = T::decode(body) {
        assert_eq!(T::decode(message.encode_to_vec().as_slice()).ok(), Some(message));
    }
}

/// Serves a connection with any bytes, with the opening of HTTP/2 and any bytes, or with valid calls.
pub(crate) fn stream(data: &[u8]) {
    let (kind, data) = choice(data);
    let bytes = match kind % 3 {
        0 => data.to_vec(),
        1 => [OPENING, data].concat(),
        _ => {
            parts(data).iter().take(CALLS_MAX).zip(1_u32..).fold(OPENING.to_vec(), |bytes, (part, number)| {
                let (tag, body) = part;
                [bytes, frames(*tag, 2 * number - 1, body)].concat()
            })
        }
    };
    FRONT_END.runtime.block_on(converse(&FRONT_END.path, &bytes));
}

/// Calls of one input.
const CALLS_MAX: usize = 64;
/// Preface of HTTP/2, and a frame of settings that changes nothing.
const OPENING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// Time after which a connection whose input has ended counts as hanging.
const PATIENCE: Duration = Duration::from_secs(30);

const METHODS: [&str; 3] =
    ["/ipam.v1.Ipam/Allocate", "/ipam.v1.Ipam/Release", "/grpc.health.v1.Health/Watch"];

// Types and flags of frames (RFC 9113, section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Frames of a call; or one frame of any type, with any flags.
fn frames(tag: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    let Some(method) = METHODS.get(usize::from(tag & 3)) else {
        let (flags, payload) = choice(body);
        return frame(tag >> 2, flags, stream, payload);
    };
    let head: [(&str, &str); 7] = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", method),
        (":authority", "ipam"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("grpc-timeout", "100m"),
    ];
    // Literal fields without an index (RFC 7541, section 6.2.2). No text needs a second byte of length.
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap_or(0)], text.as_bytes()].concat();
    let fields = head.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat());
    let mut frames = frame(HEADERS, END_HEADERS, stream, &fields.collect::<Vec<u8>>());
    let announced = u32::try_from(body.len()).unwrap_or(0) + u32::from(tag & 16);
    let data = [&[(tag >> 5) & 1], announced.to_be_bytes().as_slice(), body].concat();
    frames.extend(frame(DATA, if tag & 4 == 0 { END_STREAM } else { 0 }, stream, &data));
    if tag & 8 != 0 {
        // CANCEL.
        frames.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
    }
    frames
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
    [length.as_slice(), &[kind, flags], stream.to_be_bytes().as_slice(), payload].concat()
}

/// Sends the bytes, ends the input, and reads until the server ends the connection.
async fn converse(path: &PathBuf, bytes: &[u8]) {
    let connected = UnixStream::connect(path).await;
    assert!(connected.is_ok(), "the accept loop has ended: {connected:?}");
    let Ok(stream) = connected else { return };
    let (mut reader, mut writer) = stream.into_split();
    // The server may end the connection at any byte.
    let write = async {
        let _ = writer.write_all(bytes).await;
        let _ = writer.shutdown().await;
    };
    let read = async {
        let mut buffer = [0; 4096];
        while reader.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
    };
    let ended = timeout(PATIENCE, async { tokio::join!(write, read) }).await;
    assert!(ended.is_ok(), "the server keeps a connection whose input has ended");
}

/// Front end behind the accept loop of the daemon, on a unix socket of this process.
struct FrontEnd {
    runtime: Runtime,
    path: PathBuf,
    // Without these senders, the routers would stop.
    _stop: watch::Sender<bool>,
    _signals: (watch::Sender<u64>, watch::Sender<bool>),
}

static FRONT_END: LazyLock<FrontEnd> = LazyLock::new(FrontEnd::start);

impl FrontEnd {
    #[allow(clippy::expect_used, reason = "a target without its server tests nothing")]
    fn start() -> Self {
        // A panic of a task is a finding; by default a panic only ends its connection.
        let mut builder = Builder::new_current_thread();
        let builder = builder.enable_all().unhandled_panic(UnhandledPanic::ShutdownRuntime);
        let runtime = builder.build().expect("a runtime");
        let path = env::temp_dir().join(format!("ipamd-fuzz-{}.sock", process::id()));
        // An earlier process with the same id may have left the socket.
        let _ = fs::remove_file(&path);
        let (conduits_sender, conduits) = watch::channel(0);
        let (leader_sender, has_leader) = watch::channel(true);
        let (stop, stopping) = watch::channel(false);
        runtime.block_on(async {
            let socket = UnixListener::bind(&path).expect("a socket");
            let routers = Routers::new(Arc::new(settings()), Full { conduits, has_leader }).await;
            let router = routers.socket.layer(Extension(Caller("fuzz".into())));
            tokio::spawn(serve(Listener::Socket(socket), usize::MAX, router, stopping));
        });
        Self { runtime, path, _stop: stop, _signals: (conduits_sender, leader_sender) }
    }
}

/// Servers without a free address.
#[derive(Debug, Clone)]
struct Full {
    conduits: watch::Receiver<u64>,
    has_leader: watch::Receiver<bool>,
}

impl Servers for Full {
    async fn send(&self, _: &Caller, call: Call) -> Result<Answer, Problem> {
        let detail = format!("{call:?}");
        Err(Problem::new(Code::PoolExhausted, detail.get(..64).unwrap_or_default()))
    }

    fn conduits(&self) -> watch::Receiver<u64> {
        self.conduits.clone()
    }

    fn has_leader(&self) -> watch::Receiver<bool> {
        self.has_leader.clone()
    }
}

/// Trench of IPv4 alone, so that a family is refused, too.
fn settings() -> Settings {
    let name = Name::from_foreign_text;
    Settings {
        trench: "default".to_owned(),
        realm: Name::default_name(),
        network: name("meridio-default"),
        families: "169.255.0.0/16"
            .parse()
            .map(|prefix| FamilySettings {
                family: Family::V4,
                prefix,
                conduit_length: 20,
                node_length: 24,
                pool: name("default-ipv4"),
            })
            .into_iter()
            .collect(),
        ttl_ms: Some(2_400_000),
        compat: false,
        nsp: None,
    }
}
