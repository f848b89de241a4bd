//! Schedule of faults: seeded, one after another, sometimes two at the same time.

use std::time::Duration;

use anyhow::Result;
use tokio::time::{Instant, sleep_until, timeout};

use super::plan::Step;
use super::progress::Progress;
use crate::history::{Function, Invocation, Process, Recorder, Type, Value};
use crate::nemesis::{Fault, Nemesis, System, View};
use crate::random::Random;

/// Time without faults at the begin of a run.
const QUIET: Duration = Duration::from_secs(1);
/// Time without faults at the end, in which the last faults heal.
const TAIL: Duration = Duration::from_millis(500);
/// Probability of a second fault while one is active.
const OVERLAP_PERCENT: usize = 35;
/// Pause before the next look if a nemesis found no target.
const LOOK: Duration = Duration::from_millis(200);
/// Longest injection and healing of one fault.
const FAULT_MAX: Duration = Duration::from_secs(120);

/// Schedule of one run.
pub(super) struct Schedule<'a> {
    pub(super) nemeses: &'a [Box<dyn Nemesis>],
    pub(super) random: Random,
    pub(super) recorder: Recorder,
    pub(super) progress: Progress,
    /// End of the time in which faults begin.
    pub(super) until: Instant,
    /// Faults that could not be injected or healed.
    pub(super) failures: Vec<String>,
}

/// Fault that is active.
struct Active {
    fault: Fault,
    ends: Instant,
}

impl Schedule<'_> {
    /// Injects and heals faults until the time is over; all are healed at the end.
    ///
    /// `changed` is called with the system after each injection and each healing.
    pub(super) async fn run<S: System>(
        &mut self,
        system: &mut S,
        mut changed: impl FnMut(&S) -> Result<()>,
    ) -> Result<()> {
        let last = self.until.checked_sub(TAIL).unwrap_or(self.until);
        let mut next = Instant::now() + QUIET;
        let mut active: Vec<Active> = Vec::new();
        // Each nemesis in turn, in random order: short runs use all of them, too.
        let mut turn: Vec<usize> = Vec::new();
        loop {
            let may_begin = next < last && !self.nemeses.is_empty() && !self.progress.is_full();
            let first =
                active.iter().enumerate().min_by_key(|(_, one)| one.ends).map(|(at, one)| (at, one.ends));
            match first {
                Some((at, ends)) if !may_begin || ends <= next => {
                    sleep_until(ends.min(last)).await;
                    let healed = active.remove(at);
                    self.heal(system, &healed.fault).await;
                    if active.is_empty() {
                        next = Instant::now() + self.pause();
                    }
                }
                None if !may_begin => break,
                _ => {
                    sleep_until(next).await;
                    let view = system.view().await;
                    let Some(fault) = self.choose(&mut turn, &view, &active) else {
                        next = Instant::now() + LOOK;
                        continue;
                    };
                    self.inject(system, &fault).await;
                    let ends = Instant::now() + Duration::from_millis(fault.lasts_ms);
                    next = self.after(&fault, ends);
                    active.push(Active { fault, ends });
                }
            }
            changed(system)?;
        }
        if !self.progress.is_full() {
            sleep_until(self.until).await;
        }
        Ok(())
    }

    /// Injects the faults of a script at their times, and heals each when it ends.
    pub(super) async fn run_script<S: System>(
        &mut self,
        system: &mut S,
        script: &[Step],
        mut changed: impl FnMut(&S) -> Result<()>,
    ) -> Result<()> {
        let begun = Instant::now();
        let passed = Duration::from_nanos(self.recorder.now_ns());
        let at = |step: &Step| begun + Duration::from_millis(step.at_ms).saturating_sub(passed);
        let until = self.until;
        let mut steps = script.iter().filter(|step| at(step) < until).peekable();
        let mut active: Vec<Active> = Vec::new();
        loop {
            let first =
                active.iter().enumerate().min_by_key(|(_, one)| one.ends).map(|(at, one)| (at, one.ends));
            match (first, steps.peek()) {
                (Some((which, ends)), next) if next.is_none_or(|next| ends <= at(next)) => {
                    sleep_until(ends.min(until)).await;
                    let healed = active.remove(which);
                    self.heal(system, &healed.fault).await;
                }
                (_, Some(step)) => {
                    sleep_until(at(step)).await;
                    self.inject(system, &step.fault).await;
                    let ends = Instant::now() + Duration::from_millis(step.fault.lasts_ms);
                    active.push(Active { fault: step.fault.clone(), ends });
                    steps.next();
                }
                (_, None) => break,
            }
            changed(system)?;
        }
        sleep_until(until).await;
        Ok(())
    }

    /// The next fault, by the nemesis whose turn it is; none if the cluster allows none now.
    fn choose(&mut self, turn: &mut Vec<usize>, view: &View, active: &[Active]) -> Option<Fault> {
        if turn.is_empty() {
            *turn = self.random.some_of(self.nemeses.len(), self.nemeses.len());
        }
        let fits = |fault: &Fault| active.iter().all(|one| fault.may_overlap(&one.fault));
        for at in (0..turn.len()).rev() {
            let Some(nemesis) = turn.get(at).and_then(|which| self.nemeses.get(*which)) else { continue };
            if let Some(fault) = nemesis.next(&mut self.random, view).filter(fits) {
                turn.remove(at);
                return Some(fault);
            }
        }
        if active.is_empty() {
            turn.clear();
        }
        None
    }

    /// Begin of the next fault: before this one ends for an overlap, else a pause later.
    fn after(&mut self, fault: &Fault, ends: Instant) -> Instant {
        if !fault.is_exclusive() && self.random.below(100) < OVERLAP_PERCENT {
            let lasts_ms = usize::try_from(fault.lasts_ms).unwrap_or(usize::MAX);
            let early = Duration::from_millis(self.random.below(lasts_ms) as u64);
            return ends.checked_sub(early).unwrap_or(ends);
        }
        ends + self.pause()
    }

    fn pause(&mut self) -> Duration {
        let pauses = self.nemeses.iter().map(|nemesis| nemesis.pause_ms());
        let (low, high) = pauses.min().unwrap_or((300, 2_000));
        let span = usize::try_from(high.saturating_sub(low)).unwrap_or_default();
        Duration::from_millis(low.saturating_add(self.random.below(span.saturating_add(1)) as u64))
    }

    async fn inject<S: System>(&mut self, system: &mut S, fault: &Fault) {
        let value = value(fault, false);
        let invocation = self.recorder.begin(Process::Nemesis, Function::Fault, value.clone());
        let done = timeout(FAULT_MAX, system.inject(fault)).await;
        self.end(invocation, value, "inject", done.unwrap_or_else(|_| Err(late())));
    }

    async fn heal<S: System>(&mut self, system: &mut S, fault: &Fault) {
        let value = value(fault, true);
        let invocation = self.recorder.begin(Process::Nemesis, Function::Fault, value.clone());
        let done = timeout(FAULT_MAX, system.heal(fault)).await;
        self.end(invocation, value, "heal", done.unwrap_or_else(|_| Err(late())));
    }

    fn end(&mut self, invocation: Invocation, value: Value, verb: &str, done: Result<Vec<String>>) {
        let Some(fault) = value.fault.clone() else { return };
        match done {
            Ok(evidence) => {
                self.progress.fault(verb, &fault, &evidence);
                self.recorder.end(invocation, Type::Ok, Value { evidence, ..value });
            }
            Err(error) => {
                let text = format!("{error:#}");
                self.progress.fault(&format!("FAILED to {verb}"), &fault, std::slice::from_ref(&text));
                self.failures.push(format!("{verb} {}: {text}", fault.nemesis));
                self.recorder.end(invocation, Type::Info, Value { error: Some(text), ..value });
            }
        }
    }
}

fn late() -> anyhow::Error {
    anyhow::anyhow!("it did not end within {FAULT_MAX:?}")
}

fn value(fault: &Fault, is_heal: bool) -> Value {
    let detail = if is_heal { serde_json::json!({"heal": true}) } else { serde_json::Value::Null };
    Value { fault: Some(fault.clone()), detail, ..Value::default() }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use futures::future::BoxFuture;

    use super::*;
    use crate::live::run::history_file;
    use crate::nemesis;
    use crate::sync::held;

    /// System that records its active faults.
    struct Noted {
        active: Vec<Fault>,
        log: Arc<Mutex<Vec<(bool, Fault)>>>,
    }

    impl System for Noted {
        fn view(&mut self) -> BoxFuture<'_, View> {
            let members: Vec<String> = (1..=3).map(|number| format!("n{number}")).collect();
            let healthy = if self.active.is_empty() { members.clone() } else { Vec::new() };
            let hosts = vec!["c1".to_owned(), "x1".to_owned()];
            let leader = Some("n1".to_owned());
            let view = View { running: members.clone(), leader, hosts, healthy, members };
            Box::pin(async move { view })
        }

        fn inject<'a>(&'a mut self, fault: &'a Fault) -> BoxFuture<'a, Result<Vec<String>>> {
            assert!(self.active.iter().all(|other| fault.may_overlap(other)), "{fault:?} {:?}", self.active);
            self.active.push(fault.clone());
            held(&self.log).push((true, fault.clone()));
            Box::pin(async { Ok(vec!["noted".to_owned()]) })
        }

        fn heal<'a>(&'a mut self, fault: &'a Fault) -> BoxFuture<'a, Result<Vec<String>>> {
            let at = self.active.iter().position(|other| other == fault).unwrap();
            self.active.remove(at);
            held(&self.log).push((false, fault.clone()));
            Box::pin(async { Ok(Vec::new()) })
        }
    }

    /// Faults of one minute, in the order of injection (true) and healing.
    async fn minute(seed: u64) -> Vec<(bool, Fault)> {
        let dir = tempfile::tempdir().unwrap();
        let (writer, written) = history_file::create(&dir.path().join("history.jsonl")).unwrap();
        let recorder = Recorder::new(writer);
        let progress = Progress::new(recorder.clone(), written, true);
        let nemeses = nemesis::all();
        let until = Instant::now() + Duration::from_secs(60);
        let random = Random::new(seed);
        let mut schedule =
            Schedule { nemeses: &nemeses, random, recorder, progress, until, failures: Vec::new() };
        let mut system = Noted { active: Vec::new(), log: Arc::default() };
        schedule.run(&mut system, |_| Ok(())).await.unwrap();
        assert!(system.active.is_empty() && Instant::now() >= until && schedule.failures.is_empty());
        held(&system.log).clone()
    }

    #[tokio::test(start_paused = true)]
    async fn all_nemeses_act_within_a_minute_and_all_faults_heal() {
        let mut overlaps = 0;
        for seed in 0..20 {
            let log = minute(seed).await;
            let mut active: i32 = 0;
            for (is_injected, _) in &log {
                active += if *is_injected { 1 } else { -1 };
                overlaps += i32::from(active > 1);
            }
            let names: std::collections::BTreeSet<_> = log.iter().map(|(_, fault)| &fault.nemesis).collect();
            assert!(names.len() >= 15, "{names:?}");
        }
        assert!(overlaps > 20, "{overlaps}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_seed_gives_the_same_schedule() {
        assert_eq!(minute(5).await, minute(5).await);
        assert_ne!(minute(5).await, minute(6).await);
    }
}
