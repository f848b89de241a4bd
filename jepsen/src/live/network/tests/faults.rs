//! Cuts, impairments and blindness between two hosts.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::super::{Host, Impairment};
use super::support::{Pair, is_silent, receive_number, wait_for};

fn v4(host: &Host) -> IpAddr {
    host.ipv4.into()
}

fn v6(host: &Host) -> IpAddr {
    host.ipv6.into()
}

#[test]
fn a_cut_concerns_one_direction() {
    let pair = Pair::make(v4);
    pair.network.cut(&[pair.there()]);
    pair.send(10);
    wait_for("dropped frames", || pair.count().cut >= 10);
    assert!(is_silent(&pair.to));
    pair.to.send(b"y").unwrap();
    assert_eq!(pair.from.recv(&mut [0; 4]).unwrap(), 1);
    assert_eq!(pair.network.flows()[&pair.back()].count.cut, 0);
    pair.network.heal(&[pair.there()]);
    pair.echo();
}

#[test]
fn a_link_cut_twice_passes_frames_after_the_second_healing() {
    let pair = Pair::make(v6);
    let links = [pair.there(), pair.back()];
    pair.network.cut(&links);
    pair.network.cut(&links[..1]);
    pair.network.heal(&links);
    pair.send(5);
    wait_for("dropped frames", || pair.count().cut >= 5);
    assert!(is_silent(&pair.to));
    pair.network.heal(&links);
    pair.echo();
}

#[test]
fn frames_in_flight_are_cut_as_well() {
    let pair = Pair::make(v4);
    // The cut must come before the frames are due, also on a slow machine.
    pair.network.impair("b", Impairment { delay_ms: 3_000, ..Impairment::default() });
    pair.send(3);
    wait_for("delayed frames", || pair.count().delayed >= 3);
    pair.network.cut(&[pair.there()]);
    wait_for("dropped frames", || pair.count().cut >= 3);
    assert!(is_silent(&pair.to));
}

#[test]
fn a_share_of_frames_is_lost() {
    let pair = Pair::make(v4);
    let mut arrived = 0;
    for _ in 0..10 {
        pair.network.impair("a", Impairment { loss_percent: 30, ..Impairment::default() });
        pair.send(100);
        arrived += pair.arrived().len();
    }
    assert!((600..800).contains(&arrived), "{arrived} of 1000");
    let lost = usize::try_from(pair.count().lost).unwrap();
    assert!(lost >= 1000 - arrived, "{lost} lost, {arrived} arrived");
}

#[test]
fn a_share_of_frames_arrives_twice() {
    let pair = Pair::make(v6);
    pair.network.impair("b", Impairment { duplicate_percent: 50, ..Impairment::default() });
    pair.send(100);
    let mut arrived = pair.arrived();
    assert!((125..175).contains(&arrived.len()), "{} of 100", arrived.len());
    assert!(arrived.is_sorted(), "{arrived:?}");
    arrived.dedup();
    assert_eq!(arrived.len(), 100);
    assert!(pair.count().duplicated >= 25);
}

#[test]
fn reordered_frames_are_overtaken() {
    let pair = Pair::make(v4);
    pair.network.impair("a", Impairment { reorder_percent: 20, ..Impairment::default() });
    pair.send(100);
    let arrived: Vec<_> = (0..100).map(|_| receive_number(&pair.to)).collect();
    assert!(!arrived.is_sorted(), "{arrived:?}");
    assert!((5..50).contains(&pair.count().reordered), "{:?}", pair.count());
    let mut sorted = arrived;
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..100));
}

#[test]
fn delayed_frames_keep_their_order() {
    let pair = Pair::make(v6);
    pair.network.impair("a", Impairment { delay_ms: 40, jitter_ms: 10, ..Impairment::default() });
    let begun = Instant::now();
    pair.send(100);
    assert_eq!(receive_number(&pair.to), 0);
    assert!(begun.elapsed() >= Duration::from_millis(30), "{:?}", begun.elapsed());
    assert!(pair.arrived().into_iter().eq(1..100));
    assert!(pair.count().delayed >= 100);
}

#[test]
fn checksums_detect_corrupted_frames() {
    let pair = Pair::make(v4);
    let errors = |host: &Host| {
        let script = "awk '/^Udp:/ { print $8 }' /proc/net/snmp | tail -1";
        host.run(script).unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(errors(&pair.b), 0);
    pair.network.impair("a", Impairment { corrupt_percent: 100, ..Impairment::default() });
    pair.send(100);
    assert_eq!(pair.arrived(), Vec::<u32>::new());
    assert!(pair.count().corrupted >= 100);
    assert!((60..=100).contains(&errors(&pair.b)), "{} of 100", errors(&pair.b));
}

#[test]
fn blindness_drops_arp_and_ndp_only() {
    for family in [v4, v6] {
        let pair = Pair::make(family);
        pair.network.blind("b", true);
        pair.echo();
        assert_eq!(pair.count().blinded, 0);
        pair.a.run("ip neigh flush dev eth0").unwrap();
        pair.from.send(b"z").unwrap();
        wait_for("dropped probes", || pair.count().blinded > 0);
        assert!(is_silent(&pair.to));
        pair.network.blind("b", false);
        // The kernel repeats its ARP or NDP query, and has kept the datagram.
        assert_eq!(pair.to.recv(&mut [0; 4]).unwrap(), 1);
    }
}
