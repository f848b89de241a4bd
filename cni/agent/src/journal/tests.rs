//! Crashes and damage of the journal's file, and the rules and the limit of its map.

use std::path::Path;
use std::sync::Arc;

use ipam_api::agent::Netns;
use ipam_api::limits::JOURNAL_ATTACHMENTS_MAX;
use ipam_api::name::{InterfaceName, ObjectName};
use ipam_api::problem::{Code, Problem};
use ipam_api::request::Started;
use ipam_api::resource::Controller;
use serde_json::Map;

use super::*;

const FILE: &str = "journal";

fn key(container: &str) -> Key {
    let name = |text| ObjectName::new(text).unwrap();
    let interface = InterfaceName::new("eth0").unwrap();
    Key { config: name("lan"), container_id: name(container), interface }
}

fn entry(container: &str) -> Entry {
    Entry {
        key: key(container),
        phase: Phase::Adding,
        boot_id: "b1".to_owned(),
        runtime: "containerd".to_owned(),
        netns: Some(Netns { device: 4, inode: 7, path: format!("/run/netns/{container}") }),
        endpoint: None,
        uid: None,
        allocations: Vec::new(),
    }
}

fn started(at_us: u64) -> Started {
    Started { boot_id: "b1".to_owned(), at_us, start_ticks: None }
}

fn delete(container: &str, at_us: u64) -> Record {
    Record::Delete { key: key(container), release: Map::new(), started: started(at_us) }
}

/// Records of three attachments and two pods.
fn life() -> Vec<Record> {
    vec![
        Record::Boot { id: "b1".to_owned(), number: 3 },
        Record::Put(entry("c1")),
        Record::Attached { key: key("c1"), allocations: vec![7, 8] },
        Record::Replacing(key("c1")),
        Record::Put(entry("c2")),
        Record::Refused(key("c2")),
        delete("c1", 20),
        Record::Put(Entry { runtime: String::new(), ..entry("c3") }),
        Record::Runtime { key: key("c3"), runtime: "podman".to_owned() },
        Record::Pods { put: vec![pod("u1"), pod("u2")], gone: Vec::new() },
        Record::PodApplication { uid: "u1".to_owned(), application: application() },
        Record::Pods { put: Vec::new(), gone: vec!["u2".to_owned()] },
        // No effect on a deleted pod.
        Record::PodApplication { uid: "u2".to_owned(), application: application() },
    ]
}

fn pod(uid: &str) -> Pod {
    let network = PodNetwork { interface: "net1".parse().unwrap(), attachment: "lan/a".parse().unwrap() };
    Pod {
        uid: uid.to_owned(),
        static_uid: None,
        namespace: "shop".parse().unwrap(),
        name: "web-0".parse().unwrap(),
        labels: [("app".to_owned(), "web".to_owned())].into(),
        owner: Some(application().controller),
        application: None,
        networks: vec![network],
    }
}

fn application() -> Application {
    let name = "web".parse().unwrap();
    let (group, kind, uid) = ("apps".to_owned(), "StatefulSet".to_owned(), Some("s1".to_owned()));
    Application { controller: Controller { group, kind, name, uid }, replicas: Some(3) }
}

fn write(dir: &Path, records: &[Record]) -> Attachments {
    let (mut file, mut attachments) = JournalFile::open(dir).unwrap();
    for record in records {
        file.append(&[file::line(record).unwrap()]).unwrap();
        attachments.apply(record.clone());
    }
    attachments
}

fn read(dir: &Path) -> Attachments {
    JournalFile::open(dir).unwrap().1
}

#[test]
fn a_file_that_was_cut_anywhere_has_the_records_before_the_cut() {
    let dir = tempfile::tempdir().unwrap();
    let records = life();
    write(dir.path(), &records);
    let whole = std::fs::read(dir.path().join(FILE)).unwrap();
    for cut in 0..=whole.len() {
        std::fs::write(dir.path().join(FILE), &whole[..cut]).unwrap();
        let complete = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        let mut expected = Attachments::default();
        records[..complete].iter().cloned().for_each(|record| expected.apply(record));
        assert_eq!(read(dir.path()), expected, "cut at {cut}");
        // The next record is not appended to the rest of a cut line.
        let after = write(dir.path(), &[Record::Put(entry("c9"))]);
        assert_eq!(read(dir.path()), after, "cut at {cut}");
    }
}

#[test]
fn a_damaged_record_is_left_out_and_its_file_kept() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &[Record::Put(entry("c1")), Record::Put(entry("c2")), Record::Put(entry("c3"))]);
    let path = dir.path().join(FILE);
    let whole = std::fs::read(&path).unwrap();
    let line_bytes = whole.len() / 3;
    for at in line_bytes..2 * line_bytes - 1 {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        std::fs::write(&path, &damaged).unwrap();
        let keys: Vec<Key> = read(dir.path()).iter().map(|entry| entry.key.clone()).collect();
        assert_eq!(keys, [key("c1"), key("c3")], "byte {at}");
        assert_eq!(std::fs::read(dir.path().join("journal.damaged")).unwrap(), damaged);
        // The next start finds an intact file.
        std::fs::remove_file(dir.path().join("journal.damaged")).unwrap();
        assert_eq!(read(dir.path()).len(), 2);
        assert!(!dir.path().join("journal.damaged").exists());
    }
}

#[test]
fn a_second_agent_does_not_get_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let first = JournalFile::open(dir.path()).unwrap();
    assert!(matches!(JournalFile::open(dir.path()), Err(JournalError::InUse(_))));
    drop(first);
    assert!(JournalFile::open(dir.path()).is_ok());
}

#[test]
fn a_file_that_is_written_anew_stands_for_the_same_map() {
    let dir = tempfile::tempdir().unwrap();
    let attachments = write(dir.path(), &life());
    let (mut file, read_back) = JournalFile::open(dir.path()).unwrap();
    assert_eq!(read_back, attachments);
    let before = std::fs::metadata(dir.path().join(FILE)).unwrap().len();
    file.rewrite(&attachments).unwrap();
    file.append(&[file::line(&Record::Gone { key: key("c3"), allocations: Vec::new() }).unwrap()]).unwrap();
    drop(file);
    assert!(std::fs::metadata(dir.path().join(FILE)).unwrap().len() < before);
    let mut expected = attachments;
    expected.apply(Record::Gone { key: key("c3"), allocations: Vec::new() });
    assert_eq!(read(dir.path()), expected);
}

#[test]
fn allocations_that_are_replaced_are_unknown_until_the_cluster_names_them() {
    let mut attachments = Attachments::default();
    attachments.apply(Record::Replacing(key("c1")));
    assert!(attachments.is_empty());
    attachments.apply(Record::Put(entry("c1")));
    attachments.apply(Record::Attached { key: key("c1"), allocations: vec![7] });
    attachments.apply(Record::Replacing(key("c1")));
    let entry = attachments.get(&key("c1")).unwrap();
    assert_eq!((&entry.phase, entry.allocations.as_slice()), (&Phase::Adding, &[7][..]));
    attachments.apply(delete("c1", 20));
    let deleted = attachments.clone();
    attachments.apply(Record::Replacing(key("c1")));
    assert_eq!(attachments, deleted);
}

#[test]
fn late_answers_do_not_undo_a_del() {
    let mut attachments = Attachments::default();
    attachments.apply(Record::Put(entry("c1")));
    attachments.apply(delete("c1", 20));
    let deleting = attachments.clone();
    for late in [
        Record::Put(entry("c1")),
        Record::Attached { key: key("c1"), allocations: vec![7] },
        Record::Refused(key("c1")),
        Record::Missing(key("c1")),
        Record::Gone { key: key("c1"), allocations: Vec::new() },
        Record::Runtime { key: key("c1"), runtime: "podman".to_owned() },
        Record::Delivered { key: key("c1"), started: started(19) },
    ] {
        attachments.apply(late.clone());
        assert_eq!(attachments, deleting, "{late:?}");
    }
    attachments.apply(Record::Delivered { key: key("c1"), started: started(20) });
    assert!(attachments.is_empty());
}

#[test]
fn a_refusal_of_a_repeated_add_leaves_what_the_first_one_got() {
    let mut attachments = Attachments::default();
    attachments.apply(Record::Put(entry("c1")));
    attachments.apply(Record::Attached { key: key("c1"), allocations: vec![7] });
    let attached = attachments.clone();
    attachments.apply(Record::Put(Entry { allocations: vec![7], ..entry("c1") }));
    assert_ne!(attachments, attached);
    attachments.apply(Record::Refused(key("c1")));
    assert_eq!(attachments, attached);
    // The first ADD got no allocations.
    attachments.apply(Record::Put(entry("c2")));
    attachments.apply(Record::Refused(key("c2")));
    assert_eq!(attachments, attached);
}

#[test]
fn a_runtime_is_learned_once_and_not_after_a_del() {
    let mut attachments = Attachments::default();
    let runtime =
        |container: &str, name: &str| Record::Runtime { key: key(container), runtime: name.to_owned() };
    attachments.apply(Record::Put(Entry { runtime: String::new(), ..entry("c1") }));
    attachments.apply(Record::Put(Entry { runtime: String::new(), ..entry("c2") }));
    attachments.apply(delete("c2", 20));
    for record in
        [runtime("c1", "podman"), runtime("c1", "crio"), runtime("c2", "podman"), runtime("c3", "crio")]
    {
        assert!(attachments.has_room_for(&record));
        attachments.apply(record);
    }
    let found: Vec<(Key, String)> =
        attachments.iter().map(|entry| (entry.key.clone(), entry.runtime.clone())).collect();
    assert_eq!(found, [(key("c1"), "podman".to_owned()), (key("c2"), String::new())]);
}

#[test]
fn a_released_orphan_is_only_what_was_released() {
    let mut attachments = Attachments::default();
    attachments.apply(Record::Put(entry("c1")));
    attachments.apply(Record::Attached { key: key("c1"), allocations: vec![9] });
    attachments.apply(Record::Gone { key: key("c1"), allocations: vec![7] });
    assert_eq!(attachments.len(), 1);
    attachments.apply(Record::Gone { key: key("c1"), allocations: vec![9] });
    assert!(attachments.is_empty());
}

#[tokio::test]
async fn a_record_has_its_effect_once_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let (file, attachments) = JournalFile::open(dir.path()).unwrap();
    let journal = Journal::start(file, attachments).unwrap();
    let receipts = futures_of(&journal).await;
    assert_eq!(journal.attachments().len(), 3);
    for receipt in receipts {
        receipt.synced().await.unwrap();
    }
    let present = journal.attachments().clone();
    drop(journal);
    // The thread ends with the queue, and releases the lock of the directory.
    let again = loop {
        match JournalFile::open(dir.path()) {
            Ok((_, attachments)) => break attachments,
            Err(JournalError::InUse(_)) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(again, present);
}

#[tokio::test]
async fn a_writer_as_a_task_writes_and_ends_with_the_task() {
    let dir = tempfile::tempdir().unwrap();
    let (file, attachments) = JournalFile::open(dir.path()).unwrap();
    let (journal, writing) = Journal::new(file, attachments);
    let task = tokio::spawn(writing);
    for receipt in futures_of(&journal).await {
        receipt.synced().await.unwrap();
    }
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(read(dir.path()), *journal.attachments());
    let refused = journal.write(Record::Put(entry("c4"))).await.unwrap_err();
    assert!(matches!(refused, Unwritable::Failed(_)), "{refused}");
}

/// Journal with this many attachments, which its file lacks.
fn with(dir: &Path, count: usize) -> Arc<Journal> {
    let (file, mut attachments) = JournalFile::open(dir).unwrap();
    (0..count).for_each(|number| attachments.apply(Record::Put(entry(&format!("c{number}")))));
    Arc::new(Journal::start(file, attachments).unwrap())
}

#[tokio::test]
async fn a_full_journal_takes_only_what_adds_no_attachment() {
    let dir = tempfile::tempdir().unwrap();
    let journal = with(dir.path(), JOURNAL_ATTACHMENTS_MAX);
    for refused in [Record::Put(entry("new")), delete("new", 20)] {
        assert_eq!(journal.write(refused).await.unwrap_err(), Unwritable::Full);
    }
    assert_eq!(Problem::from(Unwritable::Full).code, Code::JournalUnwritable);
    assert!(journal.is_writable(), "the disk accepts records");
    journal.write(Record::Put(entry("c1"))).await.unwrap();
    journal.write(delete("c1", 20)).await.unwrap();
    journal.write(Record::Delivered { key: key("c1"), started: started(20) }).await.unwrap();
    journal.write(Record::Put(entry("new"))).await.unwrap();
    assert_eq!(journal.attachments().len(), JOURNAL_ATTACHMENTS_MAX);
}

#[tokio::test]
async fn records_at_once_do_not_exceed_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let journal = with(dir.path(), JOURNAL_ATTACHMENTS_MAX - 2);
    let mut writes = tokio::task::JoinSet::new();
    for number in 0..8 {
        let journal = journal.clone();
        writes.spawn(async move { journal.write(Record::Put(entry(&format!("new{number}")))).await });
    }
    let written = writes.join_all().await.into_iter().filter(Result::is_ok).count();
    assert_eq!(written, 2);
    assert_eq!(journal.attachments().len(), JOURNAL_ATTACHMENTS_MAX);
}

async fn futures_of(journal: &Journal) -> Vec<Receipt> {
    let mut receipts = Vec::new();
    for container in ["c1", "c2", "c3"] {
        receipts.push(journal.write(Record::Put(entry(container))).await.unwrap());
    }
    receipts
}
