//! Probes of the node agent on a real switch.

use std::process::Output;

use ipam_api::problem::exit;
use serde_json::Value;

use crate::support::held::Held;
use crate::support::programs;

/// Ethernet address of the foreign host.
const FOREIGN: &str = "02:00:00:00:99:02";
/// A bridge with an address of each family, and the cable of a foreign host.
const SWITCH: &str = "ip link set lo up && ip link add br0 type bridge && ip link set br0 up && \
     ip address add 10.99.0.1/24 dev br0 && ip address add 2001:db8:99::1/64 dev br0 nodad";

/// This host, and a foreign one on the same link.
struct Link {
    node: Held,
    foreign: Held,
}

impl Link {
    fn make() -> Self {
        let node = Held::start(&["--net"], SWITCH);
        let foreign = Held::start(&["--net"], "ip link set lo up");
        let cable = format!(
            "ip link add cable type veth peer name eth0 netns {} && ip link set cable master br0 up",
            foreign.inner()
        );
        run(&node, &cable);
        let setup = format!(
            "ip link set eth0 address {FOREIGN} && ip link set eth0 up && \
             ip address add 10.99.0.2/24 dev eth0 && ip address add 2001:db8:99::2/64 dev eth0 nodad"
        );
        run(&foreign, &setup);
        Self { node, foreign }
    }

    fn probe(&self, words: &[&str]) -> Output {
        let mut command = self.node.inside(&["-n"]);
        command.arg(programs::ipam_agent()).arg("probe").args(words).output().unwrap()
    }

    /// Results as JSON, with the exit code.
    fn probes(&self, words: &[&str]) -> (u8, Vec<Value>) {
        let output = self.probe(&[&["-o", "json"], words].concat());
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        (code(&output), report["probes"].as_array().unwrap().clone())
    }
}

fn run(host: &Held, script: &str) {
    let output = host.inside(&["-n"]).args(["sh", "-ec", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
}

fn code(output: &Output) -> u8 {
    output.status.code().unwrap().try_into().unwrap()
}

#[test]
fn free_addresses_and_those_of_the_host_are_silent() {
    let link = Link::make();
    let (code, probes) = link.probes(&["10.99.0.9", "2001:db8:99::9", "10.99.0.1", "2001:db8:99::1"]);
    assert_eq!((code, probes.len()), (exit::DONE, 4));
    assert!(probes.iter().all(|one| one["result"] == "silent" && one["interface"] == "br0"), "{probes:?}");
}

#[test]
fn a_foreign_host_answers_with_its_mac() {
    let link = Link::make();
    let both = ["10.99.0.2", "2001:db8:99::2"];
    for (gateway, expected) in [(&["--interface", "br0"][..], exit::FOUND), (&["--gateway"], exit::DONE)] {
        let (code, probes) = link.probes(&[gateway, &both].concat());
        assert_eq!((code, probes.len()), (expected, 2));
        assert!(probes.iter().all(|one| one["result"] == "answered" && one["mac"] == FOREIGN), "{probes:?}");
        assert!(probes.iter().all(|one| one["round_trip_us"].is_u64()), "{probes:?}");
    }
    let neighbours = link.foreign.inside(&["-n"]).args(["ip", "-4", "neighbour"]).output().unwrap();
    assert!(neighbours.stdout.is_empty(), "probes change no ARP cache: {neighbours:?}");
}

#[test]
fn a_gateway_that_is_down_does_not_answer() {
    let link = Link::make();
    run(&link.foreign, "ip link set eth0 down");
    let (code, probes) = link.probes(&["--gateway", "10.99.0.2", "2001:db8:99::2"]);
    assert_eq!(code, exit::FOUND);
    assert!(probes.iter().all(|one| one["result"] == "silent"), "{probes:?}");
}

#[test]
fn a_hundred_addresses_are_probed_at_once() {
    let link = Link::make();
    // The foreign host has every second one.
    run(&link.foreign, "for i in $(seq 102 2 200); do ip address add 10.99.0.$i/24 dev eth0; done");
    let addresses: Vec<String> = (101..=200).map(|last| format!("10.99.0.{last}")).collect();
    let (code, probes) = link.probes(&addresses.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((code, probes.len()), (exit::FOUND, 100));
    for (at, one) in probes.iter().enumerate() {
        let expected = if at % 2 == 0 { "silent" } else { "answered" };
        assert_eq!(one["result"], expected, "{one}");
    }
}

#[test]
fn failures_name_the_next_step() {
    let link = Link::make();
    for (words, expected, step) in [
        (&["192.0.2.1"][..], exit::USAGE, "name one with --interface"),
        (&["--interface", "eth9", "10.99.0.2"], exit::USAGE, "name one of: br0, cable, lo"),
        (&["127.0.0.2"], exit::USAGE, "name another with --interface"),
        (&["--interface", "br0", "::ffff:10.99.0.2"], exit::USAGE, "probe 10.99.0.2"),
    ] {
        let output = link.probe(words);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(code(&output) == expected && text.contains(step), "{words:?}: {output:?}");
    }
    let mut command = link.node.inside(&["-n"]);
    command.args(["setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw"]);
    let output = command.arg(programs::ipam_agent()).args(["probe", "10.99.0.2"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(code(&output) == exit::REFUSED && text.contains("setcap cap_net_raw+ep"), "{output:?}");
}
