//! Opens the store that the options name.

use crate::options::{Options, StorageBackend};
use kubelith_store::embedded::{EmbeddedOptions, EmbeddedStore};
use kubelith_store::etcd::{EtcdOptions, EtcdStore};
use kubelith_store::{MemoryStore, Store};
use std::sync::Arc;

/// The folder of the embedded store below the data folder.
const STORE: &str = "store";

pub async fn open(options: &Options) -> Result<Arc<dyn Store>, String> {
    match options.storage.backend {
        StorageBackend::Memory => Ok(Arc::new(MemoryStore::default())),
        StorageBackend::Embedded => {
            let folder = options.data_dir.join(STORE);
            // Opening reads and locks files: not on a thread that serves.
            let opened = tokio::task::spawn_blocking(move || EmbeddedStore::open(EmbeddedOptions::new(folder)));
            Ok(Arc::new(opened.await.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?))
        }
        StorageBackend::Etcd3 => {
            let mut etcd = EtcdOptions::new(options.storage.etcd_servers.iter().cloned());
            etcd.tls = options.storage.etcd_tls.clone();
            etcd.compaction_interval = options.storage.etcd_compaction_interval;
            Ok(Arc::new(EtcdStore::new(etcd).map_err(|e| e.to_string())?))
        }
    }
}
