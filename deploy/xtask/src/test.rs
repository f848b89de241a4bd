//! `cargo xtask test`: everything that must hold before a change goes in.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::builder::PossibleValuesParser;

use crate::stage::{Stage, run_all};
use crate::suites::{Suite, run_suite};
use crate::workspace::{Workspace, call};
use crate::{
    binaries, clients, contract, costs, deny, dependencies, features, host_tools, jepsen, kubernetes,
    packages, powercut, release, tidy,
};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Only this stage; may be repeated.
    #[arg(long, value_name = "STAGE", value_parser = PossibleValuesParser::new(STAGES.iter().map(|stage| stage.name)))]
    only: Vec<String>,
    /// Run the stages after a failed one, too.
    #[arg(long)]
    keep_going: bool,
    /// Test the binaries that ship, optimised and static, instead of those that cargo builds for the tests.
    #[arg(long)]
    shipped: bool,
    /// Run the tests that a daily run leaves out, too: RPM packages, and a host with a kernel of its own.
    #[arg(long)]
    by_hand: bool,
    /// Directory with Debian packages of an earlier release, from which tested upgrades begin.
    #[arg(long, value_name = "DIR")]
    previous: Option<PathBuf>,
}

/// The context of all stages.
pub(crate) struct Checkout {
    workspace: Workspace,
    shipped: bool,
    by_hand: bool,
    previous: Option<PathBuf>,
}

/// The stage that builds the binaries that ship.
const SHIPPED: &str = "binaries";

/// The stages in their order. The budgets are for two cores with nothing built yet.
const STAGES: &[Stage<Checkout>] = &[
    stage("packages", 75, "Debian packages that the tests need, and foreign gRPC clients", |checkout| {
        packages::ensure()?;
        packages::ensure_kubectl(&checkout.workspace)?;
        host_tools::ensure(&checkout.workspace)?;
        clients::ensure(&checkout.workspace)
    }),
    // These stages run during the downloads of packages.
    beside(stage("format", 10, "cargo fmt", |checkout| checkout.cargo(&["fmt", "--all", "--check"]))),
    beside(stage("tidy", 10, "the checkout itself, and the features of what ships", |checkout| {
        features::check(&checkout.workspace)?;
        dependencies::check(&checkout.workspace)?;
        tidy::check(&checkout.workspace.root)
    })),
    beside(stage("deny", 20, "dependencies: bans, licences, sources", |checkout| {
        deny::check(&checkout.workspace)
    })),
    beside(stage("lints", 120, "clippy, warnings refused", |checkout| {
        checkout.cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
    })),
    stage("docs", 45, "rustdoc, warnings refused", docs),
    stage(SHIPPED, 360, "what ships, optimised and static (with --shipped only)", |checkout| {
        binaries::build(&checkout.workspace).map(drop)
    }),
    stage("tests", 300, "units, properties, scenarios, storage, plugin", |checkout| {
        checkout.suite(Suite::Rest)
    }),
    stage("cluster", 240, "real processes on loopback, killed and restarted; gRPC clients", |checkout| {
        clients::ensure(&checkout.workspace)?;
        checkout.suite(Suite::Cluster)
    }),
    stage(
        "runtimes",
        270,
        "containerd and podman, killed at bad moments; pods through CRI; claims of Cluster API",
        |checkout| checkout.suite(Suite::Runtimes),
    ),
    beside(stage(
        "release",
        240,
        "release artifacts: packages on Debian, units, manual pages, alerts",
        |checkout| {
            let Checkout { workspace, shipped, by_hand, previous } = checkout;
            release::test(
                workspace,
                &release::Choice { shipped: *shipped, by_hand: *by_hand, previous: previous.as_deref() },
            )
        },
    )),
    beside(stage("namespaces", 110, "real interfaces through real CNI plugins", |checkout| {
        checkout.suite(Suite::Namespaces)
    })),
    beside(stage("hosts", 110, "agents of hosts, and tools that read rendered files", |checkout| {
        host_tools::ensure(&checkout.workspace)?;
        checkout.suite(Suite::Hosts)
    })),
    beside(stage("disks", 75, "full, failing and stalled disks, on file systems in memory", |checkout| {
        checkout.suite(Suite::Disks)
    })),
    beside(stage(
        "kubernetes",
        40,
        "manifests and the Helm chart, against schemas of Kubernetes",
        |checkout| kubernetes::test(&checkout.workspace),
    )),
    beside(stage("powercuts", 110, "members whose power is cut: nothing acknowledged is lost", |checkout| {
        powercut::test(&checkout.workspace, &checkout.ipamd()?)
    })),
    beside(stage(
        "contract",
        90,
        "the OpenAPI document, tried by a generated client and a fuzzer",
        |checkout| contract::run(&checkout.workspace, &checkout.ipamd()?),
    )),
    stage("costs", 120, "instructions and heap blocks of state machine and codecs", |checkout| {
        costs::test(&checkout.workspace)
    }),
    stage("simulation", 240, "simulated clusters: 200 seeds, replays, seeded bugs", |checkout| {
        jepsen::simulate(&checkout.workspace)
    }),
    stage("jepsen", 360, "clusters under faults: each workload, each nemesis, all checkers", |checkout| {
        jepsen::test(&checkout.workspace, &checkout.bin_dir()?, checkout.shipped)
    }),
];

const fn stage(
    name: &'static str,
    budget_seconds: u64,
    what: &'static str,
    run: fn(&Checkout) -> Result<()>,
) -> Stage<Checkout> {
    Stage { name, what, budget: Duration::from_secs(budget_seconds), beside_previous: false, run }
}

const fn beside(stage: Stage<Checkout>) -> Stage<Checkout> {
    Stage { beside_previous: true, ..stage }
}

/// Runs all stages, or the selected ones.
pub(crate) fn run(workspace: Workspace, arguments: &Arguments) -> Result<()> {
    let Arguments { only: _, keep_going: _, shipped, by_hand, previous } = arguments.clone();
    let checkout = Checkout { workspace, shipped, by_hand, previous };
    run_all(&checkout, &chosen(arguments), arguments.keep_going)
}

fn chosen(arguments: &Arguments) -> Vec<&'static Stage<Checkout>> {
    let wanted = |stage: &&Stage<Checkout>| {
        let is_named = arguments.only.iter().any(|name| name == stage.name);
        is_named || arguments.only.is_empty() && (arguments.shipped || stage.name != SHIPPED)
    };
    STAGES.iter().filter(wanted).collect()
}

impl Checkout {
    fn cargo(&self, words: &[&str]) -> Result<()> {
        call(&mut self.workspace.cargo(words))
    }

    fn suite(&self, suite: Suite) -> Result<()> {
        run_suite(&self.workspace, suite, self.shipped)
    }

    /// The daemon under test.
    fn ipamd(&self) -> Result<PathBuf> {
        if !self.shipped {
            return Ok(binaries::build_quickly(&self.workspace, binaries::PROGRAMS)?.join("ipamd"));
        }
        Ok(self.dist()?.join("ipamd"))
    }

    /// Folder with all programs under test.
    fn bin_dir(&self) -> Result<PathBuf> {
        if self.shipped { self.dist() } else { jepsen::build_quickly(&self.workspace) }
    }

    fn dist(&self) -> Result<PathBuf> {
        let dist = self.workspace.dist();
        if !dist.join("ipamd").exists() {
            bail!("{} has no programs; first: cargo xtask build", dist.display());
        }
        Ok(dist)
    }
}

fn docs(checkout: &Checkout) -> Result<()> {
    let words = ["doc", "--workspace", "--no-deps", "--locked"];
    call(checkout.workspace.cargo(words).env("RUSTDOCFLAGS", "-D warnings"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::AT_ONCE;

    fn arguments(only: &[&str], shipped: bool) -> Arguments {
        let only = only.iter().map(|name| (*name).to_owned()).collect();
        Arguments { only, keep_going: false, shipped, by_hand: false, previous: None }
    }

    fn names(arguments: &Arguments) -> Vec<&'static str> {
        chosen(arguments).iter().map(|stage| stage.name).collect()
    }

    /// The longest stage, or the time of all of them in as many threads as run at once.
    fn time_of_group(group: &[&Stage<Checkout>]) -> Duration {
        let longest = group.iter().map(|stage| stage.budget).max().unwrap();
        let all: Duration = group.iter().map(|stage| stage.budget).sum();
        longest.max(all / u32::try_from(AT_ONCE).unwrap())
    }

    /// Twenty minutes, six for faults in clusters, four for simulated ones, and four for packages.
    #[test]
    fn all_budgets_of_a_daily_run_stay_within_the_allowance() {
        let stages = chosen(&arguments(&[], false));
        let groups = stages.chunk_by(|_, next| next.beside_previous);
        let all: Duration = groups.map(time_of_group).sum();
        assert!(all <= Duration::from_secs(34 * 60), "{all:?}");
    }

    #[test]
    fn shipped_binaries_are_built_only_where_they_are_tested() {
        assert!(!names(&arguments(&[], false)).contains(&SHIPPED));
        assert_eq!(names(&arguments(&[], true)).len(), STAGES.len());
        assert_eq!(names(&arguments(&["disks"], true)), ["disks"]);
        assert_eq!(names(&arguments(&[SHIPPED], false)), [SHIPPED]);
    }
}
