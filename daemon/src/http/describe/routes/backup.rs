//! The routes of backups, and of what follows a restore.

use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use super::parameters::{fresh, parameter};
use super::route::{Handled, Route};
use crate::http::cluster::{backup, epoch};

pub(super) fn routes() -> [Handled; 3] {
    [
        Route::get(
            "/v1/cluster/backup",
            Target::Backup,
            "Writes all of the state, as of one revision, as a file that can be restored.",
        )
        .query(vec![parameter("history", "boolean", "With all of the history; true if nothing is said.")])
        .text("application/octet-stream")
        .refuses(&[Code::TooManyRequests])
        .to(backup::write),
        Route::get(
            "/v1/cluster/epoch",
            Target::Cluster,
            "Shows what a restore has begun, and which pools wait to be confirmed.",
        )
        .query(fresh())
        .json(200, "Epoch")
        .refuses(&[Code::RevisionNotReached])
        .to(epoch::show),
        Route::post(
            "/v1/cluster/epoch/confirm",
            (Verb::Write, Target::Cluster),
            "Lets pools give again after a restore.",
        )
        .takes("ConfirmRequest")
        .json(200, "Epoch")
        .refuses(&[Code::NotFound, Code::RevisionMismatch])
        .to(epoch::confirm),
    ]
}
