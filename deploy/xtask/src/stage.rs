//! Stages of a run: each announced, timed, and held against its budget at the end.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Stages of a group that run at once: with more of them on two cores, timers of their tests fire late.
pub(crate) const AT_ONCE: usize = 3;

pub(crate) struct Stage<Context> {
    /// Name of the stage, as `--only` expects it.
    pub(crate) name: &'static str,
    /// Description, in a few words.
    pub(crate) what: &'static str,
    /// Longest time that the stage may take on two cores with nothing built yet.
    pub(crate) budget: Duration,
    /// True if the stage is in the group of the previous stage and may run at the same time.
    pub(crate) beside_previous: bool,
    /// Function of the stage.
    pub(crate) run: fn(&Context) -> Result<()>,
}

#[derive(Clone, Copy)]
enum StageResult {
    Ended { passed: bool, took: Duration },
    NotRun,
}

/// Runs `stages` in order. The first failure ends the run unless `keep_going`.
pub(crate) fn run_all<Context: Sync>(
    context: &Context,
    stages: &[&Stage<Context>],
    keep_going: bool,
) -> Result<()> {
    let began = Instant::now();
    let mut rows = Vec::new();
    let mut failed: Vec<&str> = Vec::new();
    for group in stages.chunk_by(|_, next| next.beside_previous) {
        if !failed.is_empty() && !keep_going {
            rows.extend(group.iter().map(|stage| row(stage.name, stage.budget, &StageResult::NotRun)));
            continue;
        }
        for (stage, result) in group.iter().zip(run_group(context, group)) {
            if !matches!(result, StageResult::Ended { passed: true, .. }) {
                failed.push(stage.name);
            }
            rows.push(row(stage.name, stage.budget, &result));
        }
    }
    println!("\n{}", table(&rows, began.elapsed()));
    match failed.first() {
        None => Ok(()),
        Some(first) => bail!("failed: {}; only that again: {}", failed.join(", "), again(first)),
    }
}

/// Runs the stages of a group, in order, at most [`AT_ONCE`] at the same time.
fn run_group<Context: Sync>(context: &Context, group: &[&Stage<Context>]) -> Vec<StageResult> {
    let results = Mutex::new(vec![StageResult::NotRun; group.len()]);
    let waiting = Mutex::new(group.iter().enumerate());
    let next = || waiting.lock().ok()?.next();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(group.len()) {
            scope.spawn(|| {
                while let Some((number, stage)) = next() {
                    let result = run_one(context, stage);
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(place) = results.get_mut(number) {
                        *place = result;
                    }
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn run_one<Context>(context: &Context, stage: &Stage<Context>) -> StageResult {
    println!("\n== {}: {}", stage.name, stage.what);
    let began = Instant::now();
    let outcome = (stage.run)(context);
    if let Err(error) = &outcome {
        warn(&format!("{} failed: {error:#}\nonly this again: {}", stage.name, again(stage.name)));
    }
    StageResult::Ended { passed: outcome.is_ok(), took: began.elapsed() }
}

fn again(name: &str) -> String {
    format!("cargo xtask test --only {name}")
}

/// Prints a warning.
fn warn(text: &str) {
    println!();
    for line in text.lines() {
        println!("!!! {line}");
    }
}

struct Row {
    name: String,
    result: &'static str,
    took: Duration,
    budget: Duration,
}

fn row(name: &str, budget: Duration, result: &StageResult) -> Row {
    let (result, took) = match result {
        StageResult::Ended { passed: true, took } => ("ok", *took),
        StageResult::Ended { passed: false, took } => ("FAILED", *took),
        StageResult::NotRun => ("not run", Duration::ZERO),
    };
    Row { name: name.to_owned(), result, took, budget }
}

/// The table of all stages; `took` is the time of the whole run, in which some ran at the same time.
fn table(rows: &[Row], took: Duration) -> String {
    let mut lines = vec![format!("{:<12}{:<12}{:>7}{:>9}", "stage", "result", "took", "budget")];
    let budget = rows.iter().map(|row| row.budget).sum();
    let total = Row { name: "all".to_owned(), result: "", took, budget };
    for row in rows.iter().chain([&total]) {
        let over = if row.took > row.budget { "  over its budget" } else { "" };
        let Row { name, result, took, budget } = row;
        lines.push(format!("{name:<12}{result:<12}{:>7}{:>9}{over}", clock(*took), clock(*budget)));
    }
    lines.join("\n")
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Log = Mutex<Vec<&'static str>>;

    fn stages() -> [Stage<Log>; 3] {
        let budget = Duration::from_secs(60);
        [
            Stage {
                name: "a",
                what: "",
                budget,
                beside_previous: false,
                run: |log| {
                    log.lock().unwrap().push("a");
                    Ok(())
                },
            },
            Stage {
                name: "b",
                what: "",
                budget,
                beside_previous: false,
                run: |log| {
                    log.lock().unwrap().push("b");
                    bail!("no")
                },
            },
            Stage {
                name: "c",
                what: "",
                budget,
                beside_previous: false,
                run: |log| {
                    log.lock().unwrap().push("c");
                    Ok(())
                },
            },
        ]
    }

    #[test]
    fn the_first_failure_ends_the_run_and_names_the_stage() {
        let (log, stages) = (Log::default(), stages());
        let error = run_all(&log, &stages.iter().collect::<Vec<_>>(), false).unwrap_err();
        assert_eq!(*log.lock().unwrap(), ["a", "b"]);
        assert_eq!(error.to_string(), "failed: b; only that again: cargo xtask test --only b");
    }

    #[test]
    fn keep_going_runs_the_rest_and_still_fails() {
        let (log, stages) = (Log::default(), stages());
        assert!(run_all(&log, &stages.iter().collect::<Vec<_>>(), true).is_err());
        assert_eq!(*log.lock().unwrap(), ["a", "b", "c"]);
    }

    #[test]
    fn a_stage_beside_another_does_not_wait_for_it() {
        // Each stage waits until the other one runs.
        let wait: fn(&std::sync::Barrier) -> Result<()> = |both| {
            both.wait();
            Ok(())
        };
        let stage = |name, beside_previous| Stage {
            name,
            what: "",
            budget: Duration::from_secs(60),
            beside_previous,
            run: wait,
        };
        let (one, other) = (stage("a", false), stage("b", true));
        run_all(&std::sync::Barrier::new(2), &[&one, &other], false).unwrap();
    }

    #[test]
    fn a_large_group_has_a_limit_of_stages_at_once() {
        struct Context {
            together: std::sync::Barrier,
            /// Stages that run, and the most that ever did.
            running: Mutex<(usize, usize)>,
        }
        let run: fn(&Context) -> Result<()> = |context| {
            context.running.lock().unwrap().0 += 1;
            context.together.wait();
            let mut running = context.running.lock().unwrap();
            running.1 = running.1.max(running.0);
            running.0 -= 1;
            Ok(())
        };
        let stage = Stage { name: "a", what: "", budget: Duration::ZERO, beside_previous: true, run };
        let context = Context { together: std::sync::Barrier::new(AT_ONCE), running: Mutex::default() };
        run_all(&context, &[&stage; 2 * AT_ONCE], false).unwrap();
        assert_eq!(*context.running.lock().unwrap(), (0, AT_ONCE));
    }

    #[test]
    fn the_table_says_what_took_too_long() {
        let seconds = Duration::from_secs;
        let rows = [
            row("lints", seconds(180), &StageResult::Ended { passed: true, took: seconds(61) }),
            row("docs", seconds(5), &StageResult::Ended { passed: false, took: seconds(6) }),
            row("tests", seconds(5), &StageResult::NotRun),
        ];
        let expected = "\
stage       result         took   budget
lints       ok             1:01     3:00
docs        FAILED         0:06     0:05  over its budget
tests       not run        0:00     0:05
all                        1:07     3:10";
        assert_eq!(table(&rows, seconds(67)), expected);
    }
}
