//! Permitted dependencies of crates, compared with cargo's resolution.
//!
//! **Invariant:** the manifests of these crates determine their dependencies, so no word list is needed.

use anyhow::{Context as _, Result, bail};

use crate::binaries::SHIPPED;
use crate::workspace::Workspace;

/// The only crate of the workspace that all of [`BOUNDARIES`] may depend on.
const SHARED: &str = "ipam-api";

/// Packages that no tree of [`BOUNDARIES`] may contain.
const REPLICATION: [&str; 2] = ["openraft", "sled"];

/// Package that may depend on no crate of the workspace except [`SHARED`].
struct Boundary {
    package: &'static str,
    /// Packages that its manifest must not name; `ipam-api` may depend on them.
    not_directly: &'static [&'static str],
}

/// Crates of tests, which no shipped program may depend on.
const OF_TESTS: [&str; 1] = ["test-apiserver"];

const BOUNDARIES: [Boundary; 7] = [
    // The state machine is pure: no I/O, no runtime, no TLS.
    Boundary { package: "ipam-machine", not_directly: &["rustls", "tokio"] },
    // Clients depend on the API only.
    Boundary { package: "ipamctl", not_directly: &[] },
    Boundary { package: "ipam-cni", not_directly: &[] },
    Boundary { package: "ipam-agent", not_directly: &[] },
    Boundary { package: "ipam-kubernetes", not_directly: &[] },
    Boundary { package: "ipam-meridio", not_directly: &[] },
    // The test server simulates another system.
    Boundary { package: "test-apiserver", not_directly: &[] },
];

/// Reads cargo's tree of each package, and refuses dependencies beyond its boundary.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let mut complaints = Vec::new();
    for boundary in &BOUNDARIES {
        complaints.extend(boundary.complaints(&tree(workspace, boundary.package)?));
    }
    for (package, _) in SHIPPED {
        complaints.extend(of_tests(package, &tree(workspace, package)?));
    }
    for complaint in &complaints {
        println!("{complaint}");
    }
    if !complaints.is_empty() {
        bail!("{} dependencies too many", complaints.len());
    }
    Ok(())
}

/// The tree of a package: a line for each dependency, with its depth in front.
fn tree(workspace: &Workspace, package: &str) -> Result<String> {
    let words = ["tree", "--locked", "--package", package, "--edges", "normal,build", "--prefix", "depth"];
    let output = workspace.cargo(words).output().context("can't start cargo")?;
    if !output.status.success() {
        bail!("cargo tree of {package} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("the name of a package is not UTF-8")
}

/// Complaints about crates of tests in the tree of a shipped program.
fn of_tests(package: &str, tree: &str) -> Vec<String> {
    let names = tree.lines().map(|line| line.trim_start_matches(|c: char| c.is_ascii_digit()));
    let names = names.filter_map(|entry| entry.split(' ').next());
    names.filter(|name| OF_TESTS.contains(name)).map(|name| format!("{package}: ships {name}")).collect()
}

impl Boundary {
    /// Complaints about the lines of a tree, such as `1ipam-api v0.1.0 (/src/api)`.
    fn complaints(&self, tree: &str) -> Vec<String> {
        let mut complaints = Vec::new();
        // The first line is the package itself.
        for line in tree.lines().skip(1) {
            let entry = line.trim_start_matches(|c: char| c.is_ascii_digit());
            let name = entry.split(' ').next().unwrap_or_default();
            // Only a crate of the workspace has a path.
            if entry.contains(" (/") && name != SHARED {
                complaints
                    .push(format!("{}: depends on {name}; of the workspace only {SHARED}", self.package));
            }
            let direct = line.strip_prefix('1') == Some(entry);
            if REPLICATION.contains(&name) || (direct && self.not_directly.contains(&name)) {
                complaints.push(format!("{}: depends on {name}", self.package));
            }
        }
        complaints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "0ipam-machine v0.1.0 (/src/raft/machine)\n\
                        1ipam-api v0.1.0 (/src/api)\n\
                        2tokio v1.54.0\n\
                        3tokio-macros v2.7.0 (proc-macro)\n\
                        1serde v1.0.228 (*)\n";

    fn complaints(package: &str, more: &str) -> usize {
        let boundary = BOUNDARIES.iter().find(|boundary| boundary.package == package).unwrap();
        boundary.complaints(&format!("{TREE}{more}")).len()
    }

    #[test]
    fn dependencies_of_the_shared_crate_are_permitted() {
        for boundary in &BOUNDARIES {
            assert_eq!(complaints(boundary.package, ""), 0, "{}", boundary.package);
        }
    }

    #[test]
    fn other_crates_of_the_workspace_are_refused() {
        for boundary in &BOUNDARIES {
            assert_eq!(complaints(boundary.package, "1ipam-raft v0.1.0 (/src/raft)\n"), 1);
        }
    }

    #[test]
    fn replication_is_refused_at_any_depth() {
        for line in ["1openraft v0.10.0-alpha.37\n", "12sled v0.34.7\n"] {
            for boundary in &BOUNDARIES {
                assert_eq!(complaints(boundary.package, line), 1, "{line}");
            }
        }
    }

    #[test]
    fn no_shipped_program_has_a_crate_of_tests() {
        assert_eq!(of_tests("ipamd", TREE), Vec::<String>::new());
        let tree = format!("{TREE}2test-apiserver v0.1.0 (/src/daemon/kubernetes/apiserver)\n");
        assert_eq!(of_tests("ipamd", &tree), ["ipamd: ships test-apiserver"]);
    }

    #[test]
    fn the_machine_names_no_runtime_and_no_tls() {
        for name in ["tokio", "rustls"] {
            assert_eq!(complaints("ipam-machine", &format!("1{name} v1.0.0\n")), 1, "{name}");
            assert_eq!(complaints("ipam-machine", &format!("2{name} v1.0.0\n")), 0, "{name}");
        }
        assert_eq!(complaints("ipamctl", "1tokio v1.54.0\n"), 0);
    }
}
