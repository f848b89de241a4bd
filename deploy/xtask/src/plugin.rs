//! What the plugin may not have in it: it runs once per container, and pays for whatever is linked.

use anyhow::{Context as _, Result, bail};

use crate::workspace::Workspace;

/// A TLS stack that is merely linked costs milliseconds per run.
const UNWANTED: [&str; 4] = ["rustls", "ring", "native-tls", "openssl-sys"];

/// Asks cargo what the plugin alone is built of.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let words = ["tree", "--locked", "--package", "ipam-cni", "--edges", "normal", "--prefix", "none"];
    let output = workspace.cargo(words).output().context("can't start cargo")?;
    if !output.status.success() {
        bail!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let tree = String::from_utf8_lossy(&output.stdout);
    match unwanted(&tree) {
        Some(line) => {
            bail!("ipam-cni is built of {line}; the plugin has no TLS in it (feature `tls` of ipam-api)")
        }
        None => Ok(()),
    }
}

/// The first line of cargo's tree that names a crate that may not be there.
fn unwanted(tree: &str) -> Option<&str> {
    tree.lines().find(|line| line.split(' ').next().is_some_and(|name| UNWANTED.contains(&name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tls_stack_is_found_wherever_it_hides() {
        assert_eq!(unwanted("ipam-cni v0.1.0 (/x)\nreqwest v0.13.5\nstringy v1.0.0\n"), None);
        assert_eq!(unwanted("reqwest v0.13.5\nrustls v0.23.46 (*)\n"), Some("rustls v0.23.46 (*)"));
    }
}
