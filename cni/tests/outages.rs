//! Behaviour of the plugin with servers that are down, slow or faulty, and with faulty runtimes.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::support::plugin::{Outcome, Plugin, network};
use crate::support::server::{Server, ServerBehavior, unused_url};
use ipam_api::Code;
use ipam_api::limits::{ATTEMPT_MS_MAX, CNI_STDIN_BYTES_MAX};
use serde_json::json;

/// Far above what a run with a short deadline needs, far below what one without needs.
const BOUND: Duration = Duration::from_secs(20);

fn conf(servers: &[&str]) -> String {
    network("1.1.0", "", &json!({"ipam": {"servers": servers}}))
}

#[track_caller]
fn in_time(run: impl FnOnce() -> Outcome) -> Outcome {
    let start = Instant::now();
    let outcome = run();
    assert!(start.elapsed() < BOUND, "{:?}: {outcome:?}", start.elapsed());
    outcome
}

#[test]
fn no_server_listens() {
    for command in ["ADD", "DEL", "CHECK"] {
        let outcome =
            in_time(|| Plugin::new(command).within_ms(3000).run(conf(&[&unused_url(), &unused_url()])));
        let texts = outcome.fails(11);
        assert!(texts.contains("No server reachable: unreachable:"), "{texts}");
        assert!(texts.contains("refused"), "{texts}");
    }
}

#[test]
fn a_server_that_hangs_costs_the_deadline_and_no_more() {
    let server = Server::start(ServerBehavior::Hangs);
    for (command, code) in [("ADD", 11), ("DEL", 11), ("CHECK", 11), ("STATUS", 50)] {
        in_time(|| Plugin::new(command).within_ms(300).run(conf(&[&server.url]))).fails(code);
    }
}

#[test]
fn an_unclear_fate_is_said_and_may_be_repeated() {
    for behavior in [ServerBehavior::Hangs, ServerBehavior::CutsShort, ServerBehavior::Garbage] {
        let server = Server::start(behavior);
        let outcome = in_time(|| Plugin::new("ADD").within_ms(3000).run(conf(&[&server.url])));
        let texts = outcome.fails(11);
        assert!(!texts.contains("panicked") && outcome.stderr.is_empty(), "{behavior:?}: {outcome:?}");
        assert!(
            texts.contains("deadline-exceeded") || texts.contains("can't be read"),
            "{behavior:?}: {texts}"
        );
    }
}

#[test]
fn another_server_helps() {
    let good = Server::start(ServerBehavior::Proper);
    for behavior in [
        ServerBehavior::CutsShort,
        ServerBehavior::Refuses(Code::NoLeader),
        ServerBehavior::Refuses(Code::ShuttingDown),
    ] {
        let bad = Server::start(behavior);
        let outcome = in_time(|| Plugin::new("ADD").run(conf(&[&unused_url(), &bad.url, &good.url])));
        assert_eq!(outcome.addresses(), ["10.1.2.2", "2001:db8:1::2"], "{behavior:?}");
        let outcome = in_time(|| Plugin::new("DEL").run(conf(&[&unused_url(), &bad.url, &good.url])));
        outcome.succeeds_in_silence();
        assert!(good.model().addresses().is_empty(), "{behavior:?}");
    }
}

#[test]
fn refusals_keep_their_code_and_their_advice() {
    for (code, cni, words) in [
        (Code::PoolExhausted, 101, "pool-exhausted: so says the test. Add a range to the pool"),
        (Code::NoPoolSelected, 103, "No pool selected: no-pool-selected"),
        (Code::AddressTaken, 107, "address-taken"),
        (Code::InvalidField, 7, "invalid-field"),
        (Code::EpochUnconfirmed, 118, "ipamctl cluster epoch"),
        (Code::NoLeader, 11, "no-leader: so says the test. Retry"),
        (Code::StorageFull, 11, "storage-full"),
        (Code::Internal, 999, "internal"),
    ] {
        let server = Server::start(ServerBehavior::Refuses(code));
        let add = Plugin::new("ADD");
        // The client repeats an ADD with one of these two codes until the deadline; any other code is final.
        let is_repeated = matches!(code, Code::NoLeader | Code::Internal);
        let add = if is_repeated { add.within_ms(3000) } else { add };
        let outcome = in_time(|| add.run(conf(&[&server.url])));
        let texts = outcome.fails(cni);
        assert!(texts.contains(words), "{texts}");
    }
}

#[test]
fn the_agent_is_asked_first_and_the_servers_when_it_cannot_help() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let with = |socket: &str, server: &str| {
        network("1.1.0", server, &json!({"ipam": {"socket": path(socket).to_str().unwrap()}}))
    };
    let server = Server::start(ServerBehavior::Proper);

    let agent = Server::on_socket(ServerBehavior::Proper, &path("good"));
    assert_eq!(Plugin::new("ADD").run(with("good", &server.url)).code, Some(0));
    assert_eq!((agent.seen().len(), server.seen().len()), (1, 0));
    // A refusal is an answer: no other server is asked.
    let _full = Server::on_socket(ServerBehavior::Refuses(Code::PoolExhausted), &path("full"));
    Plugin::new("ADD").run(with("full", &server.url)).fails(101);
    assert!(server.seen().is_empty());

    // A missing agent causes no wait.
    let start = Instant::now();
    assert_eq!(Plugin::new("ADD").container("c9").run(with("missing", &server.url)).code, Some(0));
    assert!(start.elapsed() < Duration::from_millis(ATTEMPT_MS_MAX));

    let _hangs = Server::on_socket(ServerBehavior::Hangs, &path("hangs"));
    let _leaderless = Server::on_socket(ServerBehavior::Refuses(Code::NoLeader), &path("leaderless"));
    std::fs::write(path("no-socket"), "").unwrap();
    for (number, socket) in ["no-socket", "leaderless", "hangs"].into_iter().enumerate() {
        let plugin = Plugin::new("ADD").container(&format!("c{number}")).within_ms(2000);
        let outcome = in_time(|| plugin.run(with(socket, &server.url)));
        assert_eq!(outcome.code, Some(0), "{socket}: {outcome:?}");
    }
}

#[test]
fn an_agent_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sock");
    let alone = json!({"ipam": {"servers": null, "socket": path.to_str().unwrap()}});
    let conf = network("1.1.0", "", &alone);
    for command in ["ADD", "DEL"] {
        let texts = in_time(|| Plugin::new(command).within_ms(200).run(&conf)).fails(11);
        assert!(texts.contains("agent-unreachable"), "{texts}");
    }
    let agent = Server::on_socket(ServerBehavior::Proper, &path);
    assert_eq!(Plugin::new("ADD").run(&conf).code, Some(0));
    let link = || agent.seen().last().unwrap().headers.get("cni-link").cloned();
    assert_eq!(link(), None, "the configuration names no master");
    let with_master = json!({"master": "eth1", "ipam": {"servers": null, "socket": path.to_str().unwrap()}});
    assert_eq!(Plugin::new("ADD").run(network("1.1.0", "", &with_master)).code, Some(0));
    assert_eq!(link().as_deref(), Some("eth1"));
    Plugin::new("CHECK").run(&conf).succeeds_in_silence();
    Plugin::new("STATUS").run(&conf).succeeds_in_silence();
    Plugin::new("DEL").run(&conf).succeeds_in_silence();
    assert!(agent.model().addresses().is_empty());
}

#[test]
fn servers_from_the_environment() {
    let server = Server::start(ServerBehavior::Proper);
    let conf = network("1.1.0", "", &json!({"ipam": {"servers": null}}));
    let servers = format!("{},{}", unused_url(), server.url);
    assert_eq!(Plugin::new("ADD").set("IPAM_SERVERS", &servers).run(&conf).code, Some(0));
    // No server is reachable: the address would be lost.
    Plugin::new("DEL").run(&conf).fails(11);
    assert_eq!(server.model().addresses().len(), 2);
    Plugin::new("DEL").set("IPAM_SERVERS", &servers).run(&conf).succeeds_in_silence();
    assert!(server.model().addresses().is_empty());
}

#[test]
fn the_request_says_who_asks_since_when() {
    let server = Server::start(ServerBehavior::Proper);
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let mut last = 0;
    for (command, line) in [("ADD", "POST /v1/allocations"), ("DEL", "POST /v1/attachments/release")] {
        assert_eq!(Plugin::new(command).run(conf(&[&server.url])).code, Some(0));
        let seen = server.seen().last().unwrap().clone();
        assert_eq!(seen.line, line);
        assert_eq!(seen.body["started"]["boot_id"], boot_id.trim());
        let at = seen.body["started"]["at_us"].as_u64().unwrap();
        assert!(at > last);
        last = at;
        // The kernel's start, and not the moment of the stamp.
        let ticks = seen.body["started"]["start_ticks"].as_u64().unwrap();
        assert!(ticks <= at / 10_000, "{ticks} ticks at {at} us");
        let key = json!({
            "realm": "default", "node": "node-1", "config": "lan", "container_id": "c1", "interface": "eth0"
        });
        assert_eq!(seen.body["attachment"], key);
    }
}

#[test]
fn the_request_carries_the_trace_and_the_token() {
    let server = Server::start(ServerBehavior::Proper);
    let file = std::env::temp_dir().join(format!("ipam-cni-token-{}", std::process::id()));
    std::fs::write(&file, "ipamd_secret\n").unwrap();
    let conf = network("1.1.0", "", &json!({"ipam": {"servers": [server.url], "token_file": file}}));
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let header = |name: &str| server.seen().last().unwrap().headers.get(name).cloned();
    assert_eq!(Plugin::new("ADD").set("TRACEPARENT", trace).run(&conf).code, Some(0));
    assert_eq!(header("traceparent").as_deref(), Some(trace));
    assert_eq!(header("authorization").as_deref(), Some("Bearer ipamd_secret"));
    for nonsense in ["", "00-abc", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0\n"] {
        assert_eq!(Plugin::new("ADD").set("TRACEPARENT", nonsense).run(&conf).code, Some(0));
        assert_eq!(header("traceparent"), None, "{nonsense:?}");
    }
    std::fs::remove_file(&file).unwrap();
    // No server accepts a request without a token: the plugin reports the missing file itself.
    let texts = Plugin::new("ADD").run(&conf).fails(7);
    assert!(texts.contains("token"), "{texts}");
}

#[test]
fn a_huge_configuration_is_refused_without_being_read() {
    let padding = "x".repeat(100 << 20);
    let huge = network("1.1.0", &unused_url(), &json!({"padding": padding}));
    let texts = in_time(|| Plugin::new("ADD").run(huge)).fails(6);
    assert!(texts.contains("too long: at most 2097152 bytes"), "{texts}");

    // The longest one that is allowed, to the byte.
    let server = Server::start(ServerBehavior::Proper);
    let bare = conf(&[&server.url]);
    let longest = bare.replacen('{', &format!("{{{}", " ".repeat(CNI_STDIN_BYTES_MAX - bare.len())), 1);
    assert_eq!(longest.len(), CNI_STDIN_BYTES_MAX);
    assert_eq!(Plugin::new("ADD").run(&longest).code, Some(0));
    Plugin::new("ADD").run(longest + " ").fails(6);
}

/// Cut anywhere, or with a byte that is no text: one error object and no panic.
#[test]
fn damaged_configurations_are_refused_in_order() {
    let server = Server::start(ServerBehavior::Proper);
    let whole = conf(&[&server.url]).into_bytes();
    for at in (0..whole.len()).step_by(7) {
        Plugin::new("ADD").run(whole.get(..at).unwrap()).fails(6);
        let mut damaged = whole.clone();
        *damaged.get_mut(at).unwrap() = 0xff;
        Plugin::new("ADD").run(damaged).fails(6);
    }
    for odd in ["null", "7", "\"x\"", "\u{feff}{}", "{}{}", r#"{"name":"n","name":"n"}"#] {
        let outcome = Plugin::new("ADD").run(odd);
        assert_eq!(outcome.code, Some(1), "{odd}: {outcome:?}");
    }
}

#[test]
fn a_closed_standard_output_is_a_failure_and_no_panic() {
    let server = Server::start(ServerBehavior::Proper);
    for (command, code) in [("ADD", 1), ("DEL", 0), ("FOO", 1)] {
        let mut child = Plugin::new(command).command().spawn().unwrap();
        drop(child.stdout.take());
        let mut stdin = child.stdin.take().unwrap();
        // A plugin that refuses the operation doesn't read its input.
        let _ = stdin.write_all(conf(&[&server.url]).as_bytes());
        drop(stdin);
        let outcome = Outcome::from(child.wait_with_output().unwrap());
        assert_eq!(outcome.code, Some(code), "{command}: {outcome:?}");
        assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
    }
}

#[test]
fn a_person_gets_an_answer() {
    let about = Plugin::bare().run("");
    about.succeeds_in_silence();
    assert!(about.stderr.contains("supported: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0"), "{about:?}");

    let with = |words: &[&str]| Outcome::from(Plugin::bare().command().args(words).output().unwrap());
    assert_eq!(with(&["--version"]).stdout, format!("ipam-cni {}\n", env!("CARGO_PKG_VERSION")));
    assert!(with(&["--help"]).stdout.contains("--check-config FILE"));
    assert_eq!(with(&["--frobnicate"]).code, Some(2));
    assert_eq!(with(&["--check-config", "/nonexistent"]).code, Some(1));
    let attached = with(&["--check-config=/nonexistent"]);
    assert_eq!((attached.code, attached.stderr.contains("/nonexistent: ")), (Some(1), true), "{attached:?}");

    let folder = tempfile::tempdir().unwrap();
    let check = |text: &str| {
        let path = folder.path().join("a.conflist");
        std::fs::write(&path, text).unwrap();
        with(&["--check-config", path.to_str().unwrap()])
    };
    let odd = json!({"ipam": {"ipv4_pool": "web"}});
    let good = check(&network("1.1.0", "http://127.0.0.1:7440", &odd));
    assert_eq!(good.code, Some(0), "{good:?}");
    for words in ["realm default, node node-1", "pools p4, p6", "did you mean \"ipv4_pools\"?"] {
        assert!(good.stdout.contains(words), "{good:?}");
    }
    let list = |kind: &str| {
        let plugin = json!({"type": "bridge", "ipam": {"type": kind, "servers": "http://127.0.0.1:1"}});
        json!({"cniVersion": "1.0.0", "name": "lan", "plugins": [plugin, {"type": "portmap"}]}).to_string()
    };
    assert!(check(&list("ipam-cni")).stdout.starts_with("network lan, CNI 1.0.0\n"));
    assert!(check(&list("host-local")).stderr.contains("none of its plugins"));
    let nameless = check(&network("1.1.0", "http://127.0.0.1:7440", &json!({"name": null})));
    assert_eq!((nameless.code, nameless.stderr.contains("missing network name")), (Some(1), true));
}
