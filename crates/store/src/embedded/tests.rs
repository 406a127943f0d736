//! What only the embedded engine promises: durability, locking, the form of its file.

use super::*;
use tempfile::TempDir;

fn options(folder: &TempDir) -> EmbeddedOptions {
    EmbeddedOptions { reserve_bytes: 0, ..EmbeddedOptions::new(folder.path()) }
}

fn open(folder: &TempDir) -> EmbeddedStore {
    EmbeddedStore::open(options(folder)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms() {
    let folder = tempfile::tempdir().unwrap();
    crate::conformance::run(Arc::new(open(&folder))).await;
}
