//! Helpers that the tests of the store share.

use ipam_machine::command::Text;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use futures::stream;
use ipam_api::name::Name;
use openraft::storage::{IOFlushed, RaftLogStorage as _, RaftStateMachine as _};
use openraft::type_config::TypeConfigExt as _;
use openraft::{EntryPayload, Membership, RaftLogReader as _, StorageHelper};
use tokio::sync::oneshot;

use crate::simulation::Simulation;
use crate::store::rows::Wakeup;
use crate::store::{LogStore, Store, open};
use crate::types::{Entry, LogId, Member, Types, Vote};
use ipam_machine::batch::{Batch, Leadership, Opened};
use ipam_machine::command::{Action, Command, Delete, Expect, Kind, Metadata, NetworkSpec};
use ipam_machine::fixtures;

type LeaderId = openraft::type_config::alias::LeaderIdOf<Types>;

/// A simulation without a network.
pub(crate) const NOWHERE: Simulation = Simulation {
    seed: 1,
    connect: |_| Box::pin(async { Err(std::io::ErrorKind::ConnectionRefused.into()) }),
    boot_id: |_| "boot".to_owned(),
};

pub(in crate::store) fn log_id(term: u64, index: u64) -> LogId {
    LogId { leader_id: LeaderId { term, node_id: 1 }, index }
}

pub(in crate::store) fn vote(term: u64, committed: bool) -> Vote {
    Vote { leader_id: LeaderId { term, node_id: 1 }, committed }
}

/// A command that changes the state differently for each number: rows are created, changed and deleted.
pub(in crate::store) fn command(number: u64) -> Command {
    let name = |number: u64| Name::new(&format!("network-{}", number % 40)).unwrap();
    let action = if number % 7 == 6 {
        let (kind, expect) = (Kind::Network, Expect::Anything);
        Action::Delete(Delete { kind, name: (&name(number - 3)).into(), expect, drain: false })
    } else {
        let metadata =
            Metadata { description: Text::given(format!("sample {number}")), ..Metadata::default() };
        let spec = NetworkSpec { metadata, ..fixtures::network(name(number).as_str()) };
        Action::PutNetwork(fixtures::put(spec))
    };
    let mut command = fixtures::command(action);
    command.origin.request_id = Text::given(format!("r{number}"));
    command
}

pub(in crate::store) fn entry(term: u64, index: u64) -> Entry {
    let opened = Opened {
        leadership: Leadership::Number(0),
        log_time_ms: 1_000 + index,
        wall_ms: 2_000 + index,
        commands: vec![command(index)],
    };
    let payload = EntryPayload::Normal(Batch::seal(&opened).unwrap());
    Entry { log_id: log_id(term, index), payload }
}

/// An entry that creates a network of this name.
pub(in crate::store) fn network(index: u64, name: &str) -> Entry {
    let mut command = command(0);
    let Action::PutNetwork(put) = &mut command.action else { panic!("another command") };
    put.spec.name = Name::new(name).unwrap();
    let leadership = Leadership::Number(0);
    let opened = Opened { leadership, log_time_ms: 2_000, wall_ms: 3_000, commands: vec![command] };
    Entry { log_id: log_id(1, index), payload: EntryPayload::Normal(Batch::seal(&opened).unwrap()) }
}

/// Entry with the members.
pub(in crate::store) fn membership(term: u64, index: u64) -> Entry {
    let member = Member {
        name: "a".to_owned(),
        disk_id: "disk".to_owned(),
        peer_address: "10.0.0.1:7441".to_owned(),
        client_url: "http://10.0.0.1:7440".to_owned(),
    };
    let members = BTreeMap::from([(1, member.clone()), (2, Member { name: "b".to_owned(), ..member })]);
    let membership = Membership::new(vec![BTreeSet::from([1])], members).unwrap();
    Entry { log_id: log_id(term, index), payload: EntryPayload::Membership(membership) }
}

/// An entry of about this many bytes.
pub(in crate::store) fn large_entry(term: u64, index: u64, bytes: usize) -> Entry {
    entry_with(term, index, &"x".repeat(bytes))
}

/// An entry with this text.
pub(in crate::store) fn entry_with(term: u64, index: u64, text: &str) -> Entry {
    let mut command = command(index);
    command.origin.request_id = Text::given(text);
    let opened =
        Opened { leadership: Leadership::Number(0), log_time_ms: 1, wall_ms: 2, commands: vec![command] };
    Entry { log_id: log_id(term, index), payload: EntryPayload::Normal(Batch::seal(&opened).unwrap()) }
}

pub(in crate::store) fn entries(term: u64, range: std::ops::Range<u64>) -> Vec<Entry> {
    range.map(|index| entry(term, index)).collect()
}

/// Submits entries to the log; the receiver is notified when they are on disk.
pub(in crate::store) async fn submit(
    log: &mut LogStore,
    entries: Vec<Entry>,
) -> std::io::Result<impl Future<Output = std::io::Result<()>> + use<>> {
    let (done, wait) = Types::oneshot();
    log.append(entries, IOFlushed::signal(done)).await?;
    Ok(async { wait.await.expect("a callback was dropped") })
}

pub(in crate::store) async fn append(log: &mut LogStore, entries: Vec<Entry>) {
    submit(log, entries).await.unwrap().await.unwrap();
}

pub(in crate::store) async fn apply(store: &mut Store, entries: Vec<Entry>) {
    let items = entries.into_iter().map(|entry| Ok((entry, None)));
    store.machine.apply(stream::iter(items)).await.unwrap();
}

/// Appends, commits and applies, as openraft would. The commit is written, as the next
/// entries would do.
pub(in crate::store) async fn run(store: &mut Store, entries: Vec<Entry>) {
    append(&mut store.log, entries.clone()).await;
    store.log.save_committed(entries.last().map(|entry| entry.log_id)).await.unwrap();
    store.log.write_commit().await.unwrap();
    apply(store, entries).await;
}

pub(in crate::store) async fn read_all(log: &mut LogStore) -> Vec<Entry> {
    log.try_get_log_entries(..).await.unwrap()
}

/// Waits until rows and marker have reached the state.
pub(in crate::store) async fn write_behind(store: &Store) {
    let (done, wait) = oneshot::channel();
    store.closer.notifier.send(Wakeup::Flush(done));
    wait.await.unwrap();
}

/// Opens a directory and replays what openraft would replay.
pub(in crate::store) async fn start(dir: &Path) -> Store {
    let mut store = open(dir).await.unwrap();
    StorageHelper::new(&mut store.log, &mut store.machine).with_id(1).get_initial_state().await.unwrap();
    store
}

pub(in crate::store) async fn stop(store: Store) {
    let Store { closer, .. } = store;
    closer.close().await.unwrap();
}

/// Abandons everything, like a killed process.
pub(in crate::store) async fn kill(store: Store) {
    let Store { log, machine, shared, journal, failed, closer, .. } = store;
    drop((log, machine, shared, journal, failed));
    for thread in closer.abandon() {
        thread.ended().await.unwrap();
    }
}
