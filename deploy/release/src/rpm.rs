//! RPM packages with the files and scripts of the Debian packages, built by `rpmbuild`.
//!
//! Each script is `deploy/rpm/prologue.sh`, followed by the script of the Debian package. RPM has no purge:
//! settings and data stay after a removal.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use ipam_image::tree::{Entry, Tree, read};

use crate::debian::{Package, TIME};

/// Scriptlets of RPM, each with the script of the Debian package that it contains.
const SCRIPTLETS: [(&str, &str); 4] =
    [("%pre", "preinst"), ("%post", "postinst"), ("%preun", "prerm"), ("%postun", "postrm")];
/// Number of the package within its version.
const RELEASE: &str = "1";
/// Settings for equal bytes on all machines, without rpmbuild's compression and stripping of files.
const MACROS: [&str; 8] = [
    "_buildhost localhost",
    "use_source_date_epoch_as_buildtime 1",
    "clamp_mtime_to_source_date_epoch 1",
    "_build_id_links none",
    "debug_package %{nil}",
    "__os_install_post %{nil}",
    "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
    "_unpackaged_files_terminate_build 1",
];

impl Package<'_> {
    /// Name of the RPM file.
    pub(crate) fn rpm_file(&self) -> String {
        format!("{}-{}-{RELEASE}.{}.rpm", self.name, self.version, std::env::consts::ARCH)
    }

    /// Builds the RPM package from a tree and the folders of fields and scripts; writes it into `output`.
    ///
    /// # Errors
    /// A file that is missing, or a tree that `rpmbuild` refuses.
    pub(crate) fn build_rpm(&self, tree: &Tree, deploy: &Path, output: &Path) -> Result<()> {
        let work = tempfile::tempdir()?;
        let at = |name: &str| work.path().join(name);
        tree.stage(&at("root"))?;
        fs::write(at("package.spec"), self.spec(tree, deploy)?)?;
        let mut command = Command::new("rpmbuild");
        command.args(["-bb", "--quiet", "--target", std::env::consts::ARCH]).env(TIME, self.time.to_string());
        for define in MACROS {
            command.args(["--define", define]);
        }
        let payload = if self.compression == "xz" { "w6.xzdio" } else { "w1.gzdio" };
        command.args(["--define", &format!("_binary_payload {payload}")]);
        let folders = [("_topdir", at("top")), ("_rpmdir", output.to_owned()), ("staged", at("root"))];
        for (name, folder) in folders {
            command.args(["--define", &format!("{name} {}", absolute(&folder)?.display())]);
        }
        let done = command.arg(at("package.spec")).output().context("can't start rpmbuild (package rpm)")?;
        if !done.status.success() {
            bail!("rpmbuild: {}", String::from_utf8_lossy(&done.stderr).trim());
        }
        Ok(())
    }

    /// Description of the package for `rpmbuild`.
    fn spec(&self, tree: &Tree, deploy: &Path) -> Result<String> {
        let folder = deploy.join("debian").join(self.name);
        let control = self.filled(&read(&folder.join("control"))?)?;
        let (_, description) = control.split_once("\nDescription: ").context("no description")?;
        let (summary, description) = description.split_once('\n').context("no long description")?;
        let description = description.lines().map(|line| line.trim().trim_start_matches('.'));
        let mut spec = format!(
            "Name: {}\nVersion: {}\nRelease: {RELEASE}\nSummary: {summary}\nLicense: Apache-2.0\n\
             AutoReqProv: no\nRequires: bash, coreutils, shadow-utils, systemd\n\n%description\n{}\n\n\
             %install\ncp --archive %{{staged}}/. %{{buildroot}}/\n\n%files\n%defattr(-,root,root,-)\n",
            self.name,
            self.version,
            description.collect::<Vec<_>>().join("\n")
        );
        for own in tree.folders().into_iter().filter(|path| path.split('/').any(|part| part == self.name)) {
            spec += &format!("%dir %attr(0755,root,root) /{own}\n");
        }
        for (path, entry) in tree.iter() {
            spec += &match entry {
                Entry::File(_, mode) => format!("%attr({mode:04o},root,root) /{path}\n"),
                Entry::Link(_) => format!("/{path}\n"),
            };
        }
        let units = tree.iter().filter_map(|(path, _)| path.strip_prefix("lib/systemd/system/"));
        let units = units.collect::<Vec<_>>().join(" ");
        let prologue = String::from_utf8(read(&deploy.join("rpm/prologue.sh"))?)?;
        let prologue = prologue.replace("@NAME@", self.name).replace("@UNITS@", &units);
        for (scriptlet, script) in SCRIPTLETS {
            let path = folder.join(script);
            if path.exists() {
                let prologue = prologue.replace("@SCRIPT@", script);
                let text = format!("{prologue}\n{}", self.filled(&read(&path)?)?);
                spec += &format!("\n{scriptlet} -p /bin/bash\n{}", text.replace('%', "%%"));
            }
        }
        Ok(spec)
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| path.display().to_string())
}
