//! `ipamctl man`: manual pages from the grammar of the command line, for packages.

use std::path::Path;

use clap::CommandFactory as _;

use crate::client::session::Session;
use crate::grammar::arguments::Arguments;
use crate::output::error::Failure;

/// Writes one page per command into a folder.
pub(crate) fn run(session: &Session, folder: &Path) -> Result<(), Failure> {
    let cannot =
        |error: std::io::Error| Failure::file(folder, "written", error, "Choose a writable directory.");
    std::fs::create_dir_all(folder).map_err(cannot)?;
    clap_mangen::generate_to(Arguments::command(), folder).map_err(cannot)?;
    session.say(&format!("manual pages written to {}", folder.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{code, run_within};

    #[tokio::test]
    async fn every_command_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let line = format!("man {}", folder.path().display());
        assert_eq!(
            code(&run_within(&crate::settings::environment::Environment::default(), &line).await.0),
            0
        );
        let page = std::fs::read_to_string(folder.path().join("ipamctl-pool-create.1")).unwrap();
        assert!(page.contains("10.10.0.50") && page.contains("\\-\\-subnet"), "{page}");
        assert!(folder.path().join("ipamctl.1").exists());
        let files = std::fs::read_dir(folder.path()).unwrap().count();
        let mut command = Arguments::command();
        command.build();
        let verbs: usize =
            command.get_subcommands().map(|resource_type| 1 + resource_type.get_subcommands().count()).sum();
        assert!(files > 40 && files <= verbs + 1, "{files} of {verbs}");
    }
}
