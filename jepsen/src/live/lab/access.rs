//! Access: certificates and tokens of a lab with TLS, made by `ipamctl`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use ipam_api::client::Options;

use crate::live::network::Host;

/// Files of a member's certificate.
#[derive(Debug, Clone)]
pub(super) struct Holder {
    ca: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Holder {
    /// Adds the options of `ipamd serve`.
    pub(super) fn serve(&self, command: &mut Command) {
        for (flag, file) in [
            ("--tls-certificate", &self.certificate),
            ("--tls-key", &self.key),
            ("--tls-client-ca", &self.ca),
            ("--peer-tls-certificate", &self.certificate),
            ("--peer-tls-key", &self.key),
            ("--peer-tls-ca", &self.ca),
        ] {
            command.arg(flag).arg(file);
        }
    }
}

/// CA and token of a lab.
#[derive(Debug)]
pub(super) struct Access {
    dir: PathBuf,
    ipamctl: PathBuf,
}

impl Access {
    /// Makes a CA in `dir`.
    pub(super) fn make(dir: PathBuf, ipamctl: &Path) -> Result<Self> {
        call(ipamctl, ["cluster".as_ref(), "ca".as_ref(), "init".as_ref(), dir.as_os_str()])?;
        Ok(Self { dir, ipamctl: ipamctl.to_owned() })
    }

    /// Issues a certificate for the member on a host.
    pub(super) fn issue(&self, host: &Host) -> Result<Holder> {
        let (ipv4, ipv6) = (host.ipv4.to_string(), host.ipv6.to_string());
        let before = ["cluster".as_ref(), "ca".as_ref(), "issue".as_ref(), self.dir.as_os_str()];
        let after = ["member", &host.name, "--address", &ipv4, "--address", &ipv6, "--force"];
        call(&self.ipamctl, before.into_iter().chain(after.map(OsStr::new)))?;
        let file = |ending| self.dir.join(format!("{}.member.{ending}", host.name));
        Ok(Holder { ca: self.ca(), certificate: file("crt"), key: file("key") })
    }

    /// Certificate of the CA.
    fn ca(&self) -> PathBuf {
        self.dir.join("ca.crt")
    }

    fn token(&self) -> PathBuf {
        self.dir.join("clients.token")
    }

    /// Creates the administrator's token of all clients, through a member's socket.
    pub(super) fn make_token(&self, server: &str) -> Result<()> {
        let file = self.token();
        let words = ["--server", server, "token", "create", "jepsen", "--role", "admin", "--to-file"];
        call(&self.ipamctl, words.into_iter().map(OsStr::new).chain([file.as_os_str()]))
    }

    /// Options of all clients.
    pub(super) fn options(&self) -> Options {
        Options { ca_file: Some(self.ca()), token_file: Some(self.token()), ..Options::default() }
    }
}

/// Runs `ipamctl` to its end.
pub(super) fn call<S: AsRef<OsStr>>(ipamctl: &Path, words: impl IntoIterator<Item = S>) -> Result<()> {
    let mut command = Command::new(ipamctl);
    command.env_clear().args(words);
    let output = command.output().with_context(|| ipamctl.display().to_string())?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
