//! Against a real etcd: conformance, leases, compaction, fail-over, TLS.

use super::server::Cluster;
use super::*;
use crate::conformance;

fn connect(cluster: &Cluster) -> EtcdStore {
    let trust_progress = TrustProgress::Always;
    EtcdStore::new(EtcdOptions { compaction_interval: None, trust_progress, ..EtcdOptions::new(cluster.endpoints()) })
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms() {
    let cluster = Cluster::start(1, &[]);
    conformance::run(Arc::new(connect(&cluster))).await;
}
