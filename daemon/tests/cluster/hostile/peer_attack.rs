//! A process of the host that claims to be a member and passes on a command with a grant of its own. The
//! program is none of this project's: `daemon/testdata/peer_attack.py`, run as the user `nobody`.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use ipam_api::access::Role;
use ipam_api::client::Call;
use ipam_machine::command::{CreateToken, Grant, Purpose, Terms, Text, secret_hash};
use ipam_machine::{Action, Command as Proposal, fixtures};
use serde_json::Value;

use super::others_are_served;
use crate::support::Cluster;

/// A user that may do nothing.
const NOBODY: &str = "65534";
const TOKEN: &str = "backdoor";

/// A command that makes the caller an administrator, with a grant of its own.
fn proposal() -> String {
    let command = Proposal {
        origin: fixtures::origin("task/innocent"),
        terms: Terms::of(Grant::of(Role::Admin)),
        action: Action::CreateToken(CreateToken {
            replaces: false,
            name: TOKEN.parse().unwrap(),
            purpose: Purpose::Bearer,
            grant: Grant::of(Role::Admin),
            ttl_ms: None,
            description: Text::given(""),
            secret_hash: secret_hash("stolen"),
        }),
    };
    postcard::to_stdvec(&command).unwrap().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Runs the attack as a user; the steps that it reached, and how it ended.
fn attack(user: Option<&str>, place: &str) -> (Vec<String>, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/peer_attack.py");
    let mut command = match user {
        Some(user) => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", user, "--regid", user, "--clear-groups", "python3"]);
            command
        }
        None => Command::new("python3"),
    };
    // Through standard input: the user may not be able to read the directory of this source.
    command.args(["-", place, &proposal()]).stdin(File::open(script).unwrap());
    command.env_clear().env("PATH", "/usr/bin:/bin").stderr(Stdio::inherit());
    let output = command.output().unwrap();
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    let mut steps: Vec<String> = printed.lines().map(str::to_owned).collect();
    let end = steps.pop().unwrap_or_default();
    assert_eq!(output.status.success(), end.starts_with("proposed"), "{output:?}");
    (steps, end)
}

async fn has_token(cluster: &Cluster) -> bool {
    let tokens = cluster.at(0).call::<Value>(Call::get("/v1/tokens")).await.unwrap();
    tokens["items"].as_array().unwrap().iter().any(|token| token["name"] == TOKEN)
}

/// Permits everything to all users, for a file and all directories that lead to it.
fn open_wide(path: &Path, up_to: &Path) {
    for place in path.ancestors().take_while(|place| place.starts_with(up_to)) {
        fs::set_permissions(place, Permissions::from_mode(0o777)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_a_process_of_another_user_is_no_member_at_a_unix_socket() {
    let cluster = Cluster::up(1).await;
    let place = cluster.members[0].peer_address();
    let socket = Path::new(place.strip_prefix("unix:").unwrap());
    let (steps, end) = attack(Some(NOBODY), &place);
    assert!(steps.is_empty() && end.contains("Permission denied"), "{steps:?} {end}");
    // The permissions of the socket are one barrier; the kernel's report of the caller is another.
    open_wide(socket, cluster.dir.path());
    let (steps, end) = attack(Some(NOBODY), &place);
    assert_eq!(steps, ["connected"], "{end}");
    assert!(end.starts_with("stopped"), "{end}");
    let log = cluster.members[0].logged();
    assert!(log.contains("user 65534") && log.contains("a caller on the peer port"), "{log}");
    assert!(!has_token(&cluster).await);
    others_are_served(&cluster).await;
    // As the member's own user the same program succeeds: the attack works, and was refused above.
    let (steps, end) = attack(None, &place);
    assert_eq!(steps, ["connected", "hello", "connected", "welcome"], "{end}");
    assert!(end.starts_with("proposed"), "{end}");
    assert!(has_token(&cluster).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_a_process_without_a_certificate_is_no_member_at_a_port() {
    let (cluster, ca) = Cluster::secure(1);
    let cluster = cluster.all_up().await;
    let peer = cluster.members[0].peer;
    for user in [Some(NOBODY), None] {
        for place in [format!("tcp:{peer}"), format!("tls:{peer}")] {
            let (steps, end) = attack(user, &place);
            assert!(steps.iter().all(|step| step == "connected"), "{place}: {steps:?} {end}");
            assert!(end.starts_with("stopped"), "{place}: {end}");
        }
    }
    drop(ca);
    assert!(!has_token(&cluster).await);
    others_are_served(&cluster).await;
}

/// The former attack on the default port; only `insecure` still permits it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_only_an_insecure_port_believes_all_callers_and_each_start_says_so() {
    let mut cluster = Cluster::of(1);
    cluster.members[0].insecure = true;
    let mut cluster = cluster.all_up().await;
    let (steps, end) = attack(Some(NOBODY), &format!("tcp:{}", cluster.members[0].peer));
    assert!(end.starts_with("proposed"), "{steps:?} {end}");
    assert!(has_token(&cluster).await);
    cluster.members[0].kill();
    cluster.start(0);
    cluster.ready().await;
    let log = cluster.members[0].logged();
    let words = format!("peer_listen {} believes every process", cluster.members[0].peer);
    let warnings = log.lines().filter(|line| line.contains("WARN") && line.contains(&words));
    assert_eq!(warnings.count(), 2, "{log}");
}

/// The sockets of a process that take connections: ports of the network, and paths.
fn listens(pid: u32) -> (Vec<String>, Vec<String>) {
    let sockets: Vec<String> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok()?.to_str().map(str::to_owned))
        .filter_map(|link| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let table = |name: &str| fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap();
    let mut ports = Vec::new();
    for line in [table("tcp"), table("tcp6")].concat().lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // 0A: it listens.
        if let [_, local, _, "0A", _, _, _, _, _, inode, ..] = fields.as_slice()
            && sockets.iter().any(|socket| socket == inode)
        {
            ports.push((*local).to_owned());
        }
    }
    let mut paths = Vec::new();
    for line in table("unix").lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // The flag of a socket that takes connections.
        if let [_, _, _, "00010000", _, _, inode, path] = fields.as_slice()
            && sockets.iter().any(|socket| socket == inode)
        {
            paths.push((*path).to_owned());
        }
    }
    (ports, paths)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_a_single_member_has_no_peer_port() {
    let mut cluster = Cluster::of(1);
    cluster.members[0].alone = true;
    let cluster = cluster.all_up().await;
    let member = &cluster.members[0];
    let (ports, paths) = listens(member.pid());
    assert_eq!(ports.len(), 1, "that of clients: {ports:?}");
    assert!(ports[0].ends_with(&format!(":{:04X}", member.client.port())), "{ports:?}");
    assert_eq!(paths, [member.socket().to_str().unwrap()]);
    assert!(!member.logged().contains("INSECURE"));
    // The check itself detects an open port.
    let (secure, _ca) = Cluster::secure(1);
    let secure = secure.all_up().await;
    assert_eq!(listens(secure.members[0].pid()).0.len(), 2);
    let one = Cluster::up(1).await;
    assert_eq!(listens(one.members[0].pid()).1.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_callers_in_any_number_fill_no_log() {
    use tokio::io::AsyncWriteExt as _;

    let (cluster, _ca) = Cluster::secure(1);
    let cluster = cluster.all_up().await;
    let before = cluster.members[0].logged().lines().count();
    for number in 0..3000_u16 {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        // Each from another address of this host, so that none is a repetition.
        let [high, low] = number.to_be_bytes();
        socket.bind(([127, 9, high, low.max(1)], 0).into()).unwrap();
        let mut stream = socket.connect(cluster.members[0].peer).await.unwrap();
        let _ = stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await;
    }
    others_are_served(&cluster).await;
    let log = cluster.members[0].logged();
    let lines = log.lines().count() - before;
    let bound = 2 * ipam_api::limits::PEER_LOG_LINES_MAX;
    assert!(lines > 0 && lines < bound, "{lines} lines for 3000 callers");
}
