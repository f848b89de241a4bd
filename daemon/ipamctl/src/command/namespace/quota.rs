//! Quotas as flags and as text.

use clap::Args;
use ipam_api::resource::{AddressLimits, ApplicationQuota, Controller, HeldAddresses, Namespace, Quota};

use crate::command::controller;
use crate::output::error::Failure;
use crate::output::text::Fields;

/// Numbers of addresses that a namespace may have. Each flag replaces the present limit.
#[derive(Debug, Default, Args)]
pub(crate) struct QuotaArguments {
    /// Quota of the namespace: ipv4=COUNT, ipv6=COUNT, both separated by a comma, or none
    #[arg(long, value_name = "LIMITS")]
    quota: Option<AddressLimits>,
    /// Quota of each application, in the same form
    #[arg(long, value_name = "LIMITS")]
    quota_per_application: Option<AddressLimits>,
    /// Quota of one application: its controller, a comma, and the same form; may be repeated
    #[arg(long = "quota-of", value_name = "GROUP/KIND/NAME,LIMITS", value_parser = of_application)]
    quotas_of: Vec<ApplicationQuota>,
}

impl QuotaArguments {
    /// Writes the specified quotas into a namespace. Other quotas stay.
    pub(super) fn apply(&self, namespace: &mut Namespace) -> Result<(), Failure> {
        self.check()?;
        let quota = &mut namespace.quota;
        if let Some(AddressLimits { ipv4, ipv6 }) = self.quota {
            (quota.ipv4, quota.ipv6) = (ipv4, ipv6);
        }
        quota.per_application = self.quota_per_application.unwrap_or(quota.per_application);
        for one in &self.quotas_of {
            quota.applications.retain(|other| !other.is_of(one));
            if one.ipv4.is_some() || one.ipv6.is_some() {
                quota.applications.push(one.clone());
            }
        }
        Ok(())
    }

    /// Refuses two quotas of one application, as the servers do. The last one would silently replace the
    /// first.
    fn check(&self) -> Result<(), Failure> {
        for (number, one) in self.quotas_of.iter().enumerate() {
            if self.quotas_of.iter().take(number).any(|other| other.is_of(one)) {
                let ApplicationQuota { group, kind, name, .. } = one.clone();
                let name = controller::written(&Controller { group, kind, name, uid: None });
                return Err(Failure::usage(
                    format!("two quotas for {name}"),
                    format!("Nothing was changed. Combine both families: --quota-of {name},ipv4=50,ipv6=50"),
                ));
            }
        }
        Ok(())
    }
}

fn of_application(text: &str) -> Result<ApplicationQuota, String> {
    let (which, limits) = text
        .split_once(',')
        .ok_or("write the controller, a comma and the limits, for example apps/Deployment/web,ipv4=50")?;
    let Controller { group, kind, name, uid: _ } = controller::parse(which)?;
    let AddressLimits { ipv4, ipv6 } = limits.parse().map_err(|problem: ipam_api::Problem| problem.detail)?;
    Ok(ApplicationQuota { group, kind, name, ipv4, ipv6 })
}

/// Formats a count and its limit: `12/500`, or `12` without a limit.
pub(super) fn of_limit(held: u64, limit: Option<u64>) -> String {
    limit.map_or_else(|| held.to_string(), |limit| format!("{held}/{limit}"))
}

/// Lines of `namespace show`.
pub(super) fn lines(fields: &mut Fields, quota: &Quota, held: &HeldAddresses) {
    let held_of = |family: &str, held, limit: Option<u64>| match limit {
        Some(limit) => format!("{held} of {limit} {family}"),
        None => format!("{held} {family}"),
    };
    let (ipv4, ipv6) = (held_of("IPv4", held.ipv4, quota.ipv4), held_of("IPv6", held.ipv6, quota.ipv6));
    fields.line("addresses", format!("{ipv4}   {ipv6}"));
    if !quota.per_application.is_empty() {
        fields.line("quota", format!("each application {}", quota.per_application));
    }
    for one in &quota.applications {
        let ApplicationQuota { group, kind, name, ipv4, ipv6 } = one.clone();
        let controller = Controller { group, kind, name, uid: None };
        let limits = AddressLimits { ipv4, ipv6 };
        fields.line("quota", format!("{} {limits}", controller::written(&controller)));
    }
}
