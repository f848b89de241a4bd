//! `ipamctl kubernetes secrets`: the CA, and the certificates of members and of the administrator.

use clap::Args;
use ipam_api::Name;
use ipam_api::certificate::Identity;

use super::api::{Api, ApiArguments, Secret};
use crate::client::session::Session;
use crate::command::cluster::certificates::{self, Issued, NotIssued};
use crate::output::error::Failure;

/// Secret with the key of the CA. No pod mounts it.
const CA: &str = "ipamd-ca";
/// Secret with the certificates of all members.
const TLS: &str = "ipamd-tls";
/// Secret with the certificate of the CA, for agents.
const TRUST: &str = "ipamd-trust";
/// Secret with the certificate of the administrator.
const ADMIN: &str = "ipamd-admin";
/// Key of the certificate of the CA in all Secrets.
const CA_CERTIFICATE: &str = "ca.crt";
const CA_KEY: &str = "ca.key";
/// Validity of the CA, in days.
const CA_DAYS: u32 = 3650;

/// Certificates to create.
#[derive(Debug, Args)]
pub(crate) struct SecretsArguments {
    /// Name of a member; repeated for each
    #[arg(long = "member", value_name = "NAME", required = true)]
    members: Vec<Name>,
    /// Domain of the members: MEMBER.DOMAIN is a host name of each
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,
    /// Address or host name of all members, such as that of a load balancer; may be repeated
    #[arg(long = "address", value_name = "HOST")]
    addresses: Vec<String>,
    /// Name of the administrator in access.clients
    #[arg(long, value_name = "NAME", default_value = "ipamctl")]
    admin: Name,
    /// Validity of the certificates in days
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
}

/// Runs the command. Each Secret is created as a whole or not at all, so that a repetition completes the
/// others.
pub(super) async fn run(
    session: &Session,
    api: &ApiArguments,
    arguments: &SecretsArguments,
) -> Result<(), Failure> {
    let api = Api::of(session, api)?;
    let mut missing = Vec::new();
    for name in [TRUST, TLS, ADMIN] {
        match api.find(name).await? {
            Some(_) => session.say(&format!("Secret {name} exists")),
            None => missing.push(name),
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let ca = match api.find(CA).await? {
        Some(secret) => read(&secret)?,
        None if missing.len() < 3 => return Err(supplied_in_part(&missing)),
        None if session.writing.dry_run => {
            would_create(session, &[&[CA], &missing[..]].concat());
            return Ok(());
        }
        None => {
            let ca = certificates::authority("ipamd CA in Kubernetes", CA_DAYS).map_err(not_issued)?;
            let texts = [(CA_CERTIFICATE.to_owned(), &*ca.certificate), (CA_KEY.to_owned(), &*ca.key)];
            create(session, &api, CA, &texts).await?;
            ca
        }
    };
    if session.writing.dry_run {
        would_create(session, &missing);
        return Ok(());
    }
    for name in missing {
        let issued = match name {
            TLS => arguments.members(&ca)?,
            ADMIN => vec![("tls".to_owned(), arguments.issue(&ca, &arguments.admin_identity(), &[])?)],
            _ => Vec::new(),
        };
        let mut texts = vec![(CA_CERTIFICATE.to_owned(), &*ca.certificate)];
        for (stem, Issued { certificate, key }) in &issued {
            texts.extend([
                (format!("{stem}.crt"), certificate.as_str()),
                (format!("{stem}.key"), key.as_str()),
            ]);
        }
        create(session, &api, name, &texts).await?;
    }
    Ok(())
}

impl SecretsArguments {
    /// Certificates of all members by their names.
    fn members(&self, ca: &Issued) -> Result<Vec<(String, Issued)>, Failure> {
        let issue = |name: &Name| {
            let own = self.domain.iter().map(|domain| format!("{name}.{domain}"));
            let hosts: Vec<String> = own.chain(self.addresses.iter().cloned()).collect();
            Ok((name.to_string(), self.issue(ca, &Identity::Member { name: name.clone() }, &hosts)?))
        };
        self.members.iter().map(issue).collect()
    }

    fn admin_identity(&self) -> Identity {
        Identity::Client { name: self.admin.clone() }
    }

    fn issue(&self, ca: &Issued, identity: &Identity, hosts: &[String]) -> Result<Issued, Failure> {
        certificates::issue(ca, identity, hosts, self.days).map_err(not_issued)
    }
}

async fn create(session: &Session, api: &Api, name: &str, texts: &[(String, &str)]) -> Result<(), Failure> {
    api.create(name, texts).await?;
    session.say(&format!("Secret {name} created"));
    Ok(())
}

fn would_create(session: &Session, names: &[&str]) {
    session.say(&format!("a dry run: would create the Secrets {}", names.join(", ")));
}

/// The CA of a Secret.
fn read(secret: &Secret) -> Result<Issued, Failure> {
    let part = |key: &str| {
        let help = "Delete the Secret to create another CA, or restore it.";
        secret.text(key).ok_or_else(|| Failure::usage(format!("the Secret {CA} has no {key}"), help))
    };
    Ok(Issued { certificate: part(CA_CERTIFICATE)?, key: part(CA_KEY)? })
}

fn supplied_in_part(missing: &[&str]) -> Failure {
    Failure::usage(
        format!("the Secret {CA} with the key of the CA is missing, and so are {}", missing.join(", ")),
        "Supply these Secrets as well, or delete those that exist, so that all are created with a new CA.",
    )
}

fn not_issued(why: NotIssued) -> Failure {
    Failure::usage(why.0, "No certificate was created.")
}
