//! Contents of the artifacts: the trees of the tarball and of both packages.

use std::path::PathBuf;

use anyhow::Result;
use ipam_image::tree::{DATA, PROGRAM, Tree, read};
use ipam_image::{PROGRAMS, licences};

use crate::documentation::{self, PAGES};
use crate::manual;
use crate::tarball::compressed;

/// Folder of the programs in the units of the sources.
const LOCAL: &str = "/usr/local/bin/";
/// Folder of the programs of packages.
const PACKAGED: &str = "/usr/bin/";

/// Folder of the documentation in the tarball.
const DOCS: &str = "docs/";
/// Folder of the documentation on a host with the package `ipamd`.
const PACKAGED_DOCS: &str = "/usr/share/doc/ipamd/docs/";

/// Sources of the artifacts.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    /// Checkout.
    pub(crate) root: PathBuf,
    /// Folder with the shipped programs.
    pub(crate) binaries: PathBuf,
    /// Licence texts of the crates in the programs.
    pub(crate) licences: String,
}

impl Sources {
    /// Tree of the tarball: `ipamd dev` works from its folder, and hosts without packages install from it.
    ///
    /// # Errors
    /// A file that can't be read, or a program that fails.
    pub(crate) fn tarball(&self) -> Result<Tree> {
        let mut tree = Tree::default();
        for (name, _) in PROGRAMS {
            tree.copy(format!("bin/{name}"), &self.binaries.join(name), PROGRAM)?;
        }
        self.kubectl_plugin(&mut tree)?;
        manual::daemon(&mut tree)?;
        manual::agent(&mut tree)?;
        manual::plugin(&mut tree, &self.plugin_page())?;
        manual::ctl(&mut tree, &self.binaries.join("ipamctl"))?;
        for unit in ["ipamd.service", "ipam-agent.service", "ipamd-backup.service", "ipamd-backup.timer"] {
            tree.copy(format!("systemd/{unit}"), &self.deploy().join("systemd").join(unit), DATA)?;
        }
        for example in ["ipamd.example.toml", "ipam-agent.example.toml"] {
            tree.copy(example, &self.deploy().join(example), DATA)?;
        }
        tree.copy("LICENSE", &self.root.join("LICENSE"), DATA)?;
        for document in documentation::TOP {
            tree.file(document, self.moved(document, DOCS)?, DATA);
        }
        self.documentation(&mut tree, DOCS)?;
        self.monitoring(&mut tree, "monitoring", DOCS)?;
        tree.file(licences::NAME, self.licences.clone(), DATA);
        Ok(tree)
    }

    /// Tree of the package `ipamd`: daemon and command line.
    ///
    /// # Errors
    /// As for [`Self::tarball`].
    pub(crate) fn daemon(&self) -> Result<Tree> {
        let mut usr = Tree::default();
        for name in ["ipamd", "ipamctl"] {
            usr.copy(format!("bin/{name}"), &self.binaries.join(name), PROGRAM)?;
        }
        self.kubectl_plugin(&mut usr)?;
        manual::daemon(&mut usr)?;
        manual::ctl(&mut usr, &self.binaries.join("ipamctl"))?;
        let mut tree = usr.below("usr");
        self.units(&mut tree, &["ipamd.service", "ipamd-backup.service", "ipamd-backup.timer"])?;
        let helper = self.deploy().join("debian/ipamd/backup");
        tree.copy("usr/lib/ipamd/backup", &helper, PROGRAM)?;
        self.documents(&mut tree, "ipamd", "ipamd.example.toml")?;
        self.documentation(&mut tree, PACKAGED_DOCS)?;
        self.monitoring(&mut tree, "usr/share/doc/ipamd/examples/monitoring", PACKAGED_DOCS)?;
        Ok(tree)
    }

    /// Tree of the package `ipam-agent`: agent and plugin.
    ///
    /// # Errors
    /// As for [`Self::tarball`].
    pub(crate) fn agent(&self) -> Result<Tree> {
        let mut usr = Tree::default();
        usr.copy("bin/ipam-agent", &self.binaries.join("ipam-agent"), PROGRAM)?;
        usr.copy("lib/ipam-agent/ipam-cni", &self.binaries.join("ipam-cni"), PROGRAM)?;
        manual::agent(&mut usr)?;
        manual::plugin(&mut usr, &self.plugin_page())?;
        let mut tree = usr.below("usr");
        self.units(&mut tree, &["ipam-agent.service"])?;
        self.documents(&mut tree, "ipam-agent", "ipam-agent.example.toml")?;
        Ok(tree)
    }

    /// Adds the plugin `ipam` of kubectl, and the program that completes its command lines.
    fn kubectl_plugin(&self, tree: &mut Tree) -> Result<()> {
        tree.link("bin/kubectl-ipam", "ipamctl");
        let completer = self.deploy().join("debian/ipamd/kubectl_complete-ipam");
        tree.copy("bin/kubectl_complete-ipam", &completer, PROGRAM)
    }

    /// Adds units with the paths of packages.
    fn units(&self, tree: &mut Tree, names: &[&str]) -> Result<()> {
        for name in names {
            let unit = String::from_utf8(read(&self.deploy().join("systemd").join(name))?)?;
            tree.file(format!("lib/systemd/system/{name}"), unit.replace(LOCAL, PACKAGED), DATA);
        }
        Ok(())
    }

    /// Adds the documentation in a folder.
    fn documentation(&self, tree: &mut Tree, folder: &str) -> Result<()> {
        tree.merge(documentation::of_checkout(&self.root)?.below(folder.trim_matches('/')));
        Ok(())
    }

    /// Text of a document of the top folder, with links into the folder of the documentation.
    fn moved(&self, document: &str, docs: &str) -> Result<String> {
        let text = String::from_utf8(read(&self.root.join(document))?)?;
        Ok(documentation::moved(&text, docs))
    }

    /// Adds rules and dashboards in a folder. Alerts refer to their pages in the folder of the documentation.
    fn monitoring(&self, tree: &mut Tree, folder: &str, docs: &str) -> Result<()> {
        let from = self.deploy().join("monitoring");
        tree.copy_folder(&format!("{folder}/dashboards"), &from.join("dashboards"))?;
        for file in ["alerts.yaml", "slo.yaml"] {
            let text = String::from_utf8(read(&from.join(file))?)?;
            tree.file(format!("{folder}/{file}"), text.replace(PAGES, &format!("{docs}{PAGES}")), DATA);
        }
        Ok(())
    }

    /// Adds example, changelog, copyright, licences, and the overrides of lintian.
    fn documents(&self, tree: &mut Tree, package: &str, example: &str) -> Result<()> {
        let folder = format!("usr/share/doc/{package}");
        tree.copy(format!("{folder}/examples/{example}"), &self.deploy().join(example), DATA)?;
        let changes = self.moved("CHANGELOG.md", PACKAGED_DOCS)?;
        tree.file(format!("{folder}/changelog.gz"), compressed(changes.as_bytes())?, DATA);
        tree.copy(format!("{folder}/copyright"), &self.deploy().join("debian/copyright"), DATA)?;
        let licences = compressed(self.licences.as_bytes())?;
        tree.file(format!("{folder}/{}.gz", licences::NAME), licences, DATA);
        let overrides = self.deploy().join("debian").join(package).join("lintian-overrides");
        tree.copy(format!("usr/share/lintian/overrides/{package}"), &overrides, DATA)
    }

    /// Path of the manual page of the plugin.
    fn plugin_page(&self) -> PathBuf {
        self.deploy().join("release/man/ipam-cni.1")
    }

    fn deploy(&self) -> PathBuf {
        self.root.join("deploy")
    }
}
