//! `ipamctl cluster ca`: a CA in a directory for a lab, and its certificates.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use ipam_api::certificate::Identity;
use ipam_api::{Name, ObjectName};
use serde_json::json;

use super::certificates::{self, Issued, NotIssued};
use crate::client::session::Session;
use crate::output::error::Failure;
use crate::output::file;

pub(super) const EXAMPLES: &str = "Examples:
  ipamctl cluster ca init ./ca
  ipamctl cluster ca issue ./ca member n1 --address 10.0.0.1 --address n1.ipam.example
  ipamctl cluster ca issue ./ca client alice
  ipamctl cluster ca issue ./ca node default/worker-3";

/// File names of the CA in its directory.
const CA_CERTIFICATE: &str = "ca.crt";
const CA_KEY: &str = "ca.key";
/// Longest validity of a certificate, in days.
const DAYS_MAX: i64 = 20 * 365;

/// Verbs of certificates.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Create a certificate authority in a directory
    #[command(
        after_help = "Examples:\n  ipamctl cluster ca init ./ca\n  ipamctl cluster ca init ./ca --days 730"
    )]
    Init {
        /// Directory of the CA, created if absent. The key signs any identity: keep it off the members
        dir: PathBuf,
        /// Common name of the CA
        #[arg(long, value_name = "TEXT")]
        name: Option<String>,
        #[command(flatten)]
        how: CertificateOptions,
    },
    /// Issue a certificate with its key
    #[command(after_help = "Examples:
  ipamctl cluster ca issue ./ca member n1 --address 10.0.0.1
  ipamctl cluster ca issue ./ca client alice --days 90
  ipamctl cluster ca issue ./ca node default/worker-3")]
    Issue {
        /// Directory of the CA
        dir: PathBuf,
        #[command(subcommand)]
        subject: Subject,
    },
}

/// Holder of a certificate.
#[derive(Debug, Subcommand)]
pub(crate) enum Subject {
    /// Certificate of a member, for clients and other members
    #[command(
        after_help = "Examples:\n  ipamctl cluster ca issue ./ca member n1 --address 10.0.0.1 --address n1.ipam.example"
    )]
    Member {
        /// Name of the member, as in its configuration
        name: Name,
        /// Address or host name for clients; may be repeated. Loopback names are included
        #[arg(long = "address", value_name = "HOST")]
        addresses: Vec<String>,
        #[command(flatten)]
        how: CertificateOptions,
    },
    /// Certificate of a client: a person or a program
    #[command(after_help = "Examples:\n  ipamctl cluster ca issue ./ca client alice")]
    Client {
        /// Name of the client
        name: Name,
        #[command(flatten)]
        how: CertificateOptions,
    },
    /// Certificate of a node, for its agent and plugin
    #[command(after_help = "Examples:\n  ipamctl cluster ca issue ./ca node default/worker-3")]
    Node {
        /// Node, as REALM/NAME
        #[arg(value_name = "REALM/NAME", value_parser = node)]
        node: (Name, ObjectName),
        #[command(flatten)]
        how: CertificateOptions,
    },
}

/// Flags of new certificates.
#[derive(Debug, Args)]
pub(crate) struct CertificateOptions {
    /// Validity in days [default: 3650 for a CA, 365 for others]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=DAYS_MAX))]
    days: Option<u32>,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
}

/// Runs a verb.
pub(super) fn run(session: &Session, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Init { dir, name, how } => init(session, &dir, name, &how),
        Verb::Issue { dir, subject } => {
            let (identity, addresses, how) = match subject {
                Subject::Member { name, addresses, how } => (Identity::Member { name }, addresses, how),
                Subject::Client { name, how } => (Identity::Client { name }, Vec::new(), how),
                Subject::Node { node: (realm, name), how } => {
                    (Identity::Node { realm, name }, Vec::new(), how)
                }
            };
            issue(session, &dir, &identity, &addresses, &how)
        }
    }
}

fn init(
    session: &Session,
    dir: &Path,
    name: Option<String>,
    how: &CertificateOptions,
) -> Result<(), Failure> {
    // A random suffix distinguishes CAs of the same name when a certificate isn't trusted.
    let tell_apart: String = uuid::Uuid::new_v4().simple().to_string().chars().take(8).collect();
    let name = name.unwrap_or_else(|| format!("ipamd CA {tell_apart}"));
    let made = certificates::authority(&name, how.days.unwrap_or(3650)).map_err(not_issued)?;
    let (certificate, key) = (dir.join(CA_CERTIFICATE), dir.join(CA_KEY));
    if !session.writing.dry_run {
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|error| unwritten(dir, &error))?;
    }
    write(session, &made, &certificate, &key, how.force)?;
    session.say(&format!(
        "{name}: distribute {}; keep {} secret, since it signs any identity. Next: ipamctl cluster ca issue {} member \
         NAME --address HOST",
        certificate.display(),
        key.display(),
        dir.display()
    ));
    session.data(json!({"certificate": certificate, "key": key}).to_string().as_bytes())?;
    Ok(())
}

fn issue(
    session: &Session,
    dir: &Path,
    identity: &Identity,
    addresses: &[String],
    how: &CertificateOptions,
) -> Result<(), Failure> {
    let dir = std::path::absolute(dir).map_err(|error| unwritten(dir, &error))?;
    let ca = dir.join(CA_CERTIFICATE);
    let authority = Issued { certificate: read(&ca)?, key: read(&dir.join(CA_KEY))? };
    let made =
        certificates::issue(&authority, identity, addresses, how.days.unwrap_or(365)).map_err(not_issued)?;
    let dns_name = identity.dns_name()?;
    let stem = dns_name.strip_suffix(".ipamd.internal").unwrap_or(&dns_name);
    let (certificate, key) = (dir.join(format!("{stem}.crt")), dir.join(format!("{stem}.key")));
    write(session, &made, &certificate, &key, how.force)?;
    let data = json!({"name": dns_name, "certificate": certificate, "key": key, "ca": ca});
    if session.data(data.to_string().as_bytes())? {
        return Ok(());
    }
    session.say(&format!("{dns_name}: {} and {} (keep it secret)", certificate.display(), key.display()));
    session.print(&advice(identity, &certificate, &key, &ca))
}

/// Lines of configuration that use a certificate.
fn advice(identity: &Identity, certificate: &Path, key: &Path, ca: &Path) -> String {
    let (certificate, key, ca) = (certificate.display(), key.display(), ca.display());
    match identity {
        Identity::Member { name } => format!(
            "# {name}: ipamd.toml, with the paths to which you copy the files\n\n[tls]\ncertificate = \"{certificate}\"\n\
             key = \"{key}\"\nclient_ca = \"{ca}\"\n\n[peer_tls]\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n\
             ca = \"{ca}\"\n"
        ),
        Identity::Client { .. } | Identity::Node { .. } => {
            format!(
                "ipamctl --ca-file {ca} --cert-file {certificate} --key-file {key} --server https://MEMBER:7440 status\n"
            )
        }
    }
}

/// Reads `REALM/NAME`.
fn node(text: &str) -> Result<(Name, ObjectName), String> {
    let (realm, name) = text.split_once('/').ok_or("write it as REALM/NAME, for example default/worker-3")?;
    let realm = Name::new(realm).map_err(|problem| problem.detail)?;
    Ok((realm, ObjectName::new(name).map_err(|problem| problem.detail)?))
}

fn read(path: &Path) -> Result<String, Failure> {
    let help = "Choose the directory of a CA; `ipamctl cluster ca init DIR` creates one.";
    std::fs::read_to_string(path).map_err(|error| Failure::file(path, "read", error, help))
}

/// Writes key and certificate atomically, the key first. Only this user can read the key.
fn write(
    session: &Session,
    made: &Issued,
    certificate: &Path,
    key: &Path,
    force: bool,
) -> Result<(), Failure> {
    let there = [certificate, key].into_iter().find(|path| path.exists());
    if let Some(path) = there.filter(|_| !force) {
        return Err(Failure::usage(
            format!("{} is there already", path.display()),
            "--force replaces it; certificates of the replaced CA become invalid.",
        ));
    }
    if session.writing.dry_run {
        session.say("a dry run: nothing was written");
        return Ok(());
    }
    file::replace(key, &made.key, file::PRIVATE).map_err(|error| unwritten(key, &error))?;
    file::replace(certificate, &made.certificate, 0o644).map_err(|error| unwritten(certificate, &error))
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("{}: {error}", path.display()), "Choose a writable directory.")
}

fn not_issued(why: NotIssued) -> Failure {
    Failure::usage(why.0, "Nothing was written.")
}
