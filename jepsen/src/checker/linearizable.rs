//! I2: the history is linearizable, and the journal is a legal order of all changes.
//!
//! Three checks. An independent model replays the journal: each event must be legal, and the last state must
//! be that of every member. Each read that states a revision, stale or not, must show the model's state at
//! that revision. And the history of each address and of each owner of one address must be linearizable by
//! real time, as a register: indeterminate operations are replaced by the events that they caused, or by
//! nothing.

use super::finals::compare_finals;
use super::model::{Model, PoolSpecs};
use super::pairs::{Pairs, figure};
use super::reads_at_revisions::ReadsAtRevisions;
use super::registers::check_registers;
use super::{Anomaly, Checker, Record, Verdict};

/// Checker of I2.
pub(super) struct Linearizable;

impl Checker for Linearizable {
    fn id(&self) -> &'static str {
        "I2"
    }

    fn name(&self) -> &'static str {
        "linearizability and legal order"
    }

    fn promises(&self) -> &'static [u8] {
        &[1, 7, 8, 10, 13]
    }

    fn about(&self) -> &'static str {
        "Each address is a linearizable register, and the journal is a legal order that explains all states."
    }

    fn check(&self, record: &Record) -> Verdict {
        let pairs = Pairs::of(record);
        let mut verdict = Verdict::default();
        replay(&pairs, &mut verdict);
        check_registers(&pairs, &mut verdict);
        verdict
    }
}

/// Replays the journal, and compares reads and final states with the model on the way.
fn replay(pairs: &Pairs<'_>, verdict: &mut Verdict) {
    let journal = &pairs.journal;
    let pools = pairs.record.finals.first().map(|last| last.pools.as_slice()).unwrap_or_default();
    let mut model = Model::new(PoolSpecs::of(journal.events, pools), journal.is_complete);
    let mut reads = ReadsAtRevisions::of(pairs);
    let mut finals: Vec<_> = pairs.record.finals.iter().collect();
    finals.sort_by_key(|last| last.revision);
    let mut finals = finals.into_iter().peekable();
    for event in journal.events {
        while let Some(last) = finals.next_if(|last| last.revision < event.revision) {
            compare_finals(pairs, &model, last, verdict);
        }
        reads.compare_before(event.revision, &model, pairs, verdict);
        for message in model.apply(event) {
            verdict.add(Anomaly { message, operations: Vec::new(), events: vec![event.id()] });
        }
        verdict.checked += 1;
    }
    reads.compare_before(u64::MAX, &model, pairs, verdict);
    for last in finals {
        compare_finals(pairs, &model, last, verdict);
    }
    figure(verdict, "events replayed", journal.events.len());
    figure(verdict, "reads compared by revision", reads.compared);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::testing::{Run, grant};
    use crate::history::{Function, Type};

    const A: &str = "host/default/default/a";
    const B: &str = "host/default/default/b";

    fn messages(run: &Run) -> Vec<String> {
        run.verdict(&Linearizable).anomalies.into_iter().map(|anomaly| anomaly.message).collect()
    }

    fn assert_finds(run: &Run, words: &str) {
        let found = messages(run);
        assert!(found.iter().any(|message| message.contains(words)), "{words}: {found:?}");
    }

    /// A pool, and an allocation of host `a` with revision 3.
    fn run() -> Run {
        let mut run = Run::default();
        run.other(1, "pool.created", "web", "");
        run.allocated(3, "10.0.0.1", A);
        run
    }

    #[test]
    fn a_legal_journal_is_accepted() {
        let mut run = run();
        run.released(4, 3, "10.0.0.1", A, "endpoint-released").other(6, "address.cooled", "10.0.0.1", "");
        run.last_event().network = Some("default".parse().unwrap());
        run.allocated(7, "10.0.0.1", B).prefix(8, "prefix.delegated", 8, "10.0.0.16/28");
        run.prefix(9, "prefix.delegated", 9, "10.0.0.16/30");
        run.prefix(10, "prefix.released", 9, "10.0.0.16/30").prefix(10, "prefix.released", 8, "10.0.0.16/28");
        run.allocated(11, "10.0.0.17", A);
        run.last_state(12, &[(7, "10.0.0.1", B), (11, "10.0.0.17", A)]);
        assert_eq!(messages(&run), Vec::<String>::new());
    }

    #[test]
    fn illegal_events_are_found() {
        let mut twice = run();
        twice.allocated(4, "10.0.0.1", B);
        assert_finds(&twice, "overlaps grant 3");

        let mut in_prefix = run();
        in_prefix.prefix(4, "prefix.delegated", 4, "10.0.0.0/28");
        assert_finds(&in_prefix, "overlaps grant 3");

        let mut foreign = run();
        foreign.released(4, 3, "10.0.0.1", B, "allocation-released");
        assert_finds(&foreign, "host/default/default/b");

        let mut again = run();
        again.released(4, 3, "10.0.0.1", A, "DEL").released(5, 3, "10.0.0.1", A, "DEL");
        assert_finds(&again, "which is absent");

        let mut old_id = run();
        old_id.address(9, "address.allocated", 2, "10.0.0.2", B, "requested");
        assert_finds(&old_id, "no revision of its command");

        let mut quarantined = run();
        quarantined.other(4, "address.quarantined", "10.0.0.9", "");
        quarantined.last_event().network = Some("default".parse().unwrap());
        quarantined.allocated(5, "10.0.0.9", B);
        assert_finds(&quarantined, "is quarantined");

        let mut parent_first = run();
        parent_first.prefix(8, "prefix.delegated", 8, "10.0.0.16/28");
        parent_first.prefix(9, "prefix.delegated", 9, "10.0.0.16/30");
        parent_first.prefix(10, "prefix.released", 8, "10.0.0.16/28");
        assert_finds(&parent_first, "before the prefixes in it");

        let mut no_pool = Run::default();
        no_pool.allocated(3, "10.0.0.1", A);
        assert_finds(&no_pool, "which is absent");

        let mut missing = run();
        missing.allocated(4, "10.0.0.2", B);
        missing.last_event().number = 1;
        assert_finds(&missing, "not in order");

        let mut unconfirmed = run();
        let epoch = 1 << 41;
        unconfirmed.other(epoch + 1, "epoch.begun", "2", "restored from revision 3");
        unconfirmed.allocated(epoch + 2, "10.0.0.2", B);
        assert_finds(&unconfirmed, "unconfirmed");
    }

    #[test]
    fn ranges_of_a_pool_follow_its_changes() {
        let mut run = run();
        run.other(4, "pool.changed", "web", "");
        let change = |field: &str, from: &str, to: &str| ipam_api::event::FieldChange {
            field: field.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
        };
        run.last_event().changes = vec![change("ranges", "10.0.0.1-10.0.0.9", "10.0.0.1-10.0.0.4")];
        run.allocated(5, "10.0.0.4", B);
        assert_eq!(messages(&run), Vec::<String>::new());
        run.allocated(6, "10.0.0.5", "host/c");
        assert_finds(&run, "not one of the addresses of web");
    }

    #[test]
    fn a_member_with_another_state_is_found() {
        let mut run = run();
        run.last_state(9, &[(3, "10.0.0.1", A)]).last_state(9, &[]);
        assert_finds(&run, "n2: grant 3");
        assert_eq!(messages(&run).len(), 1);
        let mut more = self::run();
        more.last_state(9, &[(3, "10.0.0.1", A), (4, "10.0.0.2", B)]);
        assert_finds(&more, "is in no event");
    }

    #[test]
    fn a_read_shows_the_state_of_its_revision() {
        let mut run = run();
        run.released(5, 3, "10.0.0.1", A, "allocation-released");
        let read = |run: &mut Run, revision, grants: &[_]| {
            run.call(1, Function::Read).target("10.0.0.1").stale().revision(revision).ok(grants)
        };
        read(&mut run, 4, &[grant(3, "10.0.0.1")]);
        read(&mut run, 5, &[]);
        read(&mut run, 2, &[]);
        assert_eq!(messages(&run), Vec::<String>::new());
        let wrong = read(&mut run, 6, &[grant(3, "10.0.0.1")]);
        let verdict = run.verdict(&Linearizable);
        assert_eq!(verdict.anomalies[0].operations, [wrong]);
    }

    #[test]
    fn a_stale_answer_to_a_linearizable_read_is_found() {
        let mut run = run();
        run.released(5, 3, "10.0.0.1", A, "allocation-released");
        let held = [grant(3, "10.0.0.1")];
        run.call(1, Function::Allocate).endpoint(A).ok(&held);
        run.call(2, Function::Read).target("10.0.0.1").ok(&held);
        run.call(1, Function::Release).endpoint(A).grants(&held).ok(&held);
        assert_eq!(messages(&run), Vec::<String>::new());
        let read = run.call(2, Function::Read).target("10.0.0.1").ok(&held);
        let verdict = run.verdict(&Linearizable);
        assert!(verdict.anomalies[0].operations.contains(&read), "{verdict:?}");
    }

    #[test]
    fn a_lost_release_takes_effect_when_the_journal_says() {
        let mut run = run();
        let held = [grant(3, "10.0.0.1")];
        run.call(1, Function::Allocate).endpoint(A).ok(&held);
        run.call(1, Function::Release).endpoint(A).grants(&held).info();
        run.call(2, Function::Read).target("10.0.0.1").ok(&held);
        run.call(2, Function::Read).target("10.0.0.1").ok(&[]);
        // Without an event, the release had no effect, and the second read is wrong.
        assert_finds(&run, "not linearizable");
        run.released(5, 3, "10.0.0.1", A, "allocation-released");
        assert_eq!(messages(&run), Vec::<String>::new());
    }

    #[test]
    fn a_restore_ends_the_searched_part() {
        let mut run = run();
        let epoch = 1 << 41;
        let held = [grant(3, "10.0.0.1")];
        run.call(1, Function::Allocate).endpoint(A).ok(&held);
        run.call(2, Function::Read).target("10.0.0.9").revision(4).ok(&[]);
        // The release after the backup of revision 4 is undone.
        run.call(1, Function::Release).endpoint(A).grants(&held).revision(6).ok(&held);
        run.other(epoch + 1, "epoch.begun", "2", "restored from revision 4");
        run.call(2, Function::Read).target("10.0.0.1").revision(epoch + 1).ok(&held);
        assert_eq!(messages(&run), Vec::<String>::new());
    }

    #[test]
    fn an_endpoint_gets_one_address_for_concurrent_requests() {
        let mut run = run();
        let first = run.call(1, Function::Allocate).endpoint(A).pools(&["web"]).begin();
        run.call(2, Function::Allocate).endpoint(A).pools(&["web"]).ok(&[grant(3, "10.0.0.1")]);
        run.end(first, Type::Ok, Some(&[grant(3, "10.0.0.1")]));
        assert_eq!(messages(&run), Vec::<String>::new());
        run.allocated(8, "10.0.0.2", A);
        run.call(3, Function::Allocate).endpoint(A).pools(&["web"]).ok(&[grant(8, "10.0.0.2")]);
        assert_finds(&run, A);
    }
}
