//! The routes of backups, and of what follows a restore.

use ipam_api::Code;
use ipam_api::access::Target;

use super::Route;
use super::parameters::parameter;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/v1/cluster/backup",
            Target::Backup,
            "Writes all of the state, as of one revision, as a file that can be restored.",
        )
        .query(vec![parameter("history", "boolean", "With all of the history; true if nothing is said.")])
        .text("application/octet-stream")
        .refuses(&[Code::TooManyRequests]),
    ]
}
