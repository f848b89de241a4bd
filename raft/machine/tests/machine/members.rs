//! Membership rules of the machine: unique ids, single-use join tokens, and reachable voters.

use ipam_api::Code;
use ipam_api::access::Role;
use ipam_machine::command::{
    ChangeMembers, CreateToken, Credential, Grant, JoinMember, KnownMember, Purpose, Text, secret_hash,
};
use ipam_machine::model::MemberStanding;
use ipam_machine::{Action, Answer, At, Command, EventKind, Refusal, State, Terms, apply, fixtures};

fn founders() -> Vec<KnownMember> {
    let founder = |id: u64| KnownMember {
        id,
        name: format!("n{id}").parse().unwrap(),
        disk_id: Text::given(format!("disk-{id}")),
        peer_address: Text::given(format!("n{id}:7441")),
        client_url: Text::given(format!("http://n{id}:7440")),
        votes: true,
    };
    (1..=3).map(founder).collect()
}

fn join(name: &str, disk_id: &str) -> Action {
    Action::JoinMember(JoinMember {
        name: name.parse().unwrap(),
        disk_id: Text::given(disk_id),
        peer_address: Text::given(format!("{name}:7441")),
        client_url: Text::given(format!("http://{name}:7440")),
        known: founders(),
    })
}

fn change(promote: &[u64], remove: &[u64], voters: &[u64]) -> Action {
    let (promote, remove, voters) = (promote.to_vec(), remove.to_vec(), voters.to_vec());
    Action::ChangeMembers(ChangeMembers { promote, remove, voters, known: founders() })
}

fn run(state: &mut State, terms: &Terms, action: Action) -> (Result<Answer, Refusal>, Vec<EventKind>) {
    let command = Command { terms: terms.clone(), ..fixtures::command(action) };
    let (outcome, events) = apply(state, At::default(), &command);
    (outcome.map(|applied| applied.answer), events.into_iter().map(|event| event.kind).collect())
}

fn admin() -> Terms {
    Terms::of(Grant::of(Role::Admin))
}

fn ids(answer: Result<Answer, Refusal>) -> Vec<u64> {
    match answer {
        Ok(Answer::Members { ids }) => ids,
        other => panic!("{other:?}"),
    }
}

fn code(answer: Result<Answer, Refusal>) -> Code {
    answer.unwrap_err().code()
}

/// Makes a token and says how it is used.
fn token(state: &mut State, name: &str) -> Terms {
    let request = CreateToken {
        name: name.parse().unwrap(),
        purpose: Purpose::JoinMember,
        grant: Grant::of(Role::Node),
        ttl_ms: Some(60_000),
        description: Text::given(""),
        secret_hash: secret_hash(name),
        replaces: false,
    };
    run(state, &admin(), Action::CreateToken(request)).0.unwrap();
    let (id, _) = state.token_by_secret(&secret_hash(name)).unwrap();
    Terms { credential: Credential::Token { id }, ..admin() }
}

#[test]
fn a_new_member_is_a_learner_with_the_next_id_and_the_founders_are_written_down() {
    let mut state = State::new();
    let (answer, events) = run(&mut state, &admin(), join("n4", "disk-4"));
    assert_eq!(ids(answer), [4]);
    assert_eq!(events.iter().map(EventKind::name).collect::<Vec<_>>(), ["member.joined"]);
    assert_eq!(state.members.get(4).unwrap().standing, MemberStanding::Learner);
    assert_eq!(state.voters(), [1, 2, 3]);
    // The same data directory again is the same member, and nothing new has happened.
    let (answer, events) = run(&mut state, &admin(), join("n4", "disk-4"));
    assert_eq!((ids(answer), events), (vec![4], vec![]));
    assert_eq!(code(run(&mut state, &admin(), join("n5", "disk-4")).0), Code::AlreadyExists);
    assert_eq!(ids(run(&mut state, &admin(), join("n5", "disk-5")).0), [5]);
}

#[test]
fn no_member_reuses_an_old_id_or_a_used_name() {
    let mut state = State::new();
    // A founder that is in no row yet is known all the same.
    assert_eq!(code(run(&mut state, &admin(), join("n4", "disk-3")).0), Code::AlreadyExists);
    let refusal = run(&mut state, &admin(), join("n3", "wiped")).0.unwrap_err();
    assert_eq!(refusal.code(), Code::AlreadyExists);
    assert!(refusal.help().unwrap().contains("ipamctl cluster remove n3"));
    assert_eq!(ids(run(&mut state, &admin(), change(&[], &[3], &[1, 2, 3])).0), [3]);
    assert_eq!(code(run(&mut state, &admin(), join("n3", "disk-3")).0), Code::AlreadyExists);
    assert_eq!(ids(run(&mut state, &admin(), join("n3", "wiped")).0), [4], "3 never comes back");
    assert_eq!(code(run(&mut state, &admin(), change(&[3], &[], &[1, 2])).0), Code::NotFound);
    // Not even when the newest one goes.
    assert_eq!(ids(run(&mut state, &admin(), change(&[], &[4], &[1, 2])).0), [4]);
    assert_eq!(ids(run(&mut state, &admin(), join("n4", "disk-4")).0), [5]);
}

#[test]
fn a_change_is_all_or_nothing_and_on_the_voters_that_were_seen() {
    let mut state = State::new();
    run(&mut state, &admin(), join("n4", "disk-4")).0.unwrap();
    let before = state.digest();
    assert_eq!(code(run(&mut state, &admin(), change(&[4], &[], &[1, 2])).0), Code::RevisionMismatch);
    assert_eq!(code(run(&mut state, &admin(), change(&[9], &[3], &[1, 2, 3])).0), Code::NotFound);
    assert_eq!(code(run(&mut state, &admin(), change(&[], &[1, 2, 3], &[1, 2, 3])).0), Code::QuorumAtRisk);
    assert_eq!(state.digest(), before, "what is refused changes nothing");
    let (answer, events) = run(&mut state, &admin(), change(&[4], &[3], &[1, 2, 3]));
    assert_eq!(ids(answer), [4, 3]);
    assert_eq!(events.iter().map(EventKind::name).collect::<Vec<_>>(), ["member.promoted", "member.removed"]);
    assert_eq!(state.voters(), [1, 2, 4]);
    assert_eq!(state.member_named(&"n3".parse().unwrap()), None);
}

#[test]
fn joining_takes_a_token_of_its_own_kind_once() {
    let mut state = State::new();
    let first = token(&mut state, "first");
    assert_eq!(ids(run(&mut state, &first, join("n4", "disk-4")).0), [4]);
    assert_eq!(ids(run(&mut state, &first, join("n4", "disk-4")).0), [4], "the answer may have been lost");
    assert_eq!(code(run(&mut state, &first, join("n5", "disk-5")).0), Code::Unauthenticated);
    assert_eq!(code(run(&mut state, &first, change(&[4], &[], &[1, 2, 3])).0), Code::Forbidden);
    let operator = Terms::of(Grant::of(Role::Operator));
    assert_eq!(code(run(&mut state, &operator, join("n5", "disk-5")).0), Code::Forbidden);
    assert_eq!(code(run(&mut state, &operator, change(&[4], &[], &[1, 2, 3])).0), Code::Forbidden);
}

#[test]
fn a_state_that_another_cluster_goes_on_from_knows_no_members() {
    let mut state = State::new();
    let before = state.members.len();
    run(&mut state, &admin(), join("n4", "disk-4")).0.unwrap();
    assert_eq!(state.members.len(), before + 4);
    let again = State::from_rows(state.rows()).unwrap();
    assert_eq!(again.digest(), state.digest());
    state.reset_members();
    assert!(state.members.is_empty());
    assert_eq!(State::from_rows(state.rows()).unwrap().digest(), state.digest());
    assert_eq!(ids(run(&mut state, &admin(), join("n4", "disk-9")).0), [4]);
}

#[test]
fn places_that_no_member_has_enter_no_row() {
    let refused = |change: &dyn Fn(&mut JoinMember)| {
        let Action::JoinMember(mut request) = join("n4", "disk-4") else { panic!("no join") };
        change(&mut request);
        let mut state = State::new();
        let before = state.digest();
        let refusal = run(&mut state, &admin(), Action::JoinMember(request)).0.map(|_| ()).err();
        assert!(refusal.is_none() || state.digest() == before);
        refusal.map(|refusal| refusal.code())
    };
    assert_eq!(refused(&|_| {}), None);
    let long = "x".repeat(100_000);
    for address in ["n4", "n4\n:1", "n4\u{202e}:1", "\u{1b}[2Jn4:1", "unix:n4", "http://n4:1", &long] {
        let wrong = |request: &mut JoinMember| request.peer_address = Text::given(address);
        assert_eq!(refused(&wrong), Some(Code::InvalidField), "{address:?}");
        let wrong = |request: &mut JoinMember| request.known[0].peer_address = Text::given(address);
        assert_eq!(refused(&wrong), Some(Code::InvalidField), "known: {address:?}");
    }
    for url in [
        "",
        "n4",
        "javascript:x",
        "ftp://n4",
        "http://n4/\u{202e}",
        "http://n4\u{1b}[2J",
        "http://a@n4",
        &long,
    ] {
        let wrong = |request: &mut JoinMember| request.client_url = Text::given(url);
        assert_eq!(refused(&wrong), Some(Code::InvalidField), "{url:?}");
        let wrong = |request: &mut JoinMember| request.known[0].client_url = Text::given(url);
        assert_eq!(refused(&wrong), Some(Code::InvalidField), "known: {url:?}");
    }
    // A new member is somewhere; one that was alone until now may not be.
    assert_eq!(refused(&|request| request.peer_address = Text::given("")), Some(Code::InvalidField));
    assert_eq!(refused(&|request| request.known[0].peer_address = Text::given("")), None);
    assert_eq!(refused(&|request| request.peer_address = Text::given("unix:/run/n4")), None);
}
