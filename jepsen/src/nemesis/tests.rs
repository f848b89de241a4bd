//! Tests of all nemeses: legal faults, each form and class, and the same faults for the same seed.

use std::collections::BTreeSet;

use ipam_api::limits::PROBE_INTERVAL_MS;

use super::{Change, Fault, Kind, Link, Nemesis, View, all};
use crate::random::Random;

const SEEDS: u64 = 10_000;

fn names(letter: char, count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("{letter}{number}")).collect()
}

/// A cluster without a fault.
fn whole(members: usize) -> View {
    let all = names('n', members);
    View {
        members: all.clone(),
        running: all.clone(),
        leader: Some("n2".to_owned()),
        hosts: ["c1", "c2", "x1"].map(str::to_owned).into(),
        healthy: all,
    }
}

/// A cluster in which a member is down.
fn hurt(members: usize) -> View {
    let mut view = whole(members);
    view.running.pop();
    view.healthy.pop();
    view
}

fn views() -> Vec<View> {
    let headless = View { leader: None, ..whole(3) };
    vec![whole(3), whole(5), whole(4), hurt(3), hurt(5), headless, View::default()]
}

fn nemesis(name: &str) -> Box<dyn Nemesis> {
    all().into_iter().find(|nemesis| nemesis.name() == name).expect("a nemesis")
}

fn faults(name: &str, view: &View) -> Vec<Fault> {
    let nemesis = nemesis(name);
    (0..SEEDS).filter_map(|seed| nemesis.next(&mut Random::new(seed), view)).collect()
}

fn has_duplicates<T: Ord>(some: &[T]) -> bool {
    some.iter().collect::<BTreeSet<_>>().len() != some.len()
}

fn assert_legal(fault: &Fault, view: &View) {
    assert!(fault.lasts_ms <= 5_000, "{fault:?}");
    let is_whole = view.healthy == view.members && view.running == view.members && view.leader.is_some();
    assert!(is_whole || !fault.is_exclusive(), "{fault:?} in {view:?}");
    if let Some(members) = fault.kind.members() {
        assert!(!members.is_empty() && !has_duplicates(members), "{fault:?}");
        assert!(members.iter().all(|member| view.running.contains(member)), "{fault:?} in {view:?}");
    }
    match &fault.kind {
        Kind::Wipe { members } | Kind::Corrupt { members, .. } => {
            assert!(members.len() <= view.minority(), "{fault:?}");
        }
        Kind::Membership { change: Change::Remove { member } } => {
            assert!(view.members.len() > 3 && view.members.contains(member), "{fault:?}");
        }
        Kind::Membership { change: Change::Add } => assert!(view.members.len() < 6, "{fault:?}"),
        Kind::Partition { links } => {
            assert!(!links.is_empty() && !has_duplicates(links), "{fault:?}");
            let known = |name: &String| view.members.contains(name) || view.hosts.contains(name);
            assert!(links.iter().all(|link| link.from != link.to && known(&link.from) && known(&link.to)));
        }
        Kind::Packets {
            delay_ms, loss_percent, duplicate_percent, reorder_percent, corrupt_percent, ..
        } => {
            let shares = [loss_percent, duplicate_percent, reorder_percent, corrupt_percent];
            assert!(*delay_ms > 0 || shares.into_iter().any(|share| *share > 0), "{fault:?}");
        }
        Kind::Clock { shift_ms, drift_ppm, .. } => assert!(*shift_ms != 0 || *drift_ppm != 0, "{fault:?}"),
        Kind::TransferLeader { to } => assert!(Some(to) != view.leader.as_ref(), "{fault:?}"),
        _ => {}
    }
}

#[test]
fn each_nemesis_yields_only_legal_faults_and_the_same_ones_for_a_seed() {
    for nemesis in all() {
        for view in views() {
            for seed in 0..SEEDS / 5 {
                let fault = nemesis.next(&mut Random::new(seed), &view);
                assert_eq!(fault, nemesis.next(&mut Random::new(seed), &view));
                if let Some(fault) = &fault {
                    assert_eq!(fault.nemesis, nemesis.name());
                    assert_legal(fault, &view);
                }
            }
        }
    }
}

#[test]
fn each_nemesis_acts_on_a_whole_cluster() {
    for nemesis in all() {
        let acts = (0..50).all(|seed| nemesis.next(&mut Random::new(seed), &whole(3)).is_some());
        assert!(acts, "{}", nemesis.name());
    }
    assert!(has_duplicates(&["a", "a"]) && all().len() >= 18);
    assert!(!has_duplicates(&all().iter().map(|nemesis| nemesis.name()).collect::<Vec<_>>()));
}

#[test]
fn faults_reach_one_a_minority_a_majority_the_leader_and_all() {
    let view = whole(5);
    for name in
        ["kill", "pause", "power", "full-disk", "failing-disk", "slow-disk", "stalled-disk", "clock", "cpu"]
    {
        let mut counts = BTreeSet::new();
        let mut leader_alone = 0;
        let faults = faults(name, &view);
        for fault in &faults {
            let members = fault.kind.members().expect("members");
            counts.insert(members.len());
            leader_alone += usize::from(members == ["n2"]);
        }
        assert_eq!(counts, BTreeSet::from([1, 2, 3, 5]), "{name}");
        // By chance alone it would be 2 of 25.
        assert!(leader_alone * 100 > faults.len() * 20, "{name}");
    }
}

/// Reachable members of each member, itself included.
fn reach(fault: &Fault, view: &View) -> Vec<BTreeSet<String>> {
    let Kind::Partition { links } = &fault.kind else { panic!("{fault:?}") };
    let is_cut = |from: &String, to: &String| links.contains(&Link { from: from.clone(), to: to.clone() });
    let reached = |from: &String| view.members.iter().filter(|to| !is_cut(from, to)).cloned().collect();
    view.members.iter().map(reached).collect()
}

#[test]
fn partitions_reach_each_form() {
    let view = whole(5);
    let mut seen = BTreeSet::new();
    for fault in faults("partition", &view) {
        let reach = reach(&fault, &view);
        let mut sizes: Vec<usize> = reach.iter().map(BTreeSet::len).collect();
        sizes.sort_unstable();
        let Kind::Partition { links } = &fault.kind else { panic!("{fault:?}") };
        let is_mutual =
            links.iter().all(|link| links.contains(&Link { from: link.to.clone(), to: link.from.clone() }));
        seen.insert(match (is_mutual, sizes.as_slice()) {
            (false, _) => "one-way",
            (true, [1, 1, 1, 1, 1]) => "shattered",
            (true, [1, 4, 4, 4, 4]) => "single",
            (true, [2, 2, 3, 3, 3]) => "halves",
            (true, [3, 3, 3, 3, 5]) => "bridge",
            (true, [3, 3, 3, 3, 3]) => "ring",
            other => panic!("{other:?} {fault:?}"),
        });
    }
    assert_eq!(seen, BTreeSet::from(["one-way", "shattered", "single", "halves", "bridge", "ring"]));
}

#[test]
fn a_leader_is_often_cut_off_with_a_minority() {
    let view = whole(5);
    let at_leader = |fault: &&Fault| reach(fault, &view).get(1).is_some_and(|some| some.len() == 2);
    let faults = faults("partition", &view);
    let hit = faults.iter().filter(at_leader).count();
    // One of seven forms, and two of five by chance in another one.
    assert!(hit * 100 > faults.len() * 15, "{hit}");
}

#[test]
fn destructive_faults_never_overlap() {
    let one = |name: &str| nemesis(name).next(&mut Random::new(1), &whole(3)).expect("a fault");
    for name in ["wipe", "corruption", "restore", "membership", "upgrade", "transfer"] {
        for other in ["kill", "wipe", "partition", "clock"] {
            assert!(!one(name).may_overlap(&one(other)), "{name} {other}");
            assert!(!one(other).may_overlap(&one(name)), "{name} {other}");
        }
    }
    assert!(one("kill").may_overlap(&one("partition")));
    assert!(!one("kill").may_overlap(&one("rolling-kill")));
    assert!(!one("full-disk").may_overlap(&one("stalled-disk")));
    assert!(one("agents").may_overlap(&one("power")));
}

#[test]
fn blind_probes_and_wrong_clocks_last_long_enough_to_take_hold() {
    for fault in faults("probes", &whole(3)) {
        let is_blind = matches!(fault.kind, Kind::BlindProbes { .. });
        assert!(!is_blind || fault.lasts_ms > PROBE_INTERVAL_MS, "{fault:?}");
    }
    for fault in faults("clock", &whole(3)) {
        let Kind::Clock { shift_ms, drift_ppm, .. } = fault.kind else { panic!("{fault:?}") };
        let drift_ms = i64::try_from(fault.lasts_ms).unwrap() * drift_ppm / 1_000_000;
        assert_ne!(shift_ms + drift_ms, 0, "{} ms", fault.lasts_ms);
    }
}

#[test]
fn a_foreign_station_begins_alone() {
    let probes = faults("probes", &whole(3));
    let is_station = |fault: &Fault| matches!(fault.kind, Kind::ForeignStation { .. });
    let kill = nemesis("kill").next(&mut Random::new(1), &whole(3)).expect("a fault");
    for fault in &probes {
        assert_eq!(fault.may_overlap(&kill), !is_station(fault), "{fault:?}");
        assert!(kill.may_overlap(fault), "{fault:?}");
    }
    assert!(probes.iter().any(is_station) && !probes.iter().all(is_station));
}

#[test]
fn packets_power_membership_and_corruption_have_all_kinds() {
    let kinds = |name: &str| {
        let shown = faults(name, &whole(4)).into_iter().map(|fault| match fault.kind {
            Kind::Power { cut, moment, .. } => format!("{cut:?} {moment:?}"),
            Kind::Corrupt { corruption, .. } => format!("{corruption:?}"),
            Kind::Membership { change: Change::Remove { .. } } => "remove".to_owned(),
            Kind::Membership { change: Change::Replace { .. } } => "replace".to_owned(),
            Kind::Membership { change: Change::Add } => "add".to_owned(),
            Kind::Restart { .. } => "restart".to_owned(),
            Kind::Upgrade { .. } => "upgrade".to_owned(),
            Kind::Costly { cost, .. } => format!("{cost:?}"),
            Kind::BlindProbes { .. } => "blind".to_owned(),
            Kind::ForeignStation { .. } => "foreign".to_owned(),
            other => panic!("{other:?}"),
        });
        shown.collect::<BTreeSet<_>>().len()
    };
    let counts = ["power", "corruption", "membership", "upgrade", "costly", "probes"].map(kinds);
    assert_eq!(counts, [9, 3, 3, 2, 4, 2]);
}
