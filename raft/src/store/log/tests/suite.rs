//! Upstream's own suite on our stores.

use openraft::StorageError;
use openraft::testing::log::{StoreBuilder, Suite};
use tempfile::TempDir;

use crate::store::{Closer, LogStore, MachineStore, open};
use crate::types::Types;

struct Builder;

impl StoreBuilder<Types, LogStore, MachineStore, (TempDir, Closer)> for Builder {
    async fn build(&self) -> Result<((TempDir, Closer), LogStore, MachineStore), StorageError<Types>> {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).await.unwrap();
        Ok(((dir, store.closer), store.log, store.machine))
    }
}

#[tokio::test]
async fn upstream_suite() {
    Suite::test_all(Builder).await.unwrap();
}
