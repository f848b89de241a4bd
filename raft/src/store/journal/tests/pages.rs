//! History compared with the simplest journal, a list of all events that `apply` returned. Covers restarts,
//! kills, truncated and altered files, a foreign snapshot, and trimming.

use std::fs;
use std::path::{Path, PathBuf};

use ipam_api::access::Role;
use ipam_api::limits::JOURNAL_SEGMENT_AGE_MS_MAX;
use openraft::storage::RaftStateMachine as _;
use openraft::{EntryPayload, RaftSnapshotBuilder as _};

use crate::store::journal::{EventFilter, EventQuery, JournalError};
use crate::store::snapshot::SnapshotFile;
use crate::store::tests::sample::{append, apply, kill, log_id, run, start, stop, write_behind};
use crate::store::{Store, open};
use crate::types::Entry;
use ipam_machine::batch::{Batch, Leadership, Opened};
use ipam_machine::command::{Allocate, Metadata, PoolSpec, Text};
use ipam_machine::{Action, At, Command, Event, EventId, Grant, State, Terms, fixtures};

/// Plain model: allocations and releases, in segments of a day each, and the list of all events.
pub(in crate::store) struct Naive {
    pub(in crate::store) state: State,
    pub(in crate::store) events: Vec<Event>,
    index: u64,
    log_time_ms: u64,
}

impl Naive {
    pub(in crate::store) fn new() -> Self {
        Self { state: State::new(), events: Vec::new(), index: 0, log_time_ms: 1 }
    }

    fn endpoint(number: u64) -> String {
        format!("host/default/default/h{}", number % 30)
    }

    fn action(&self) -> Action {
        match self.index {
            0 => Action::PutSubnet(fixtures::put(fixtures::subnet("lan", "10.0.0.0/24"))),
            number if number == 1 || number % 17 == 0 => {
                let metadata =
                    Metadata { description: Text::given(format!("change {number}")), ..Metadata::default() };
                Action::PutPool(fixtures::put(PoolSpec {
                    cooling_ms: 1000 * (number % 3),
                    default: true,
                    metadata,
                    ..fixtures::pool("web", "lan")
                }))
            }
            number if number % 3 == 2 => {
                Action::ReleaseEndpoint { key: Self::endpoint(number / 2).parse().unwrap() }
            }
            number => Action::Allocate(Allocate {
                node: Some("node-1".parse().unwrap()),
                ..fixtures::allocate_for(&Self::endpoint(number), vec![fixtures::interface("eth0")])
            }),
        }
    }

    fn entry(&mut self, action: Action) -> Entry {
        let index = self.index;
        // A day passes now and then, and a segment with it.
        self.log_time_ms += if index % 40 == 39 { JOURNAL_SEGMENT_AGE_MS_MAX } else { 10 };
        let origin = fixtures::origin(&format!("somebody-{}", index % 5));
        let terms = Terms::of(Grant::of(Role::Admin));
        let command = Command { origin, terms, action };
        let at = At { log_time_ms: self.log_time_ms, wall_ms: 1_000 + index, leadership: 0 };
        self.events.extend(ipam_machine::apply(&mut self.state, at, &command).1);
        self.index += 1;
        let opened = Opened {
            leadership: Leadership::Number(0),
            log_time_ms: at.log_time_ms,
            wall_ms: at.wall_ms,
            commands: vec![command.clone()],
        };
        let payload = EntryPayload::Normal(Batch::seal(&opened).unwrap());
        Entry { log_id: log_id(1, index), payload }
    }

    pub(in crate::store) fn entries(&mut self, count: u64) -> Vec<Entry> {
        (0..count).map(|_| self.entry(self.action())).collect()
    }

    /// Trims the oldest segment.
    fn trim(&mut self) -> Entry {
        let through = self.state.oldest_segment();
        let entry = self.entry(Action::TrimJournal { through });
        let trimmed = self.state.header().journal.trimmed;
        self.events.retain(|event| event.id() > trimmed);
        entry
    }

    /// Checks that all queries return what the list contains.
    fn agree(&self, store: &Store) {
        assert_eq!(store.shared.with(State::digest), self.state.digest());
        let all = |event: &Event| self.events.contains(event);
        for limit in [1, 7, 1000] {
            for reverse in [false, true] {
                let mut found = pages(store, limit, reverse, &EventFilter::default()).unwrap();
                if reverse {
                    found.reverse();
                }
                assert_eq!(found.len(), self.events.len(), "limit {limit} reverse {reverse}");
                assert!(found.iter().all(all));
                assert_eq!(found, self.events);
                if limit == 1 {
                    break;
                }
            }
        }
        let filters = [
            EventFilter { address: Some("10.0.0.7".parse().unwrap()), ..EventFilter::default() },
            EventFilter { endpoint: Some(Self::endpoint(4).parse().unwrap()), ..EventFilter::default() },
            EventFilter { pool: Some("web".parse().unwrap()), ..EventFilter::default() },
            EventFilter { principal: Some("somebody-3".to_owned()), ..EventFilter::default() },
            EventFilter { kinds: vec!["pool".to_owned()], since_ms: Some(1_050), ..EventFilter::default() },
            EventFilter { since_ms: Some(1_100), until_ms: Some(1_120), ..EventFilter::default() },
            EventFilter { network: Some("blue".parse().unwrap()), ..EventFilter::default() },
        ];
        for filter in filters {
            for reverse in [false, true] {
                let mut wanted: Vec<Event> =
                    self.events.iter().filter(|event| filter.wants(event)).cloned().collect();
                if reverse {
                    wanted.reverse();
                }
                assert_eq!(pages(store, 5, reverse, &filter).unwrap(), wanted, "{filter:?}");
            }
        }
        // Pages from every position.
        for (number, event) in self.events.iter().enumerate().step_by(23) {
            let query = EventQuery { after: Some(event.id()), limit: 3, ..EventQuery::default() };
            let page = store.journal.page(&query).unwrap();
            let rest = &self.events[number + 1..];
            assert_eq!(page.events, rest[..rest.len().min(3)]);
            assert_eq!(page.next.is_some(), rest.len() > 3);
        }
    }
}

pub(in crate::store) fn pages(
    store: &Store,
    limit: usize,
    reverse: bool,
    filter: &EventFilter,
) -> Result<Vec<Event>, JournalError> {
    let mut found = Vec::new();
    let mut query = EventQuery { after: None, reverse, limit, filter: filter.clone() };
    loop {
        let page = store.journal.page(&query)?;
        found.extend(page.events);
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(found),
        }
    }
}

pub(super) fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(dir.join("journal"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort_unstable();
    files
}

pub(super) fn segments(dir: &Path) -> Vec<(String, Vec<u8>)> {
    files(dir).into_iter().filter(|(name, _)| name.starts_with("segment-")).collect()
}

pub(super) fn open_file(dir: &Path) -> PathBuf {
    let name = files(dir).into_iter().map(|(name, _)| name).find(|name| name.starts_with("open-")).unwrap();
    dir.join("journal").join(name)
}

async fn snapshot(store: &mut Store) {
    store.machine.get_snapshot_builder().await.build_snapshot().await.unwrap();
}

#[tokio::test]
async fn history_is_what_happened_through_stops_and_kills() {
    let (dir, twin) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut naive, mut straight) = (Naive::new(), open(twin.path()).await.unwrap());
    let mut store = open(dir.path()).await.unwrap();
    for round in 0..8 {
        let entries = naive.entries(47);
        run(&mut store, entries.clone()).await;
        run(&mut straight, entries).await;
        if round >= 5 {
            let entry = naive.trim();
            run(&mut store, vec![entry.clone()]).await;
            run(&mut straight, vec![entry]).await;
        }
        naive.agree(&store);
        match round {
            0 => stop(store).await,
            // The files contain none of the last entries, or all of them.
            1 | 5 => kill(store).await,
            _ => {
                write_behind(&store).await;
                if round == 3 {
                    snapshot(&mut store).await;
                }
                kill(store).await;
            }
        }
        store = start(dir.path()).await;
        naive.agree(&store);
    }
    write_behind(&store).await;
    write_behind(&straight).await;
    assert!(segments(dir.path()).len() > 3);
    assert_eq!(segments(dir.path()), segments(twin.path()), "byte by byte, whatever a member went through");
    let query = EventQuery { after: Some(EventId::end_of(5)), limit: 1, ..EventQuery::default() };
    assert!(
        matches!(store.journal.page(&query), Err(JournalError::Compacted { oldest }) if oldest == naive.events[0].id())
    );
    stop(store).await;
    stop(straight).await;
}

#[tokio::test]
async fn a_tail_cut_or_altered_anywhere_comes_back_from_snapshot_and_log() {
    let dir = tempfile::tempdir().unwrap();
    let mut naive = Naive::new();
    let mut store = open(dir.path()).await.unwrap();
    run(&mut store, naive.entries(60)).await;
    snapshot(&mut store).await;
    run(&mut store, naive.entries(15)).await;
    write_behind(&store).await;
    kill(store).await;
    let path = open_file(dir.path());
    let content = fs::read(&path).unwrap();
    for offset in (0..content.len()).step_by(content.len() / 9) {
        fs::write(&path, &content[..offset]).unwrap();
        let store = start(dir.path()).await;
        naive.agree(&store);
        write_behind(&store).await;
        kill(store).await;
        let mut altered = fs::read(&path).unwrap();
        assert!(altered.len() + 100 > content.len(), "written anew, in fewer pieces");
        let at = offset % altered.len();
        altered[at] ^= 0x10;
        fs::write(&path, altered).unwrap();
        let store = start(dir.path()).await;
        naive.agree(&store);
        stop(store).await;
    }
    fs::remove_file(&path).unwrap();
    let store = start(dir.path()).await;
    naive.agree(&store);
    stop(store).await;
}

#[tokio::test]
async fn a_segment_altered_on_disk_is_damage_and_is_replaced() {
    let (dir, twin) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut naive = Naive::new();
    let mut store = open(dir.path()).await.unwrap();
    let mut healthy = open(twin.path()).await.unwrap();
    let entries = naive.entries(130);
    run(&mut store, entries.clone()).await;
    run(&mut healthy, entries).await;
    write_behind(&store).await;
    write_behind(&healthy).await;
    let (name, content) = segments(dir.path())[0].clone();
    let path = dir.path().join("journal").join(&name);
    let mut altered = content.clone();
    altered[content.len() / 3] ^= 4;
    fs::write(&path, &altered).unwrap();
    let error = pages(&store, 100, false, &EventFilter::default()).unwrap_err();
    assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
    let error = pages(&store, 100, false, &EventFilter::default()).unwrap_err();
    assert!(matches!(error, JournalError::Missing { .. }), "{error}");
    let [(number, segment)] = store.journal.missing().try_into().unwrap();
    let aside = files(dir.path()).into_iter().find(|(name, _)| name.ends_with(".damaged")).unwrap();
    assert_eq!(aside.1, altered, "the damaged file stays for diagnosis");

    // Pieces from another member, of which the first is damaged.
    let files = store.journal.files();
    assert_eq!(files.come(number), 0);
    files.add_piece(number, &altered).unwrap();
    assert!(files.accept(number, &segment).is_err());
    assert_eq!(files.come(number), 0, "what isn't whole is gone");
    loop {
        let (piece, length) = healthy.journal.files().read_piece(number, files.come(number), 1000).unwrap();
        files.add_piece(number, &piece).unwrap();
        if files.come(number) == length {
            break;
        }
    }
    files.accept(number, &segment).unwrap();
    assert!(store.journal.missing().is_empty());
    naive.agree(&store);
    // A segment removed by an operator is missing, too.
    fs::remove_file(&path).unwrap();
    assert!(pages(&store, 100, false, &EventFilter::default()).is_err());
    assert_eq!(store.journal.missing().len(), 1);
    stop(store).await;
    stop(healthy).await;
}

#[tokio::test]
async fn a_member_restored_by_snapshot_lists_its_missing_sealed_segments() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut naive = Naive::new();
    let mut sender = open(from.path()).await.unwrap();
    run(&mut sender, naive.entries(130)).await;
    snapshot(&mut sender).await;
    let current = sender.machine.get_current_snapshot().await.unwrap().unwrap();
    let (meta, mut snapshot) = (current.meta, current.snapshot);
    let mut receiver = open(to.path()).await.unwrap();
    let mut incoming = SnapshotFile::incoming(to.path()).await.unwrap();
    loop {
        let piece = snapshot.read_piece(10_000).await.unwrap();
        if piece.is_empty() {
            break;
        }
        incoming.write_piece(piece).await.unwrap();
    }
    let received = incoming.seal_and_verify().await.unwrap();
    receiver.machine.install_snapshot(&meta, received).await.unwrap();
    let missing = receiver.journal.missing();
    assert_eq!(missing.len(), naive.state.segments.len());
    let error = pages(&receiver, 10, false, &EventFilter::default()).unwrap_err();
    assert!(matches!(error, JournalError::Missing { .. }), "{error}");
    // New events are visible at once.
    let newest = EventQuery { reverse: true, limit: 3, ..EventQuery::default() };
    let page = receiver.journal.page(&newest).unwrap();
    assert_eq!(page.events[0], *naive.events.last().unwrap());

    for (number, segment) in missing {
        let (whole, _) = sender.journal.files().read_piece(number, 0, usize::MAX).unwrap();
        receiver.journal.files().add_piece(number, &whole).unwrap();
        receiver.journal.files().accept(number, &segment).unwrap();
    }
    naive.agree(&receiver);
    write_behind(&receiver).await;
    kill(receiver).await;
    let mut receiver = start(to.path()).await;
    naive.agree(&receiver);
    let entries = naive.entries(60);
    append(&mut receiver.log, entries.clone()).await;
    apply(&mut receiver, entries.clone()).await;
    run(&mut sender, entries).await;
    naive.agree(&receiver);
    write_behind(&receiver).await;
    write_behind(&sender).await;
    assert_eq!(segments(to.path()), segments(from.path()));
    stop(receiver).await;
    stop(sender).await;
}
