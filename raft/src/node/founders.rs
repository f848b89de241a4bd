//! Founders of a cluster, recorded before the founding, and the founding of the log with them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use openraft::errors::{InitializeError, RaftError};
use serde::{Deserialize, Serialize};

use super::error::StartError;
use super::raft::RaftHandle;
use crate::store::{Identity, MachineStore, Restored, replace};
use crate::types::Member;

/// The founders of the cluster, by id.
pub(super) type Founders = BTreeMap<u64, Member>;

/// Records the founders before the identity says that a cluster is being founded. A start after a crash in
/// between continues with the same members.
pub(super) fn write(dir: &Path, founders: &Founders) -> Result<(), StartError> {
    let content = serde_json::to_vec_pretty(&FoundersFile { version: 1, founders: founders.clone() })
        .map_err(|error| StartError::Founding(error.to_string()))?;
    let path = path(dir);
    let written = replace(&path, &content);
    written.map_err(|error| StartError::Founding(format!("{}: {error}", path.display())))
}

/// Makes a waiting restored state, if any, the initial state of the cluster.
pub(super) async fn begin_restored(machine: &mut MachineStore, dir: &Path) -> Result<(), StartError> {
    let founders = read(dir)?;
    Ok(machine.begin_restored(dir, &founders).await?)
}

fn read(dir: &Path) -> Result<Founders, StartError> {
    let path = path(dir);
    let wrong = |error: &dyn std::fmt::Display| StartError::Founding(format!("{}: {error}", path.display()));
    let content = std::fs::read(&path).map_err(|error| wrong(&error))?;
    let FoundersFile { founders, .. } = serde_json::from_slice(&content).map_err(|error| wrong(&error))?;
    Ok(founders)
}

/// Completes a founding that, according to the identity, has begun.
pub(super) async fn complete(
    raft: &RaftHandle,
    dir: &Path,
    mut identity: Identity,
) -> Result<Identity, StartError> {
    match raft.initialize(read(dir)?).await {
        // The log was initialized before a crash, or the initial state already names the members.
        Ok(()) | Err(RaftError::APIError(InitializeError::NotAllowed(_))) => {}
        Err(error) => return Err(StartError::Founding(error.to_string())),
    }
    // The log has the membership now.
    identity.founding = false;
    identity.save(dir)?;
    // The file has no reader any more, so a failed removal is harmless.
    let _ = std::fs::remove_file(path(dir));
    Restored::forget(dir);
    Ok(identity)
}

#[derive(Serialize, Deserialize)]
struct FoundersFile {
    version: u32,
    founders: Founders,
}

fn path(dir: &Path) -> PathBuf {
    dir.join("founding.json")
}
