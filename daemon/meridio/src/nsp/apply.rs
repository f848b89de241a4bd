//! Conduits of the trench, replaced as one list in one step for all families.

use std::time::Duration;

use ipam_api::Problem;
use ipam_api::client::Call;
use ipam_api::limits::BUDGET_MS_MAX;
use ipam_api::transaction::{StepMethod, TransactionRequest};
use serde_json::json;

use crate::child::owner;
use crate::prefixes::step;
use crate::servers::{Caller, Servers};
use crate::settings::Settings;

/// Makes these the conduits of the trench, in this order. Others end with all that is below them.
///
/// # Errors
/// The refusal; then no conduit has changed.
pub(super) async fn set_conduits(
    settings: &Settings,
    servers: &impl Servers,
    caller: &Caller,
    names: &[String],
) -> Result<(), Problem> {
    let mut steps = Vec::with_capacity(settings.families.len());
    for family in &settings.families {
        let conduit = |owner| json!({"owner": owner, "length": family.conduit_length});
        let prefixes: Vec<_> = names.iter().filter_map(|name| owner(name)).map(conduit).collect();
        let request = json!({"pool": family.pool, "realm": settings.realm, "prefixes": prefixes});
        steps.push(step(StepMethod::Put, "/v1/prefixes".to_owned(), Some(&request))?);
    }
    let all = TransactionRequest { conditions: Vec::new(), steps };
    let call = Call::post("/v1/transactions").json(&all)?.within(Duration::from_millis(BUDGET_MS_MAX));
    servers.send(caller, call).await.map(drop)
}
