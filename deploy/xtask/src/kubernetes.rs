//! Checks of the Kubernetes manifests and of the Helm chart that is generated from them.

use anyhow::Result;

use crate::suites::{Suite, run_suite};
use crate::workspace::{Workspace, call};
use crate::{packages, python};

/// Name of the Python environment with the validator.
const VALIDATOR: &str = "kubernetes";

/// Installs the tools, and runs the tests of the manifests.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    packages::ensure_kubectl(workspace)?;
    python::environment(workspace, VALIDATOR)?;
    run_suite(workspace, Suite::Kubernetes, false)
}

/// `cargo xtask chart`: writes the Helm chart anew.
pub(crate) fn write_chart(workspace: &Workspace) -> Result<()> {
    packages::ensure_kubectl(workspace)?;
    let mut command = workspace.cargo(["nextest", "run", "--workspace", "--locked", "-E"]);
    command.arg("package(ipam-manifests) & test(=chart::the_committed_chart_is_made_of_the_manifests)");
    call(command.env("UPDATE", "1"))
}
