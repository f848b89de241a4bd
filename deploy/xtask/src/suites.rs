//! Test suites, divided by the module of a test: each suite uses the machine in its own way.

use anyhow::{Result, bail};

use crate::workspace::{Workspace, call};

/// Suite of tests that use the machine in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suite {
    Rest,
    Cluster,
    Namespaces,
    Hosts,
    Runtimes,
    Disks,
    Kubernetes,
}

/// Tests of the real programs, of which some need the machine in a way of their own.
const PROGRAMS: &str = "package(ipamd) & kind(test)";

/// Tests of the Kubernetes manifests, which need tools of their own.
const MANIFESTS: &str = "package(ipam-manifests)";

/// Tests of the release artifacts, which a stage of their own writes.
const RELEASE: &str = "package(ipam-release) & kind(test)";

/// Runs a suite with cargo-nextest, on the shipped binaries if `shipped`, else on cargo's test builds.
pub(crate) fn run_suite(workspace: &Workspace, suite: Suite, shipped: bool) -> Result<()> {
    if !workspace.has_cargo_tool("nextest") {
        bail!(
            "cargo-nextest runs the tests and is not installed; first: cargo install cargo-nextest --locked"
        );
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut command = workspace.cargo(suite.arguments(cores));
    if shipped {
        let dist = workspace.dist();
        if !dist.join("ipamd").exists() {
            bail!("{} has no ipamd; first: cargo xtask build", dist.display());
        }
        command.arg("--ignore-default-filter").env("IPAMD_BIN_DIR", dist);
    }
    call(&mut command)
}

impl Suite {
    /// Arguments of cargo that run the suite.
    fn arguments(self, cores: usize) -> Vec<String> {
        let mut words = ["nextest", "run", "--workspace", "--locked"].map(str::to_owned).to_vec();
        words.extend(["-E".to_owned(), self.filter()]);
        if matches!(self, Self::Rest | Self::Cluster) {
            // Members and clients wait for each other most of the time.
            words.extend(["--test-threads".to_owned(), (3 * cores).to_string()]);
        }
        words
    }

    fn filter(self) -> String {
        match self.modules() {
            Some(modules) => format!("{PROGRAMS} & test(/^({modules})::/)"),
            None if self == Self::Kubernetes => MANIFESTS.to_owned(),
            None => {
                let others =
                    [Self::Cluster, Self::Namespaces, Self::Hosts, Self::Runtimes, Self::Disks].into_iter();
                let others: Vec<&str> = others.filter_map(Self::modules).collect();
                format!(
                    "not ({PROGRAMS} & test(/^({})::/)) & not {MANIFESTS} & not ({RELEASE})",
                    others.join("|")
                )
            }
        }
    }

    /// Modules of `daemon/tests/` that belong to the suite; none for other packages.
    fn modules(self) -> Option<&'static str> {
        match self {
            Self::Rest | Self::Kubernetes => None,
            Self::Cluster => Some("cluster|kill|meridio"),
            Self::Namespaces => Some("namespace|namespace_operating|manifests"),
            Self::Hosts => Some("hosts"),
            Self::Runtimes => Some("runtimes|kubernetes"),
            Self::Disks => Some("disks"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_is_in_one_suite() {
        assert_eq!(Suite::Disks.filter(), "package(ipamd) & kind(test) & test(/^(disks)::/)");
        let others =
            "cluster|kill|meridio|namespace|namespace_operating|manifests|hosts|runtimes|kubernetes|disks";
        assert_eq!(
            Suite::Rest.filter(),
            format!(
                "not (package(ipamd) & kind(test) & test(/^({others})::/)) & not package(ipam-manifests) \
                 & not (package(ipam-release) & kind(test))"
            )
        );
    }

    #[test]
    fn clusters_run_beside_each_other() {
        let words = Suite::Cluster.arguments(2).join(" ");
        let filter = "package(ipamd) & kind(test) & test(/^(cluster|kill|meridio)::/)";
        assert_eq!(words, format!("nextest run --workspace --locked -E {filter} --test-threads 6"));
        assert!(!Suite::Disks.arguments(2).join(" ").contains("threads"));
    }

    /// A renamed module would no longer belong to its suite.
    #[test]
    fn every_module_is_there() {
        let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../daemon/tests");
        for suite in [Suite::Cluster, Suite::Namespaces, Suite::Hosts, Suite::Runtimes, Suite::Disks] {
            for module in suite.modules().unwrap().split('|') {
                assert!(tests.join(module).join("mod.rs").exists(), "{module}");
            }
        }
    }
}
