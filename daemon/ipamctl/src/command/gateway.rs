//! Holders that keep their gateway when the gateway of their subnet or pool changes.

use std::net::IpAddr;

use ipam_api::Name;
use ipam_api::client::with_query;
use ipam_api::resource::{Allocation, Pool};

use crate::client::resource_type::Read;
use crate::client::session::Session;
use crate::output::error::Failure;

/// Number of holders that a note names.
const NAMED: usize = 5;

/// Names holders in a subnet that keep its previous gateway, except in pools with their own gateway.
pub(crate) async fn tell_of_subnet(session: &Session, subnet: &Name, old: Option<IpAddr>) {
    let old = old.map_or_else(|| "no gateway".to_owned(), |old| format!("gateway {old}"));
    let path = with_query("/v1/pools", "subnet", subnet.as_str());
    match session.list::<Read<Pool>>(&path, None, |pool| pool.spec.gateway.is_some()).await {
        Ok(own) => {
            let keeps = |one: &Allocation| !own.items.iter().any(|pool| pool.spec.name == one.pool);
            tell(session, ("subnet", subnet), &old, keeps).await;
        }
        // Without these pools, the note would also name holders with the gateway of their pool.
        Err(failure) => session.tell(&unread(&old, &failure)),
    }
}

/// Names holders in a pool that keep its previous gateway. Without `old`, it was the gateway of the subnet.
pub(crate) async fn tell_of_pool(session: &Session, pool: &Name, old: Option<IpAddr>) {
    let old = old.map_or_else(|| "the gateway of the subnet".to_owned(), |old| format!("gateway {old}"));
    tell(session, ("pool", pool), &old, |_| true).await;
}

/// Prints a note about the holders.
async fn tell(session: &Session, (word, name): (&str, &Name), old: &str, keep: impl Fn(&Allocation) -> bool) {
    let path = with_query("/v1/allocations", word, name.as_str());
    let listed = match session.list::<Allocation>(&path, Some(NAMED), keep).await {
        Ok(listed) => listed,
        Err(failure) => return session.tell(&unread(old, &failure)),
    };
    if listed.items.is_empty() {
        return;
    }
    let mut holders: Vec<String> =
        listed.items.iter().map(|one| format!("{} ({})", one.endpoint, one.address.addr())).collect();
    if listed.more {
        holders.push("…".to_owned());
    }
    session.tell(&format!(
        "note: existing endpoints keep {old} until they are recreated: {}   all: ipamctl allocation list --{word} \
         {name}",
        holders.join(", ")
    ));
}

/// Note instead of the holders after a failed read. The command succeeds, since it made its change.
fn unread(old: &str, failure: &Failure) -> String {
    let why = match failure {
        // The text of the failure may end with "Nothing was changed."
        Failure::Refused(refusal) => refusal.problem.to_string(),
        other => other.text(false).unwrap_or_default(),
    };
    format!("note: existing endpoints keep {old} until they are recreated; the list failed: {why}")
}

#[cfg(test)]
mod tests {
    use ipam_api::{Code, Problem};

    use super::*;

    #[test]
    fn a_failed_read_is_reported_without_doubt_about_the_change() {
        let problem = Problem::new(Code::Unreachable, "no server answered within 10.0 s");
        let note = unread("gateway 10.10.0.1", &problem.into());
        assert_eq!(
            note,
            "note: existing endpoints keep gateway 10.10.0.1 until they are recreated; \
             the list failed: unreachable: no server answered within 10.0 s"
        );
    }
}
