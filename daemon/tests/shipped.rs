//! Programs that ship: all are static, the plugin is small, and none has options of tests. The default
//! filter of `.config/nextest.toml` leaves these tests to `cargo xtask test --shipped`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::support::programs;

const BYTES_MAX: usize = 4 << 20;
/// Words that any linked TLS stack leaves in a binary.
const TLS: [&str; 4] = ["rustls", "aws-lc", "aws_lc", "OpenSSL"];
/// Runs that the start is timed over.
const STARTS: usize = 51;

/// ELF format: offsets in the file's head and in a program header, and their values.
mod elf {
    pub(super) const MAGIC: &[u8] = b"\x7fELF\x02\x01";
    pub(super) const PROGRAM_HEADERS_AT: usize = 0x20;
    pub(super) const PROGRAM_HEADER_SIZE: usize = 0x36;
    pub(super) const PROGRAM_HEADER_COUNT: usize = 0x38;
    pub(super) const SEGMENT_AT: usize = 0x08;
    pub(super) const SEGMENT_SIZE: usize = 0x20;
    pub(super) const DYNAMIC: u64 = 2;
    pub(super) const INTERPRETER: u64 = 3;
    pub(super) const NEEDED: u64 = 1;
}

fn plugin() -> PathBuf {
    shipped(programs::ipam_cni())
}

fn shipped(program: PathBuf) -> PathBuf {
    assert!(programs::shipped().is_some(), "only what ships is like this: cargo xtask test --shipped");
    program
}

/// Little-endian number of this size.
fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn place(bytes: &[u8], at: usize, size: usize) -> usize {
    usize::try_from(number(bytes, at, size)).unwrap()
}

/// The bytes of a program that needs neither a dynamic linker nor a shared library.
fn static_program(program: &Path) -> Vec<u8> {
    let bytes = std::fs::read(program).unwrap();
    assert!(bytes.starts_with(elf::MAGIC), "no 64-bit little-endian ELF file");
    let table = place(&bytes, elf::PROGRAM_HEADERS_AT, 8);
    let size = place(&bytes, elf::PROGRAM_HEADER_SIZE, 2);
    for at in 0..place(&bytes, elf::PROGRAM_HEADER_COUNT, 2) {
        let header = &bytes[table + at * size..][..size];
        let kind = number(header, 0, 4);
        assert_ne!(kind, elf::INTERPRETER, "it needs a dynamic linker");
        if kind == elf::DYNAMIC {
            let segment = &bytes[place(header, elf::SEGMENT_AT, 8)..][..place(header, elf::SEGMENT_SIZE, 8)];
            let tags = segment.chunks_exact(16).map(|entry| number(entry, 0, 8));
            let mut tags = tags.take_while(|tag| *tag != 0);
            assert!(tags.all(|tag| tag != elf::NEEDED), "it needs shared libraries");
        }
    }
    println!("{}: {} bytes", program.display(), bytes.len());
    bytes
}

#[test]
fn all_programs_are_static() {
    for program in [programs::ipamd(), programs::ipamctl(), programs::ipam_agent()] {
        static_program(&shipped(program));
    }
}

/// Otherwise two builds in two folders would differ.
#[test]
fn no_program_contains_a_path_of_the_machine_that_built_it() {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned();
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"))).unwrap();
    for program in [programs::ipamd(), programs::ipamctl(), programs::ipam_cni(), programs::ipam_agent()] {
        let bytes = std::fs::read(shipped(program)).unwrap();
        for place in [&checkout, &cargo] {
            let place = place.to_str().unwrap().as_bytes();
            let found = bytes.windows(place.len()).position(|window| window == place);
            let shown = found.map(|at| String::from_utf8_lossy(&bytes[at..at + 80]).into_owned());
            assert_eq!(shown, None);
        }
    }
}

#[test]
fn the_plugin_is_static_small_and_without_tls() {
    let bytes = static_program(&plugin());
    assert!(bytes.len() < BYTES_MAX, "{} bytes", bytes.len());
    for word in TLS {
        let there = bytes.windows(word.len()).any(|window| window == word.as_bytes());
        assert!(!there, "{word} is in it");
    }
}

fn version(mut command: Command) {
    let output = command.env_clear().env("CNI_COMMAND", "VERSION").stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let spoken: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(spoken["supportedVersions"].as_array().unwrap().len(), 7);
}

/// Only the shipped plugin has no TLS: test builds share the features of the workspace.
#[test]
fn the_plugin_says_that_it_has_no_tls() {
    let plugin = plugin();
    let mut command = Command::new(plugin);
    command.env_clear().envs([("CNI_COMMAND", "STATUS"), ("CNI_PATH", "/usr/lib/cni")]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let network = r#"{"cniVersion":"1.1.0","name":"lan","ipam":{"servers":["https://127.0.0.1:7440"]}}"#;
    child.stdin.take().unwrap().write_all(network.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let refused: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(refused["code"], 7, "{refused}");
    assert!(refused["details"].as_str().unwrap().contains("no TLS in it"), "{refused}");
}

#[test]
fn the_plugin_runs_where_there_is_nothing_else_and_starts_at_once() {
    let plugin = plugin();
    let empty = tempfile::tempdir().unwrap();
    std::fs::copy(&plugin, empty.path().join("ipam-cni")).unwrap();
    let chroot = ["/usr/sbin/chroot", "/sbin/chroot"].map(Path::new);
    let chroot = chroot.into_iter().find(|path| path.exists()).expect("chroot, of coreutils");
    let mut inside = Command::new(chroot);
    inside.arg(empty.path()).arg("/ipam-cni");
    version(inside);

    let mut times: Vec<_> = (0..STARTS)
        .map(|_| {
            let begun = Instant::now();
            version(Command::new(&plugin));
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!("VERSION from exec to exit: median {:?}, fastest {:?}", times[STARTS / 2], times[0]);
}

#[test]
fn the_daemon_and_the_agent_refuse_the_options_of_tests() {
    let refuses = |program: PathBuf, option: &str| {
        let output = Command::new(program).args(["serve", option, "unknown"]).env_clear().output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap().contains(&format!("unexpected argument '{option}'"))
    };
    assert!(refuses(shipped(programs::ipamd()), "--test-option"));
    assert!(!refuses(programs::testing_ipamd(), "--test-option"), "the build for tests has them");
    for option in ["--kill-at", "--test-option"] {
        assert!(refuses(shipped(programs::ipam_agent()), option));
        assert!(!refuses(programs::testing_ipam_agent(), option), "the build for tests has it");
    }
}
