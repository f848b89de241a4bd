//! Golden bytes: logs and disks of earlier versions stay readable with the same meaning.
//!
//! `UPDATE=1` adds what `testdata/golden.txt` doesn't have yet. It never changes a line: bytes that differ
//! are a change of format, which needs a new version byte and a reader for the old one. Only until 0.1.0 is
//! out may a line be taken away, and `testdata/fixtures/v1` with it, to be written afresh: no such data
//! exists.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::support::samples;
use crate::support::samples::Rows;
use ipam_api::Code;
use ipam_machine::batch::{Batch, Leadership, Opened};
use ipam_machine::command::PoolSpec;
use ipam_machine::model::{
    Allocation, Attachment, Cooling, Endpoint, Network, Pool, Prefix, PrefixCooling, PrefixOwner,
    Reservation, Subnet,
};
use ipam_machine::{Action, At, Event, Id, Outcome, RowKey, State, apply};
use proptest::prelude::*;

/// The network that is there from the beginning.
const DEFAULT_NETWORK: Id<Network> = Id::new((1 << 40) + 1);

fn file() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/golden.txt")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

/// The lines of the file: name and bytes.
fn golden() -> BTreeMap<String, Vec<u8>> {
    let text = std::fs::read_to_string(file()).unwrap();
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, bytes)| (name.to_owned(), unhex(bytes)))
        .collect()
}

fn opened(action: Action) -> Opened {
    Opened {
        leadership: Leadership::Number(0),
        log_time_ms: 70_000,
        wall_ms: 1_700_000_000_000,
        commands: vec![samples::command(action)],
    }
}

/// A batch's own bytes, without the length that serde puts before them.
fn batch_bytes(batch: &Batch) -> Vec<u8> {
    postcard::from_bytes::<Vec<u8>>(&postcard::to_stdvec(batch).unwrap()).unwrap()
}

fn batch_of(bytes: &[u8]) -> Batch {
    postcard::from_bytes(&postcard::to_stdvec(bytes).unwrap()).unwrap()
}

fn row_key(name: &str) -> RowKey {
    let (table, id) = name.strip_prefix("row/").unwrap().split_once('/').unwrap();
    RowKey { table: table.parse().unwrap(), id: id.parse().unwrap() }
}

/// Bytes that this version writes.
fn written() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for (name, action) in samples::actions() {
        all.push((format!("batch/{name}"), batch_bytes(&Batch::seal(&opened(action)).unwrap())));
    }
    for (key, bytes) in samples::rows().rows() {
        all.push((format!("row/{}/{}", key.table, key.id), bytes));
    }
    for (name, outcome) in samples::outcomes() {
        all.push((format!("outcome/{name}"), postcard::to_stdvec(&outcome).unwrap()));
    }
    for (name, event) in samples::events() {
        all.push((format!("event/{name}"), postcard::to_stdvec(&event).unwrap()));
    }
    for (name, bytes) in samples::enumerations() {
        all.push((format!("enum/{name}"), bytes));
    }
    // The digest says "the same state" to other members and to the row store: it is a format, too.
    let state = State::from_rows(samples::rows().rows()).unwrap();
    all.push(("digest/rows".to_owned(), state.digest().to_be_bytes().to_vec()));
    // By name and not as a list: codes are appended to, and each keeps its place.
    for code in Code::ALL {
        all.push((format!("code/{code}"), postcard::to_stdvec(code).unwrap()));
    }
    all
}

#[test]
fn encoded_bytes_equal_the_golden_bytes() {
    let written = written();
    if std::env::var_os("UPDATE").is_some() {
        let mut text = std::fs::read_to_string(file()).unwrap();
        let known = golden();
        for (name, bytes) in written.iter().filter(|(name, _)| !known.contains_key(name)) {
            let _ = writeln!(text, "{name} {}", hex(bytes));
        }
        std::fs::write(file(), text).unwrap();
    }
    let golden = golden();
    for (name, bytes) in &written {
        let old = golden.get(name).unwrap_or_else(|| panic!("{name} has no golden bytes yet: UPDATE=1"));
        assert_eq!(hex(old), hex(bytes), "the format of {name} has changed");
    }
    let names: Vec<&String> = written.iter().map(|(name, _)| name).collect();
    assert!(golden.keys().all(|name| names.contains(&name)), "golden bytes that nothing writes any more");
}

#[test]
fn golden_bytes_decode_to_the_same_values() {
    let golden = golden();
    for (name, action) in samples::actions() {
        let batch = batch_of(&golden[&format!("batch/{name}")]);
        assert_eq!(batch.open().unwrap(), opened(action), "{name}");
    }
    for (name, outcome) in samples::outcomes() {
        let read: Outcome = postcard::from_bytes(&golden[&format!("outcome/{name}")]).unwrap();
        assert_eq!(read, outcome, "{name}");
    }
    for (name, event) in samples::events() {
        let read: Event = postcard::from_bytes(&golden[&format!("event/{name}")]).unwrap();
        assert_eq!(read, event, "{name}");
    }
    let rows = golden.iter().filter(|(name, _)| name.starts_with("row/"));
    let rows: Vec<_> = rows.map(|(name, bytes)| (row_key(name), bytes.clone())).collect();
    let (read, meant) = (State::from_rows(rows).unwrap(), samples::rows());
    assert!(read.rows().eq(meant.rows()));
    assert_eq!(read.header(), meant.header());
    for table in 0..=11 {
        assert!(read.rows().any(|(key, _)| key.table == table), "table {table} has no golden bytes");
    }
}

#[test]
fn other_versions_and_tables_are_told_apart() {
    let good = batch_bytes(&Batch::seal(&opened(Action::Expire)).unwrap());
    for version in [0, 2, 255] {
        let mut bytes = good.clone();
        bytes[0] = version;
        assert!(batch_of(&bytes).open().unwrap_err().to_string().contains(&format!("version is {version}")));
    }
    assert!(batch_of(&[]).open().is_err());
    let with = |key, bytes| {
        let all = samples::rows();
        let changed = all.rows().filter(|(old, _)| *old != key).chain([(key, bytes)]);
        State::from_rows(changed.collect::<Vec<_>>()).map(|_| ())
    };
    for (key, bytes) in samples::rows().rows() {
        let mut other = bytes.clone();
        other[0] = 9;
        assert!(with(key, other).is_err(), "another version of {key:?}");
        assert!(with(key, Vec::new()).is_err());
        assert!(with(key, bytes).is_ok());
    }
    assert!(with(RowKey { table: 12, id: 1 }, vec![1]).is_err(), "an unknown table");
    assert!(State::from_rows(samples::rows().rows().skip(1)).is_err(), "no header");
}

#[test]
fn keys_of_rows_are_read_back_and_sort_by_table_and_age() {
    let key = RowKey { table: 8, id: 0x0102_0304_0506_0708 };
    assert_eq!(key.to_bytes(), [8, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(RowKey::from_bytes(&key.to_bytes()), Some(key));
    assert_eq!(RowKey::from_bytes(&key.to_bytes()[1..]), None);
    assert_eq!(RowKey::from_bytes(&[]), None);
    assert!(RowKey { table: 7, id: u64::MAX }.to_bytes() < RowKey { table: 8, id: 0 }.to_bytes());
}

/// A stranger's bytes could otherwise nest transactions until the stack ends.
#[test]
fn nested_transactions_cannot_exhaust_the_stack() {
    let empty = batch_bytes(
        &Batch::seal(&opened(Action::Transaction(ipam_machine::command::Transaction {
            preconditions: Vec::new(),
            steps: Vec::new(),
        })))
        .unwrap(),
    );
    // The last two bytes are the counts of preconditions and steps: none, and one that is a transaction.
    let head = &empty[..empty.len() - 1];
    let tag = empty[empty.len() - 3];
    for depth in [1, 100, 1_000_000] {
        let mut bytes = head.to_vec();
        for _ in 0..depth {
            bytes.extend([1, tag, 0]);
        }
        bytes.push(0);
        match batch_of(&bytes).open() {
            Ok(opened) => {
                assert_eq!(depth, 1, "so deep");
                assert!(apply(&mut State::new(), At::default(), &opened.commands[0]).0.is_err());
            }
            Err(_) => assert!(depth > 1, "refused by the machine, with a reason"),
        }
    }
}

/// Rows that can each be read, and can't all be true.
#[test]
fn rows_that_contradict_each_other_are_damaged() {
    let rebuilt = |change: fn(&State, &mut Rows)| {
        let mut rows = samples::all_rows();
        change(&samples::rows(), &mut rows);
        rows.state().map(|_| ()).unwrap_err().to_string()
    };
    let larger = rebuilt(|state, rows| {
        let mut row = state.subnets.get(102.into()).unwrap().clone();
        row.spec.cidr = "::/0".parse().unwrap();
        rows.put(102, &row);
    });
    assert!(larger.contains("larger"), "{larger}");
    let outside = rebuilt(|state, rows| {
        let mut row = state.allocations.get(107.into()).unwrap().clone();
        row.address = "10.9.9.9".parse().unwrap();
        rows.put(107, &row);
    });
    assert!(outside.contains("10.9.9.9"), "{outside}");
    let cooling = rebuilt(|state, rows| {
        let mut row = state.coolings.get(110.into()).unwrap().clone();
        row.address = "10.1.2.1".parse().unwrap();
        rows.put(110, &row);
    });
    assert!(cooling.contains("10.1.2.1"), "{cooling}");
    let twice = rebuilt(|state, rows| {
        let row: &Allocation = state.allocations.get(107.into()).unwrap();
        rows.put(111, row);
    });
    assert!(twice.contains("two rows"), "{twice}");
    let lost = rebuilt(|_, rows| rows.remove::<Pool>(103));
    assert!(lost.contains("pool 103"), "{lost}");
}

/// A row is of the network of its pool, or of the network that it names.
#[test]
fn rows_of_another_network_are_damaged() {
    let rebuilt = |change: fn(&State, &mut Rows)| {
        let mut rows = samples::all_rows();
        change(&samples::rows(), &mut rows);
        rows.state().map(|_| ()).unwrap_err().to_string()
    };
    let of_pool: [fn(&State, &mut Rows); 4] = [
        |state, rows| {
            let (id, row) = state.allocations.first().unwrap();
            rows.put(id.get(), &Allocation { network: DEFAULT_NETWORK, ..row.clone() });
        },
        |state, rows| {
            let (id, row) = state.coolings.first().unwrap();
            rows.put(id.get(), &Cooling { network: DEFAULT_NETWORK, ..row.clone() });
        },
        |state, rows| {
            let (id, row) = state.prefixes.first().unwrap();
            rows.put(id.get(), &Prefix { network: DEFAULT_NETWORK, ..row.clone() });
        },
        |state, rows| {
            let (id, row) = state.prefix_coolings.first().unwrap();
            rows.put(id.get(), &PrefixCooling { network: DEFAULT_NETWORK, ..row.clone() });
        },
    ];
    for change in of_pool {
        let refused = rebuilt(change);
        assert!(refused.contains("pool 103 is of network 101, and a row of it of network"), "{refused}");
    }
    let named: [fn(&State, &mut Rows); 2] = [
        |state, rows| {
            let (id, row) = state.reservations.first().unwrap();
            rows.put(id.get(), &Reservation { network: DEFAULT_NETWORK, ..row.clone() });
        },
        |state, rows| {
            let (id, row) = state.subnets.first().unwrap();
            rows.put(id.get(), &Subnet { network: DEFAULT_NETWORK, ..row.clone() });
        },
    ];
    for change in named {
        let refused = rebuilt(change);
        assert!(refused.contains("is default, and a row of it names blue"), "{refused}");
    }
    let gone = rebuilt(|state, rows| {
        let (id, row) = state.reservations.first().unwrap();
        rows.put(id.get(), &Reservation { network: 7.into(), ..row.clone() });
    });
    assert_eq!(gone, "network 7 is named by a row and not there");
    let without_pool = rebuilt(|state, rows| {
        let (id, row) = state.coolings.first().unwrap();
        rows.put(id.get(), &Cooling { pool: 7.into(), ..row.clone() });
    });
    assert_eq!(without_pool, "pool 7 is named by a row and not there");
}

/// All commands rely on it that what a row names is there.
#[test]
fn rows_that_name_a_missing_endpoint_allocation_or_pool_are_damaged() {
    let rebuilt = |change: fn(&State, &mut Rows)| {
        let mut rows = samples::all_rows();
        change(&samples::rows(), &mut rows);
        rows.state().map(|_| ()).unwrap_err().to_string()
    };
    type Case = (fn(&State, &mut Rows), &'static str);
    let cases: [Case; 6] = [
        (
            |state, rows| {
                let (id, row) = state.allocations.first().unwrap();
                rows.put(id.get(), &Allocation { endpoint: 7.into(), ..row.clone() });
            },
            "endpoint 7 is named by a row and not there",
        ),
        (
            |state, rows| {
                let (id, row) = state.attachments.first().unwrap();
                rows.put(id.get(), &Attachment { endpoint: 7.into(), ..row.clone() });
            },
            "endpoint 7 is named by a row and not there",
        ),
        (
            |state, rows| {
                let (id, row) = state.attachments.first().unwrap();
                rows.put(id.get(), &Attachment { allocations: vec![7.into()].into(), ..row.clone() });
            },
            "allocation 7 is named by a row and not there",
        ),
        (
            |state, rows| {
                let (id, row) = state.endpoints.first().unwrap();
                rows.put(id.get(), &Endpoint { allocations: vec![7.into()].into(), ..row.clone() });
            },
            "allocation 7 is named by a row and not there",
        ),
        (
            |state, rows| {
                let (_, row) = state.endpoints.first().unwrap();
                let key = "host/other".parse().unwrap();
                rows.put(700, &Endpoint { key, waiting: None, ..row.clone() });
            },
            "and a row of it of endpoint 700",
        ),
        (
            |state, rows| {
                let (_, row) = state.pool_states.first().unwrap();
                rows.put(7, row);
            },
            "pool 7 is named by a row and not there",
        ),
    ];
    for (change, why) in cases {
        let damaged = rebuilt(change);
        assert!(damaged.contains(why), "{why}: {damaged}");
    }
}

/// Prefixes of a damaged snapshot are detected: each must lie in its parent and overlap nothing else.
#[test]
fn prefixes_that_contradict_each_other_are_damaged() {
    let rebuilt = |cidr: &str, parent: u64, owner: &str| {
        let (state, mut rows) = (samples::rows(), samples::all_rows());
        let mut row = state.prefixes.get(115.into()).unwrap().clone();
        (row.cidr, row.parent, row.owner.name) =
            (cidr.parse().unwrap(), parent.into(), owner.parse().unwrap());
        rows.put(116, &row);
        rows.state().map(|_| ()).map_err(|damaged| damaged.to_string())
    };
    rebuilt("10.1.2.96/27", 103, "other").unwrap();
    rebuilt("10.1.2.132/30", 115, "other").unwrap();
    for (cidr, parent, owner, why) in [
        ("10.1.2.96/27", 103, "node-1", "one owner"),
        ("10.1.2.128/27", 103, "other", "one owner or one block"),
        ("10.1.2.144/28", 103, "other", "aren't its own"),
        ("10.1.2.128/25", 103, "other", "one owner or one block"),
        ("10.1.2.97/27", 103, "other", "aren't its own"),
        ("10.1.2.0/28", 103, "other", "aren't its own"),
        ("10.1.2.8/30", 103, "other", "aren't its own"),
        ("10.9.9.0/28", 103, "other", "aren't its own"),
        ("2001:db8::/64", 103, "other", "aren't its own"),
        ("10.1.2.128/30", 115, "other", "aren't its own"),
        ("10.1.2.188/30", 115, "other", "aren't its own"),
        ("10.1.2.128/26", 115, "other", "aren't its own"),
        ("10.1.2.96/30", 115, "other", "aren't its own"),
        ("2001:db8::/64", 115, "other", "aren't its own"),
        ("10.1.2.132/30", 116, "other", "aren't its own"),
        ("10.1.2.132/30", 7, "other", "aren't its own"),
        ("0.0.0.0/0", 103, "other", "aren't its own"),
    ] {
        let damaged = rebuilt(cidr, parent, owner).unwrap_err();
        assert!(damaged.contains(why), "{cidr} of {parent}: {damaged}");
    }
}

/// So are cooling blocks: each must lie in its prefix, outside of all that is cut from it.
#[test]
fn cooling_blocks_that_contradict_prefixes_are_damaged() {
    let rebuilt = |change: fn(&mut PrefixCooling)| {
        let (state, mut rows) = (samples::rows(), samples::all_rows());
        let child = Prefix {
            cidr: "10.1.2.140/30".parse().unwrap(),
            parent: 115.into(),
            ..state.prefixes.get(115.into()).unwrap().clone()
        };
        rows.put(116, &child);
        let single = Prefix {
            cidr: "10.1.2.136/32".parse().unwrap(),
            owner: PrefixOwner { name: "other".parse().unwrap(), ..child.owner.clone() },
            keep_edges: false,
            ..child
        };
        rows.put(117, &single);
        let mut row = state.prefix_coolings.get(119.into()).unwrap().clone();
        row.owner.name = "conn-8".parse().unwrap();
        change(&mut row);
        rows.put(120, &row);
        rows.state().map(|_| ()).map_err(|damaged| damaged.to_string())
    };
    rebuilt(|row| row.address = "10.1.2.129".parse().unwrap()).unwrap();
    fn address_for(row: &mut PrefixCooling, owner: &str) {
        (row.address, row.owner.name) = ("10.1.2.129".parse().unwrap(), owner.parse().unwrap());
    }
    type Case = (fn(&mut PrefixCooling), &'static str);
    let cases: [Case; 12] = [
        (|_| {}, "one address of a prefix cools twice"),
        (|row| address_for(row, "conn-7"), "two addresses of a prefix cool for one owner"),
        (|row| address_for(row, "other"), "for an owner that has another address"),
        (|row| (row.parent, row.address) = (7.into(), "10.1.2.131".parse().unwrap()), "isn't its prefix's"),
        (|row| row.parent = 103.into(), "isn't its prefix's"),
        (|row| row.address = "10.1.2.65".parse().unwrap(), "isn't its prefix's"),
        (|row| row.address = "::a01:283".parse().unwrap(), "isn't its prefix's"),
        (|row| row.address = "10.1.2.128".parse().unwrap(), "isn't its prefix's"),
        (|row| row.address = "10.1.2.191".parse().unwrap(), "isn't its prefix's"),
        (|row| row.address = "10.1.2.141".parse().unwrap(), "isn't its prefix's"),
        (|row| (row.parent, row.address) = (117.into(), "10.1.2.136".parse().unwrap()), "isn't its prefix's"),
        (|row| row.pool = 7.into(), "pool 7 is named by a row and not there"),
    ];
    for (change, why) in cases {
        let damaged = rebuilt(change).unwrap_err();
        assert!(damaged.contains(why), "{why}: {damaged}");
    }
    let of_other_pool = || {
        let (state, mut rows) = (samples::rows(), samples::all_rows());
        let pool = state.pools.get(103.into()).unwrap().clone();
        let spec = PoolSpec {
            name: "other".parse().unwrap(),
            ranges: vec!["10.1.2.250-10.1.2.251".parse().unwrap()],
            exclude: Vec::new(),
            ..pool.spec.clone()
        };
        rows.put(130, &Pool { spec, automatic: None, ..pool });
        rows.put(130, state.pool_states.get(103.into()).unwrap());
        let row = state.prefix_coolings.get(119.into()).unwrap().clone();
        rows.put(119, &PrefixCooling { pool: 130.into(), ..row });
        rows.state().map(|_| ()).unwrap_err().to_string()
    };
    assert!(of_other_pool().contains("isn't its prefix's"), "{}", of_other_pool());
}

/// The digest covers bytes: a duplicate or differently encoded row would change it.
#[test]
fn rows_that_are_not_written_as_rows_are_damaged() {
    let golden: Vec<_> = samples::rows().rows().collect();
    for (key, bytes) in &golden {
        let refused = |key: RowKey, bytes: Vec<u8>| {
            let others = golden.iter().filter(|(other, _)| other.table != 0 || key.table != 0);
            let others = others.filter(|(other, _)| *other != key).cloned();
            State::from_rows(others.chain([(key, bytes)])).map(|_| ()).unwrap_err()
        };
        if key.table != 0 {
            refused(*key, [bytes.as_slice(), &[0]].concat());
        }
        let twice = golden.iter().cloned().chain([(*key, bytes.clone())]);
        assert!(State::from_rows(twice).unwrap_err().to_string().contains("twice"), "{key:?}");
    }
    let header = |change: fn(&mut State)| {
        let mut state = samples::rows();
        change(&mut state);
        State::from_rows(state.rows()).map(|_| ()).unwrap_err().to_string()
    };
    assert!(header(|state| state.spoil_header().epoch = 1 << 13).contains("no sense"));
    assert!(header(|state| state.spoil_header().counter = 1 << 40).contains("no sense"));
    let elsewhere = golden.iter().cloned().map(|(key, row)| match key.table {
        0 => (RowKey { table: 0, id: 1 }, row),
        _ => (key, row),
    });
    assert!(State::from_rows(elsewhere).is_err(), "a header with an id");
}

/// Numbers of events run to the end of their type, and not beyond.
#[test]
fn the_last_number_of_an_event_is_no_overflow() {
    use ipam_machine::journal::Frame;
    let (_, event) = samples::events().remove(0);
    let whats = vec![event.kind.clone(), event.kind];
    let bytes = postcard::to_extend(&(7_u64, u32::MAX, 8_u64, event.by, 0_u32, whats), vec![1]).unwrap();
    let events = Frame::decode(&bytes).unwrap().into_events();
    assert_eq!(events.iter().map(|event| event.number).collect::<Vec<_>>(), [u32::MAX]);
}

fn damage(bytes: &[u8], cut: usize, flips: &[(usize, u8)]) -> Vec<u8> {
    let mut bytes = bytes[..cut.min(bytes.len())].to_vec();
    for (at, with) in flips {
        let length = bytes.len().max(1);
        if let Some(byte) = bytes.get_mut(at % length) {
            *byte ^= with;
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), known in any::<bool>()) {
        if known && !bytes.is_empty() {
            bytes[0] = 1;
        }
        let _ = batch_of(&bytes).open();
        let _ = postcard::from_bytes::<Batch>(&bytes);
        for table in 0..=12 {
            let _ = State::from_rows([(RowKey { table, id: 5 }, bytes.clone())]);
        }
    }

    /// Commands that are readable despite the damage are applied as well: the machine trusts no input.
    #[test]
    fn damaged_batches_never_panic(
        which in any::<prop::sample::Index>(),
        cut in prop_oneof![Just(usize::MAX), 0..200usize],
        flips in prop::collection::vec((any::<usize>(), any::<u8>()), 0..4),
    ) {
        let actions = samples::actions();
        let (_, action) = which.get(&actions);
        let bytes = batch_bytes(&Batch::seal(&opened(action.clone())).unwrap());
        if let Ok(opened) = batch_of(&damage(&bytes, cut, &flips)).open() {
            let mut state = State::from_rows(samples::rows().rows()).unwrap();
            let at = At { log_time_ms: opened.log_time_ms, wall_ms: opened.wall_ms, leadership: 0 };
            for command in &opened.commands {
                let _ = apply(&mut state, at, command);
            }
        }
    }

    /// Damaged rows are found out, or make another state; they never make a panic.
    #[test]
    fn damaged_rows_never_panic(
        which in any::<prop::sample::Index>(),
        cut in prop_oneof![Just(usize::MAX), 0..200usize],
        flips in prop::collection::vec((any::<usize>(), any::<u8>()), 0..4),
        gone in any::<Option<prop::sample::Index>>(),
    ) {
        let mut rows: Vec<_> = samples::rows().rows().collect();
        let i = which.index(rows.len());
        rows[i].1 = damage(&rows[i].1, cut, &flips);
        if let Some(gone) = gone {
            rows.remove(gone.index(rows.len()));
        }
        let _ = State::from_rows(rows);
    }
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(2000)
}
