//! Golden output from fixed answers.

use ipam_api::{Code, Problem};

use super::ask::{Observed, Report, reason};
use super::judge::{Diagnosis, Health};
use super::view;

fn report(name: &str, leader: Option<&str>, stale_ms: u64, term: u64) -> Report {
    let member = |id: u64| {
        let of = format!("n{id}");
        let role = if leader == Some(of.as_str()) { "leader" } else { "voter" };
        let mut member = serde_json::json!({"id": id, "name": of, "role": role,
            "client_url": format!("http://n{id}.ipam.example:7440"), "peer_address": format!("n{id}:7441"),
            "level": 3});
        if leader == Some(name) && role == "voter" {
            member["behind"] = (id - 1).into();
        }
        member
    };
    let body = serde_json::json!({
        "id": "7f3c-91aa", "epoch": 1, "level": 3, "answered_by": name, "leader": leader, "term": term,
        "revision": 48_211_907, "digest": "d1", "applied": 900, "stale_ms": stale_ms,
        "members": [member(1), member(2), member(3)], "pools": 31,
        "disk_free_bytes": 41_876_000_000_u64, "disk_room": "enough",
        "addresses": {"size": 23_028, "allocated": 18_402, "cooling": 213, "quarantined": 2, "reserved": 0,
                      "excluded": 1, "free": 4_410, "saturated": false}
    });
    Report {
        cluster: serde_json::from_value(body.clone()).unwrap(),
        version: Some("0.4.2".to_owned()),
        body: body.to_string().into_bytes(),
    }
}

fn up(id: u64, report: Report) -> Observed {
    Observed { server: format!("http://n{id}.ipam.example:7440"), answer: Ok(report), barred: None }
}

fn down(id: u64, why: &str) -> Observed {
    Observed { server: format!("http://n{id}.ipam.example:7440"), answer: Err(why.to_owned()), barred: None }
}

fn screen(observed: &[Observed], width: usize) -> String {
    view::render(&Diagnosis::of(observed, &[]).unwrap(), Some(width), |word, _| word.to_owned())
}

fn healthy() -> Vec<Observed> {
    (1..=3).map(|id| up(id, report(&format!("n{id}"), Some("n2"), 0, 17))).collect()
}

#[test]
fn all_is_well() {
    let expected = "\
cluster      7f3c-91aa   epoch 1   feature level 3
health       OK        3 of 3 members answer · leader n2 · can lose 1
state        revision 48211907   term 17

MEMBER  ROLE    ADDRESS               VERSION  LEVEL  REVISION  BEHIND  DISK FREE  STATE
n1      voter   n1.ipam.example:7440  0.4.2    3      48211907  0       39.0 GiB   ok
n2      leader  n2.ipam.example:7440  0.4.2    3      48211907  -       39.0 GiB   ok
n3      voter   n3.ipam.example:7440  0.4.2    3      48211907  2       39.0 GiB   ok

addresses    18402 allocated · 213 cooling · 2 quarantined · 4410 free   in 31 pools
";
    assert_eq!(screen(&healthy(), 120), expected);
    let narrower = expected.replace("DISK FREE  ", "").replace("39.0 GiB   ", "");
    assert_eq!(screen(&healthy(), 80), narrower);
}

#[test]
fn without_a_leader_one_member_is_enough() {
    let observed =
        [down(1, "connection refused"), down(2, "timed out"), up(3, report("n3", Some("n2"), 14_000, 18))];
    let diagnosis = Diagnosis::of(&observed, &[]).unwrap();
    assert_eq!(diagnosis.health, Health::NoLeader);
    assert!(!diagnosis.is_well());
    assert_eq!(
        screen(&observed, 120),
        "\
cluster      7f3c-91aa   epoch 1   feature level 3
health       NO LEADER for 14s   1 of 3 members answers (n3); 2 are needed
             Shown below: the state of n3 alone, as of revision 48211907, 14s ago.
             No changes are possible without a leader; reads work with --consistency stale.
state        revision 48211907   term 18

MEMBER  ROLE   ADDRESS               VERSION  LEVEL  REVISION  BEHIND  DISK FREE  STATE
n1      voter  n1.ipam.example:7440  -        3      -         -       -          no answer: connection refused
n2      voter  n2.ipam.example:7440  -        3      -         -       -          no answer: timed out
n3      voter  n3.ipam.example:7440  0.4.2    3      48211907  -       39.0 GiB   sees no leader for 14s, term 18

addresses    18402 allocated · 213 cooling · 2 quarantined · 4410 free   in 31 pools

needs attention (2)
  start ipamd on n1:   systemctl status ipamd   (on that machine)
  start ipamd on n2:   systemctl status ipamd   (on that machine)
"
    );
    let narrow = screen(&observed, 70);
    assert!(
        narrow.contains("n1      voter  n1.ipam.example:7440  no answer: connection refused"),
        "{narrow}"
    );
}

#[test]
fn one_member_down_is_not_well() {
    let mut observed = healthy();
    observed[0] = down(1, "connection refused");
    let diagnosis = Diagnosis::of(&observed, &[]).unwrap();
    assert_eq!(diagnosis.health, Health::Degraded);
    assert!(screen(&observed, 120).contains("DEGRADED  2 of 3 members answer · leader n2 · can lose 0"));
}

#[test]
fn a_full_disk_is_not_well() {
    let mut observed = healthy();
    if let Ok(report) = &mut observed[2].answer {
        (report.cluster.disk_free_bytes, report.cluster.disk_room) =
            (Some(5 << 20), Some("nothing".to_owned()));
    }
    assert_eq!(Diagnosis::of(&observed, &[]).unwrap().health, Health::Degraded);
    let text = screen(&observed, 120);
    assert!(text.contains(" 5.0 MiB "), "{text}");
    assert!(text.contains("  free disk space on n3:   df -h   (on that machine)\n"), "{text}");
}

#[test]
fn a_leader_that_was_cut_off_is_not_believed() {
    let observed = [
        up(1, report("n1", Some("n1"), 0, 16)),
        up(2, report("n2", Some("n2"), 0, 17)),
        up(3, report("n3", Some("n2"), 0, 17)),
    ];
    assert_eq!(Diagnosis::of(&observed, &[]).unwrap().best.cluster.answered_by, "n2");
}

#[test]
fn different_states_and_different_clusters_are_told() {
    let mut observed = healthy();
    if let Ok(report) = &mut observed[2].answer {
        report.cluster.digest = "d2".to_owned();
    }
    let diagnosis = Diagnosis::of(&observed, &[]).unwrap();
    assert_eq!(diagnosis.health, Health::Diverged);
    assert_eq!(diagnosis.diverged, [("n1", "n3"), ("n2", "n3")]);
    assert!(screen(&observed, 120).contains("STATES DIFFER"));

    let mut observed = healthy();
    if let Ok(report) = &mut observed[0].answer {
        report.cluster.id = "other".to_owned();
    }
    let diagnosis = Diagnosis::of(&observed, &[]).unwrap();
    assert_eq!(diagnosis.health, Health::Mixed);
    assert_eq!(diagnosis.others, [("http://n1.ipam.example:7440", "other")]);
}

#[test]
fn a_quarantined_member_is_reported() {
    let mut observed = healthy();
    if let Ok(report) = &mut observed[1].answer {
        report.cluster.members[2].quarantined = Some("its state is quarantined: it differs".to_owned());
    }
    let diagnosis = Diagnosis::of(&observed, &[]).unwrap();
    assert_eq!(diagnosis.health, Health::Degraded);
    let text = screen(&observed, 120);
    assert!(text.contains("2       39.0 GiB   quarantined, serves no requests\n"), "{text}");
    assert!(text.contains("  n3 serves no requests:   its state is quarantined: it differs\n"), "{text}");
}

#[test]
fn a_member_is_known_by_its_name_whatever_its_address() {
    let mut observed = healthy();
    observed[0].server = "http://127.0.0.1:17440".to_owned();
    observed.push(down(1, "timed out"));
    assert_eq!(Diagnosis::of(&observed, &[]).unwrap().health, Health::Ok);
}

#[test]
fn a_reason_is_cut_out_of_the_problem() {
    let problem = Problem::new(
        Code::Unreachable,
        "no server answered within 1.5 s; http://n1:7440: Connection refused (os error 111)",
    );
    assert_eq!(reason("http://n1:7440/", &problem), "Connection refused");
}

#[test]
fn without_answers_there_is_no_diagnosis() {
    assert!(Diagnosis::of(&[down(1, "timed out")], &[]).is_none());
}

#[test]
fn a_refused_client_gets_the_remedy() {
    let mut observed = healthy();
    observed[0] = down(1, "the certificate is for n9.ipam.example");
    observed[2] = down(3, "unauthenticated: the request has no credentials");
    let text = screen(&observed, 120);
    assert!(
        text.contains("  check the certificate of n1:   the certificate is for n9.ipam.example\n"),
        "{text}"
    );
    assert!(text.contains("  authenticate to n3:   --token-file or --cert-file\n"), "{text}");
}

#[test]
fn a_cluster_is_settled_once_all_members_follow_the_leader() {
    let mut observed = healthy();
    assert!(Diagnosis::of(&observed, &[]).unwrap().is_settled());
    observed[2] = up(3, report("n3", None, 14_000, 17));
    let diagnosis = Diagnosis::of(&observed, &[]).unwrap();
    assert!(diagnosis.is_well() && !diagnosis.is_settled());
}

#[test]
fn through_a_socket_a_member_that_answers_the_leader_is_well() {
    let mut observed = healthy();
    let Ok(mut members) = observed[1].answer.as_ref().map(|report| report.cluster.members.clone()) else {
        panic!()
    };
    for id in [1, 3] {
        observed[id - 1] = down(id as u64, "its certificate is of a CA that isn't trusted here");
        members[id - 1].answers = Some(true);
    }
    let diagnosis = Diagnosis::of(&observed, &members).unwrap();
    assert!(diagnosis.is_settled());
    let text = view::render(&diagnosis, Some(120), |word, _| word.to_owned());
    assert!(
        text.contains("OK        3 of 3 members answer") && text.contains("   answers the leader\n"),
        "{text}"
    );
    members[0].answers = Some(false);
    assert_eq!(Diagnosis::of(&observed, &members).unwrap().health, Health::Degraded);
}
