//! Checker of I14.
//!
//! While the active faults leave a majority of members untouched and connected, writes must be accepted. The
//! time without an accepted write is bounded: by [`UNDER_FAULTS_MS`], and after faults that stopped the
//! majority by `settings.gap_ms_max`, because members have to start and to elect a leader first.

use std::collections::BTreeMap;

use super::gap::{FaultGap, gaps};
use super::majority::Damage;
use super::writes::Writes;
use crate::checker::intervals::{FaultInterval, faults, operations};
use crate::checker::{Checker, Record, Verdict};
use crate::nemesis::{Change, Kind};

/// Checker of I14.
#[derive(Debug)]
pub(in crate::checker) struct Availability;

/// Longest time without an accepted write after all faults are healed, if the settings have no bound.
const AFTER_HEAL_MS: u64 = 60_000;
/// Longest time without an accepted write while faults leave a connected majority.
const UNDER_FAULTS_MS: u64 = 30_000;
/// Maximum number of operations shown for one violation.
const SHOWN_MAX: usize = 8;

impl Checker for Availability {
    fn id(&self) -> &'static str {
        "I14"
    }

    fn name(&self) -> &'static str {
        "availability"
    }

    fn promises(&self) -> &'static [u8] {
        &[2]
    }

    fn about(&self) -> &'static str {
        "A connected majority accepts writes, and the cluster accepts them again soon after each fault."
    }

    fn check(&self, record: &Record) -> Verdict {
        let mut verdict = Verdict::default();
        let writes = Writes::of(&operations(&record.history));
        let faults = faults(&record.history);
        let last_ns = record.history.last().map_or(0, |last| last.time_ns);
        let after_heal_ms = record.settings.gap_ms_max.unwrap_or(AFTER_HEAL_MS);
        let under_faults_ms = UNDER_FAULTS_MS.min(after_heal_ms);
        for span in spans(&faults, record.settings.members, last_ns) {
            verdict.checked += 1;
            let bound_ms = if span.recovers { after_heal_ms } else { under_faults_ms };
            check_span(&span, bound_ms, under_faults_ms, &writes, &faults, &mut verdict);
        }
        add_figures(&gaps(record), &mut verdict);
        verdict
    }
}

/// Time in which a connected majority exists without interruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    from_ns: u64,
    to_ns: u64,
    /// True if there was no majority before.
    recovers: bool,
}

/// Spans of the run in which the majority works.
fn spans(faults: &[FaultInterval<'_>], members: usize, last_ns: u64) -> Vec<Span> {
    let mut changes: Vec<(u64, bool, usize)> = Vec::new();
    for (at, fault) in faults.iter().enumerate().filter(|(_, fault)| !fault.is_refused()) {
        changes.push((fault.begin_ns(), true, at));
        changes.push((fault.end_ns(), false, at));
    }
    changes.sort_unstable();
    let mut active: BTreeMap<usize, &FaultInterval<'_>> = BTreeMap::new();
    let (mut members, mut are_named) = (members, true);
    let mut spans = Vec::new();
    let mut open = Some(Span { from_ns: 0, to_ns: 0, recovers: true });
    for (time_ns, begins, at) in changes.into_iter().filter(|(time_ns, ..)| *time_ns <= last_ns) {
        let Some(fault) = faults.get(at) else { continue };
        if begins {
            active.insert(at, fault);
        } else {
            active.remove(&at);
            if let Kind::Membership { change } = &fault.fault.kind {
                are_named = false;
                match change {
                    Change::Add => members += 1,
                    Change::Remove { .. } => members = members.saturating_sub(1),
                    Change::Replace { .. } => {}
                }
            }
            are_named &= !matches!(fault.fault.kind, Kind::Wipe { .. });
        }
        let works = Damage::of(active.values().map(|fault| fault.fault)).leaves_majority(members, are_named);
        match (works, open) {
            (false, Some(span)) => {
                spans.push(Span { to_ns: time_ns, ..span });
                open = None;
            }
            (true, None) => open = Some(Span { from_ns: time_ns, to_ns: 0, recovers: true }),
            _ => {}
        }
    }
    spans.extend(open.map(|span| Span { to_ns: last_ns, ..span }));
    spans
}

/// Reports each time without an accepted write in a span that is longer than its bound.
fn check_span(
    span: &Span,
    first_ms: u64,
    other_ms: u64,
    writes: &Writes,
    faults: &[FaultInterval<'_>],
    verdict: &mut Verdict,
) {
    let from = writes.answered.partition_point(|at| *at <= span.from_ns);
    let to = writes.answered.partition_point(|at| *at < span.to_ns);
    let answers = writes.answered.get(from..to).unwrap_or_default();
    let (mut last, mut bound_ms) = (span.from_ns, first_ms);
    for at in answers.iter().copied().chain([span.to_ns]) {
        let bound_ns = bound_ms.saturating_mul(1_000_000);
        // A gap counts from the first attempt in it: a client that does not write gets no answer.
        let next = writes.attempts.partition_point(|(begin, _)| *begin < last);
        let tried: Vec<&(u64, u64)> =
            writes.attempts.iter().skip(next).take_while(|(begin, _)| *begin < at).collect();
        if let Some((begin, _)) = tried.first()
            && at.saturating_sub(*begin) > bound_ns
        {
            let active = faults.iter().filter(|fault| fault.begin_ns() < at && fault.end_ns() > last);
            let shown = active.map(|fault| fault.inject.index).take(SHOWN_MAX / 2);
            let shown = shown.chain(tried.iter().map(|(_, index)| *index)).take(SHOWN_MAX);
            let message = format!(
                "no write was accepted for {:.1} s from {:.1} s on, and a connected majority existed; the \
                 bound is {:.1} s",
                seconds(at - last),
                seconds(last),
                seconds(bound_ns)
            );
            verdict.violated(message, shown);
        }
        (last, bound_ms) = (at, other_ms);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn seconds(time_ns: u64) -> f64 {
    time_ns as f64 / 1e9
}

/// Adds count, median and maximum of the gaps of each nemesis and target.
fn add_figures(gaps: &[FaultGap<'_>], verdict: &mut Verdict) {
    let mut classes: BTreeMap<(&str, String), Vec<u64>> = BTreeMap::new();
    for gap in gaps.iter().filter(|gap| !gap.is_refused) {
        let class = classes.entry((gap.fault.nemesis.as_str(), gap.target.to_string())).or_default();
        class.extend(gap.gap_ns);
    }
    for ((nemesis, target), mut gaps_ns) in classes {
        gaps_ns.sort_unstable();
        let Some(max) = gaps_ns.last().copied() else { continue };
        let median = gaps_ns.get(gaps_ns.len() / 2).copied().unwrap_or_default();
        let text = format!(
            "{} faults, gap median {:.2} s, max {:.2} s",
            gaps_ns.len(),
            seconds(median),
            seconds(max)
        );
        verdict.figure(format!("{nemesis} {target}"), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::Settings;
    use crate::checker::fixtures::Script;
    use crate::history::{Function, Type, Value};

    fn pause(members: &[&str]) -> Kind {
        Kind::Pause { members: members.iter().map(|name| (*name).to_owned()).collect() }
    }

    fn write(script: &mut Script, at_ms: u64, kind: Type, error: Option<&str>) {
        script.at(at_ms).begin(1, Function::Allocate, Value::default());
        let value = Value { error: error.map(str::to_owned), ..Value::default() };
        script.end(1, Function::Allocate, kind, value);
    }

    /// Writes each second that fail from second 10 to second `until`.
    fn outage(until: u64, error: &str, hit: &[&str], fault_s: u64) -> Verdict {
        let mut script = Script::default();
        for second in 0..=120_u64 {
            if second == 10 {
                script.at(9_500).inject("pause", fault_s * 1000, pause(hit), Some("n1"), &["T"]);
            }
            if second == 10 + fault_s {
                script.at(second * 1000 - 500).heal("pause", fault_s * 1000, pause(hit), &[]);
            }
            let down = (10..until).contains(&second);
            let kind = if down { Type::Fail } else { Type::Ok };
            write(&mut script, second * 1000, kind, down.then_some(error));
        }
        let settings = Settings { members: 3, ..Settings::default() };
        Availability.check(&Record { history: script.history(), settings, ..Record::default() })
    }

    #[test]
    fn an_outage_under_a_fault_of_a_minority_is_bounded() {
        assert!(outage(35, "no-leader", &["n1"], 60).holds());
        let verdict = outage(60, "no-leader", &["n1"], 60);
        assert_eq!(verdict.violations, 1, "{:?}", verdict.anomalies);
        assert_eq!(verdict.anomalies[0].operations.len(), SHOWN_MAX);
        assert!(verdict.figures[0].1.contains("max 50."), "{:?}", verdict.figures);
    }

    #[test]
    fn refusals_of_the_state_prove_availability() {
        assert!(outage(60, "pool-exhausted", &["n1"], 60).holds());
    }

    #[test]
    fn an_outage_under_a_fault_of_a_majority_is_bounded_after_it_only() {
        assert!(outage(90, "no-leader", &["n1", "n2"], 70).holds());
        assert_eq!(outage(110, "no-leader", &["n1", "n2"], 20).violations, 1);
    }
}
