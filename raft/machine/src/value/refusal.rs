//! Refusals: a cause with its place in a transaction, and the problem that a caller gets.

use std::net::IpAddr;

use ipam_api::resource::EndpointKey;
use ipam_api::{Code, Problem};
use serde::{Deserialize, Serialize};

use crate::value::cause::{Cause, Verdict};

/// Refusal of a command, which changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The reason.
    pub cause: Box<Cause>,
    /// The step of a transaction that was refused, from 0.
    pub step: Option<u32>,
    /// True for the kept answer to an earlier request under the same key.
    pub replayed: bool,
}

impl From<Cause> for Refusal {
    fn from(cause: Cause) -> Self {
        Self { cause: Box::new(cause), step: None, replayed: false }
    }
}

/// Refuses on a condition.
pub(crate) fn refuse_if(refused: bool, cause: impl FnOnce() -> Cause) -> Result<(), Refusal> {
    if refused { Err(cause().into()) } else { Ok(()) }
}

impl Refusal {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.cause.code()
    }

    /// One sentence with the names and numbers, for display only.
    #[must_use]
    pub fn detail(&self) -> String {
        match self.step {
            Some(step) => format!("steps[{step}]: {}", self.cause.detail()),
            None => self.cause.detail(),
        }
    }

    /// Remedy, if it is more specific than that of the code; for display only.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        self.cause.help()
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let mut problem = Problem::new(refusal.code(), refusal.detail());
        if let Some(help) = refusal.help() {
            problem = problem.help(help);
        }
        let mut shown = ipam_api::problem::Context::default();
        refusal.cause.show(&mut shown);
        shown.step = refusal.step;
        match shown == ipam_api::problem::Context::default() {
            true => problem,
            false => problem.with(|context| *context = shown),
        }
    }
}

impl Cause {
    /// Adds names and numbers for programs.
    fn show(&self, shown: &mut ipam_api::problem::Context) {
        match self {
            Cause::Changed { current, by, fields, .. } => {
                shown.current = Some(current.to_string());
                shown.changed_by = Some(by.to_string());
                shown.changed_fields = Some(fields.iter().map(ToString::to_string).collect());
            }
            Cause::PoolInUse { held, .. } | Cause::PrefixesLost { held, .. } => shown.held = Some(*held),
            Cause::AddressesLost { held, examples, .. } => {
                shown.held = Some(*held);
                let holder = |(address, endpoint): &(IpAddr, EndpointKey)| ipam_api::problem::Holder {
                    address: *address,
                    endpoint: endpoint.clone(),
                };
                shown.examples = examples.iter().map(holder).collect();
            }
            Cause::ManagedElsewhere { by, .. } => shown.managed_by = Some(by.to_string()),
            Cause::NothingFits { unserved, .. } | Cause::Exhausted { unserved, .. } => {
                shown.interface = Some(unserved.interface.clone());
                shown.family = Some(unserved.family);
                shown.next_free_ms = unserved.next_free_ms;
                let verdict = |one: &Verdict| ipam_api::problem::PoolVerdict {
                    pool: one.pool.clone(),
                    verdict: one.why.to_string(),
                    counts: one.counts.into(),
                };
                shown.pools = unserved.pools.iter().map(verdict).collect();
            }
            Cause::QuotaExceeded { scope, family, limit, used, asked, .. } => {
                shown.family = Some(*family);
                shown.quota = Some(ipam_api::problem::QuotaUse {
                    realm: scope.realm.clone(),
                    namespace: scope.namespace.clone(),
                    application: scope.application.as_ref().map(ToString::to_string),
                    limit: *limit,
                    held: *used,
                    asked: *asked,
                });
            }
            _ => {}
        }
    }
}
