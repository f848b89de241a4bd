//! `cargo xtask test`: everything that must hold before a change goes in.

use std::time::Duration;

use anyhow::Result;
use clap::builder::PossibleValuesParser;

use crate::stage::{Outcome, Stage, run_all};
use crate::suites::{Suite, run_suite};
use crate::workspace::{Workspace, call};
use crate::{binaries, contract, packages, plugin, powercut, tidy};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only this stage; may be repeated. The tests run the binaries that the stage `binaries` left behind.
    #[arg(long, value_name = "STAGE", value_parser = PossibleValuesParser::new(STAGES.iter().map(|stage| stage.name)))]
    only: Vec<String>,
    /// Run the stages after a failed one, too.
    #[arg(long)]
    keep_going: bool,
}

/// The stages in their order. The budgets are for two cores with nothing built yet.
const STAGES: &[Stage<Workspace>] = &[
    stage("packages", 60, "Debian packages that the tests need", |_| packages::ensure().map(passed)),
    stage("format", 10, "cargo fmt", format),
    stage("lints", 180, "clippy, warnings refused", lints),
    stage("docs", 120, "rustdoc, warnings refused", docs),
    stage("deny", 30, "what we depend on: bans, licences, sources", deny),
    stage("tidy", 10, "the checkout itself", |workspace| {
        plugin::check(workspace)?;
        tidy::check(&workspace.root).map(passed)
    }),
    stage("binaries", 360, "what ships, optimised and static; the tests run it", |workspace| {
        binaries::build(workspace).map(passed)
    }),
    stage("next-level", 240, "a debug build of the next feature level, to upgrade to", |workspace| {
        binaries::build_next_level(workspace).map(passed)
    }),
    stage("tests", 300, "units, properties, scenarios, storage, plugin", |workspace| {
        run_suite(workspace, Suite::Rest)
    }),
    stage("cluster", 360, "real processes on loopback, killed and restarted", |workspace| {
        run_suite(workspace, Suite::Cluster)
    }),
    stage("namespaces", 90, "real interfaces through real CNI plugins", |workspace| {
        run_suite(workspace, Suite::Namespaces)
    }),
    stage("powercuts", 120, "members whose power is cut: nothing acknowledged is lost", |workspace| {
        powercut::test(workspace).map(passed)
    }),
    stage("disks", 120, "full, failing and stalled disks, on file systems in memory", |workspace| {
        run_suite(workspace, Suite::Disks)
    }),
    stage("contract", 150, "what the OpenAPI document says, tried by a fuzzer", |workspace| {
        contract::run(workspace).map(passed)
    }),
    stage("examples", 60, "the examples in the documentation", examples),
];

const fn stage(
    name: &'static str,
    budget_seconds: u64,
    what: &'static str,
    run: fn(&Workspace) -> Result<Outcome>,
) -> Stage<Workspace> {
    Stage { name, what, budget: Duration::from_secs(budget_seconds), run }
}

/// Runs all stages, or those that were asked for.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let wanted = |stage: &&Stage<Workspace>| {
        arguments.only.is_empty() || arguments.only.iter().any(|name| name == stage.name)
    };
    let stages: Vec<&Stage<Workspace>> = STAGES.iter().filter(wanted).collect();
    run_all(workspace, &stages, arguments.keep_going)
}

fn passed<T>(_: T) -> Outcome {
    Outcome::Passed
}

fn format(workspace: &Workspace) -> Result<Outcome> {
    call(&mut workspace.cargo(["fmt", "--all", "--check"])).map(passed)
}

fn lints(workspace: &Workspace) -> Result<Outcome> {
    let words = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    call(&mut workspace.cargo(words)).map(passed)
}

fn docs(workspace: &Workspace) -> Result<Outcome> {
    call(workspace.cargo(["doc", "--workspace", "--no-deps", "--locked"]).env("RUSTDOCFLAGS", "-D warnings"))
        .map(passed)
}

fn deny(workspace: &Workspace) -> Result<Outcome> {
    if !workspace.has_cargo_tool("deny") {
        let text = "cargo-deny is not installed, so bans, licences and sources were NOT checked\n\
                    to get it: cargo install cargo-deny --locked";
        return Ok(Outcome::Without(text.to_owned()));
    }
    // Advisories would need a clone of their database, which a machine without internet can't have.
    call(&mut workspace.cargo(["deny", "check", "bans", "licenses", "sources"])).map(passed)
}

fn examples(workspace: &Workspace) -> Result<Outcome> {
    call(&mut workspace.cargo(["test", "--workspace", "--locked", "--doc"])).map(passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_budgets_together_stay_under_forty_five_minutes() {
        let all: Duration = STAGES.iter().map(|stage| stage.budget).sum();
        assert!(all < Duration::from_secs(45 * 60), "{all:?}");
    }
}
