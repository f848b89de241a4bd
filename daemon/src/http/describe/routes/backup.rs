//! Routes of backups, and of the confirmation after a restore.

use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use super::parameters::{fresh, parameter};
use super::route::{Handled, Route};
use crate::http::cluster::{backup, epoch};

pub(super) fn routes() -> [Handled; 3] {
    [
        Route::get("/v1/cluster/backup", Target::Backup, "Returns a backup of the state at one revision.")
            .query(vec![parameter("history", "boolean", "Includes the complete history; default: true.")])
            .text("application/octet-stream")
            .refuses(&[Code::TooManyRequests])
            .to(backup::write),
        Route::get(
            "/v1/cluster/epoch",
            Target::Cluster,
            "Shows the epoch and the pools that await confirmation after a restore.",
        )
        .query(fresh())
        .json(200, "Epoch")
        .refuses(&[Code::RevisionNotReached])
        .to(epoch::show),
        Route::post(
            "/v1/cluster/epoch/confirm",
            (Verb::Write, Target::Cluster),
            "Confirms pools after a restore, so that they allocate again.",
        )
        .takes("ConfirmRequest")
        .json(200, "Epoch")
        .refuses(&[Code::NotFound, Code::RevisionMismatch])
        .to(epoch::confirm),
    ]
}
