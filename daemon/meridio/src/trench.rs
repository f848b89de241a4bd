//! Network, subnets and pools of the trench, created once. Later changes by administrators stay.

use std::fmt;
use std::time::Duration;

use ipam_api::address::Family;
use ipam_api::client::{Call, Expect};
use ipam_api::problem::Retry;
use ipam_api::{Code, Problem};
use ipnet::IpNet;
use serde_json::{Value, json};

use crate::servers::{Caller, Servers};
use crate::settings::{FamilySettings, Settings};

/// Pauses between attempts while no leader is reached.
const PAUSE: Duration = Duration::from_secs(1);

/// Trench that can't be served with these settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unprepared {
    /// The trench has another prefix than the settings say.
    OtherPrefix {
        /// Settings of the family.
        family: FamilySettings,
        /// Prefix of the trench.
        stored: IpNet,
    },
    /// The servers refuse the trench.
    Refused(Problem),
}

impl fmt::Display for Unprepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherPrefix { family: FamilySettings { family, prefix, pool, .. }, stored } => {
                let number = if *family == Family::V4 { 4 } else { 6 };
                write!(
                    f,
                    "meridio.prefix_ipv{number} (IPAM_PREFIX_IPV{number}) is {prefix}, but the subnet {pool} \
                     of the trench is {stored}, and addresses of it may be in use; set it to {stored}, or \
                     delete the trench first: `ipamctl pool delete {pool}` and `ipamctl subnet delete {pool}`"
                )
            }
            Self::Refused(problem) => {
                write!(f, "the trench can't be created: {}: {}", problem.code, problem.detail)
            }
        }
    }
}

impl std::error::Error for Unprepared {}

/// Creates what the trench lacks, once a leader is reached.
///
/// # Errors
/// If the trench exists with another prefix, or the servers refuse it.
pub async fn prepare(settings: &Settings, servers: &impl Servers, caller: &Caller) -> Result<(), Unprepared> {
    for family in &settings.families {
        let mut warned = None;
        loop {
            match prepare_family(settings, family, servers, caller).await {
                Ok(stored) if stored == family.prefix => break,
                Ok(stored) => return Err(Unprepared::OtherPrefix { family: family.clone(), stored }),
                Err(problem) if may_pass(&problem) => {
                    if warned != Some(problem.code) {
                        tracing::warn!(%problem, "the trench can't be prepared yet");
                        warned = Some(problem.code);
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                Err(problem) => return Err(Unprepared::Refused(problem)),
            }
        }
    }
    Ok(())
}

/// Creates what a family lacks, and returns the CIDR of its subnet.
async fn prepare_family(
    settings: &Settings,
    family: &FamilySettings,
    servers: &impl Servers,
    caller: &Caller,
) -> Result<IpNet, Problem> {
    let own = Call::get(format!("/v1/pools/{}", family.pool));
    let pool = match servers.send(caller, own.clone()).await {
        Err(problem) if problem.code == Code::NotFound => {
            for (path, body) in resources(settings, family) {
                let call = Call::put(path).json(&body)?.expect(Expect::Absent);
                match servers.send(caller, call).await {
                    // Another member, or the other family, has created it.
                    Err(problem) if problem.code != Code::AlreadyExists => return Err(problem),
                    _ => {}
                }
            }
            servers.send(caller, own).await?
        }
        found => found?,
    };
    let view: Value = pool.read()?;
    let cidr = view.pointer("/status/cidr").and_then(Value::as_str).and_then(|cidr| cidr.parse().ok());
    cidr.ok_or_else(|| Problem::new(Code::Internal, "the answer has no CIDR"))
}

/// Resources of a family, by their paths, in the order of their creation.
fn resources(settings: &Settings, family: &FamilySettings) -> [(String, Value); 3] {
    let Settings { trench, realm, network, .. } = settings;
    let FamilySettings { pool, prefix, .. } = family;
    let description = format!("Trench {trench} of Meridio");
    [
        (format!("/v1/networks/{network}"), json!({"name": network, "description": description})),
        (
            format!("/v1/subnets/{pool}"),
            json!({"name": pool, "network": network, "cidr": prefix, "description": description}),
        ),
        (
            format!("/v1/pools/{pool}"),
            json!({
                "name": pool, "subnet": pool, "allow_edges": true, "realms": [realm],
                "description": description,
            }),
        ),
    ]
}

/// True if the same request may succeed later.
fn may_pass(problem: &Problem) -> bool {
    matches!(problem.retry, Retry::Same | Retry::After) && problem.code != Code::Internal
}
