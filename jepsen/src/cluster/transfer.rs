//! Transfer of the leadership by request.

use std::time::Duration;

use anyhow::Result;
use ipam_api::client::Call;
use ipam_api::cluster::{MemberChange, TransferRequest};
use tokio::time::{Instant, sleep};

use super::view::leader;
use super::{Cluster, administrator};

/// Time limit of a change of leaders.
const TRANSFER: Duration = Duration::from_secs(5);
/// Time between two polls.
const LOOK: Duration = Duration::from_millis(10);

/// Transfers the leadership. Without evidence the fault didn't take hold.
pub(crate) async fn transfer<C: Cluster>(cluster: &C, to: &str) -> Result<Vec<String>> {
    let before = leader(cluster).await;
    let request = TransferRequest { to: Some(to.parse()?) };
    let call = Call::post("/v1/cluster/transfer-leader").json(&request)?.within(TRANSFER);
    let change: MemberChange = match administrator(cluster)?.call(call).await {
        Ok(change) => change,
        // A member that lags behind refuses.
        Err(_) => return Ok(Vec::new()),
    };
    if !change.changes {
        return Ok(Vec::new());
    }
    let until = Instant::now() + TRANSFER;
    while leader(cluster).await.as_deref() != Some(to) {
        if Instant::now() > until {
            return Ok(Vec::new());
        }
        sleep(LOOK).await;
    }
    Ok(vec![format!("leader: {} to {to}", before.unwrap_or_default())])
}
