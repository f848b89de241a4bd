//! Common checks of sections with a Kubernetes API server: count, realm and credentials file.

use std::fs::File;
use std::path::Path;

use ipam_api::limits::KUBERNETES_SECTIONS_MAX;
use ipam_api::name::Name;

use super::error::{ConfigError, wrong};

/// Name of the sections.
pub(super) struct Sections(pub(super) &'static str);

impl Sections {
    fn wrong(&self, key: &str, why: &str) -> ConfigError {
        wrong(&format!("{}.{key}", self.0), why)
    }

    /// Refuses too many sections, and any section in a build without the feature `kubernetes`.
    pub(super) fn check_count(&self, count: usize) -> Result<(), ConfigError> {
        if !cfg!(feature = "kubernetes") && count > 0 {
            return Err(wrong(self.0, "this build has no watcher; use one of `cargo xtask build`"));
        }
        if count > KUBERNETES_SECTIONS_MAX {
            return Err(wrong(self.0, &format!("{count} sections; at most {KUBERNETES_SECTIONS_MAX} fit")));
        }
        Ok(())
    }

    /// Realm of a section.
    pub(super) fn realm(&self, realm: Option<String>) -> Result<Name, ConfigError> {
        let realm = realm.map_or_else(|| Ok(Name::default_name()), |realm| Name::new(&realm));
        realm.map_err(|problem| self.wrong("realm", &problem.detail))
    }

    /// Refuses a context without a kubeconfig file.
    pub(super) fn check_context(
        &self,
        context: Option<&str>,
        kubeconfig: Option<&Path>,
    ) -> Result<(), ConfigError> {
        if context.is_some() && kubeconfig.is_none() {
            return Err(self.wrong("context", "name the kubeconfig that has it"));
        }
        Ok(())
    }

    /// Refuses a file that can't be opened.
    pub(super) fn open(&self, kubeconfig: Option<&Path>) -> Result<(), ConfigError> {
        let Some(file) = kubeconfig else { return Ok(()) };
        let unreadable = |error| self.wrong("kubeconfig", &format!("{}: {error}", file.display()));
        File::open(file).map(drop).map_err(unreadable)
    }
}
