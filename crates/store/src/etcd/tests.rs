//! Against a real etcd: conformance, leases, compaction, fail-over, TLS.

use super::server::Cluster;
use super::*;
use crate::conformance;
use crate::watch::Event;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

const PATIENCE: Duration = Duration::from_secs(60);

fn options(cluster: &Cluster) -> EtcdOptions {
    let patience = Duration::from_secs(2);
    EtcdOptions { compaction_interval: None, patience, ..EtcdOptions::new(cluster.endpoints()) }
}

fn connect(cluster: &Cluster) -> EtcdStore {
    EtcdStore::new(options(cluster)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms() {
    let cluster = Cluster::start(1, &[]);
    // This etcd may be too old to be trusted with progress requests in general; in the suite nothing
    // happens at the same time that could make its answers wrong.
    let trust_progress = TrustProgress::Always;
    conformance::run(Arc::new(EtcdStore::new(EtcdOptions { trust_progress, ..options(&cluster) }).unwrap())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_member() {
    let cluster = Cluster::start(1, &[]);
    two_servers_see_each_other(&cluster).await;
    leases_are_shared(&cluster).await;
    compactors_take_turns(&cluster).await;
    large_requests_are_told(&cluster).await;
    pages_over_four_megabytes_arrive(&cluster).await;
    sizes_and_versions_are_known(&cluster).await;
}

async fn two_servers_see_each_other(cluster: &Cluster) {
    let (one, two) = (connect(cluster), connect(cluster));
    let revision = one.put("/two/a".into(), "1".into(), Expect::Absent, None).await.unwrap();
    let mut watch = two.watch(WatchRequest::new(KeyRange::prefix("/two/"), revision)).await.unwrap();
    let seen = two.get("/two/a".into(), None).await.unwrap();
    assert!(seen.revision >= revision);
    let conflict = two.put("/two/a".into(), "2".into(), Expect::Absent, None).await;
    assert!(matches!(conflict, Err(StoreError::Conflict { current: Some(kv) }) if kv.mod_revision == revision));
    let written = one.put("/two/a".into(), "3".into(), Expect::At(revision), None).await.unwrap();
    let batch = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(batch.events[0].revision(), written);
}

async fn lease_of(store: &EtcdStore, key: &str) -> i64 {
    let found = store.send_range(get_request(Bytes::copy_from_slice(key.as_bytes()))).await.unwrap();
    found.kvs[0].lease
}

async fn leases_are_shared(cluster: &Cluster) {
    let store = EtcdStore::new(EtcdOptions { lease_max_keys: 2, ..options(cluster) }).unwrap();
    let put = async |key: &'static str, seconds| {
        let ttl = Some(Duration::from_secs(seconds));
        store.put(key.into(), "v".into(), Expect::Any, ttl).await.unwrap();
        lease_of(&store, key).await
    };
    let first = put("/lease/a", 3600).await;
    assert_ne!(first, 0);
    assert_eq!(put("/lease/b", 3600).await, first, "the same TTL soon after");
    assert_ne!(put("/lease/c", 3600).await, first, "a lease has room for two keys here");
    let other = put("/lease/d", 60).await;
    assert_ne!(other, first, "a lease that lives much longer does not do");
    store.put("/lease/a".into(), "v".into(), Expect::Any, None).await.unwrap();
    assert_eq!(lease_of(&store, "/lease/a").await, 0, "a put without a TTL takes the key off its lease");

    // The lease is gone, and the client does not know. A revocation has the ID where a grant has the TTL.
    let revoke = proto::LeaseGrantRequest { ttl: other, id: 0 };
    let (_, channel) = store.inner.client.pick();
    let revoke = kubelith_grpc::unary(&channel, "/etcdserverpb.Lease/LeaseRevoke", &revoke);
    let _: proto::LeaseGrantResponse = revoke.await.unwrap();
    let renewed = put("/lease/e", 60).await;
    assert!(renewed != other && renewed != 0);
    // Each lease counts with the key that needed the next one; of one that was gone nothing is known.
    let (buckets, leases, keys) = store.inner.client.counts.leases.read();
    assert_eq!((buckets, leases, keys), ([4; 7], 4, 1 + 3 + 2 + 1));
    let granted = store.inner.client.counts.of(Method::LeaseGrant);
    assert_eq!((granted.started(), granted.handled().collect::<Vec<_>>()), (4, vec![("OK", 4)]));
}

async fn compactors_take_turns(cluster: &Cluster) {
    let store = connect(cluster);
    let client = &store.inner.client;
    let put = async || store.put("/compact/a".into(), "v".into(), Expect::Any, None).await.unwrap();
    let first = put().await;
    let (a, done) = compactor::turn(client, compactor::Tick::default()).await.unwrap();
    assert_eq!(done, Revision::ZERO, "the first turn only starts the clock");
    let (b, done) = compactor::turn(client, compactor::Tick::default()).await.unwrap();
    assert_eq!(done, Revision::ZERO);
    let second = put().await;
    let (a, done) = compactor::turn(client, a).await.unwrap();
    assert!(done > first && done < second, "A compacts what it saw at its last turn: {done}");
    let (b, told) = compactor::turn(client, b).await.unwrap();
    assert_eq!(told, done, "B is late and learns what A did");
    let old = store.get("/compact/a".into(), Some(first)).await;
    assert!(matches!(old, Err(StoreError::Compacted { .. })), "{old:?}");
    let third = put().await;
    // A is gone: at its next turn B takes over.
    let (_, done) = compactor::turn(client, b).await.unwrap();
    assert!(done >= second && done < third, "{done}");
    let (_, told) = compactor::turn(client, a).await.unwrap();
    assert_eq!(told, done);
}

async fn large_requests_are_told(cluster: &Cluster) {
    let store = connect(cluster);
    for megabytes in [2, 8] {
        let value = Bytes::from(vec![0u8; megabytes << 20]);
        let put = store.put("/large".into(), value, Expect::Absent, None).await;
        assert!(matches!(put, Err(StoreError::TooLarge { .. })), "{megabytes} MB: {put:?}");
    }
}

async fn pages_over_four_megabytes_arrive(cluster: &Cluster) {
    let store = connect(cluster);
    let value = Bytes::from(vec![7u8; 1 << 20]);
    let start = store.current_revision().await.unwrap();
    for i in 0..6 {
        store.put(format!("/pages/{i}").into(), value.clone(), Expect::Absent, None).await.unwrap();
    }
    let page = store.range(RangeRequest::prefix("/pages/")).await.unwrap();
    assert_eq!((page.items.len(), page.items[5].value.len()), (6, 1 << 20));
    let mut watch = store.watch(WatchRequest::new(KeyRange::prefix("/pages/"), start)).await.unwrap();
    let mut seen = 0;
    while seen < 6 {
        let next = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap();
        seen += next.unwrap().unwrap().events.len();
    }
}

async fn sizes_and_versions_are_known(cluster: &Cluster) {
    let store = connect(cluster);
    let stats = store.stats().await.unwrap();
    assert!(stats.size > 6 << 20 && stats.size_in_use > 0, "{stats:?}");
    let (_, status) = store.endpoint_status().await.remove(0);
    let status = status.unwrap();
    assert!(status.is_leader && status.version.starts_with("3."), "{status:?}");
    store.health().await.unwrap();
}

/// Writes until told to stop; what was acknowledged by key, and whether anything went wrong on the way.
async fn load(store: EtcdStore, writer: usize, stop: Arc<AtomicBool>) -> BTreeMap<String, (u64, Revision)> {
    let mut acked = BTreeMap::new();
    let mut n = 0u64;
    while !stop.load(Ordering::Relaxed) {
        n += 1;
        let key = format!("/load/{writer}/{}", n % 7);
        match store.put(key.clone().into(), n.to_string().into(), Expect::Any, None).await {
            Ok(revision) => {
                acked.insert(key, (n, revision));
            }
            Err(StoreError::Unavailable(_) | StoreError::TimedOut(_) | StoreError::Uncertain(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    acked
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn losing_the_leader_loses_no_write_and_no_event() {
    let mut cluster = Cluster::start(3, &[]);
    let store = connect(&cluster);
    let start = store.current_revision().await.unwrap();
    let watch = store.watch(WatchRequest::new(KeyRange::prefix("/load/"), start)).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4).map(|i| tokio::spawn(load(store.clone(), i, stop.clone()))).collect();

    let progressed = async |more: i64| {
        let target = store.current_revision().await.unwrap().0 + more;
        while store.current_revision().await.map_or(0, |revision| revision.0) < target {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    for _ in 0..2 {
        progressed(200).await;
        let members = store.endpoint_status().await;
        let leader = members.iter().position(|(_, s)| s.as_ref().is_ok_and(|s| s.is_leader)).expect("a leader");
        cluster.kill(leader);
        progressed(200).await;
        cluster.restart(leader);
    }
    stop.store(true, Ordering::Relaxed);
    let mut acked = BTreeMap::new();
    for writer in writers {
        acked.extend(tokio::time::timeout(PATIENCE, writer).await.unwrap().unwrap());
    }
    verify(&store, start, watch, acked).await;
}

async fn verify(store: &EtcdStore, start: Revision, mut watch: Watch, acked: BTreeMap<String, (u64, Revision)>) {
    let listed = store.range(RangeRequest::prefix("/load/")).await.unwrap();
    for kv in &listed.items {
        let (n, revision) = acked[&String::from_utf8_lossy(&kv.key).into_owned()];
        let found: u64 = String::from_utf8_lossy(&kv.value).parse().unwrap();
        assert!(found >= n && kv.mod_revision >= revision, "an acknowledged write is gone");
    }
    assert_eq!(listed.items.len(), acked.len());
    // Replaying the watch, each key's changes follow each other without a gap, up to what is listed.
    let mut state: BTreeMap<Bytes, KeyValue> = BTreeMap::new();
    let mut last = start;
    while last < listed.items.iter().map(|kv| kv.mod_revision).max().unwrap() {
        let batch = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap().unwrap().unwrap();
        for event in batch.events {
            let Event::Put { kv, prev } = event else { panic!("nothing was deleted") };
            assert!(kv.mod_revision > last);
            last = kv.mod_revision;
            assert_eq!(prev, state.get(&kv.key).cloned(), "an event before {last} is missing");
            state.insert(kv.key.clone(), kv);
        }
    }
    assert_eq!(state.into_values().collect::<Vec<_>>(), listed.items);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_outlives_its_etcd() {
    let mut cluster = Cluster::start(1, &[]);
    let store = connect(&cluster);
    let start = store.put("/r/a".into(), "1".into(), Expect::Any, None).await.unwrap();
    let mut watch = store.watch(WatchRequest::new(KeyRange::prefix("/r/"), start)).await.unwrap();
    store.put("/r/a".into(), "2".into(), Expect::Any, None).await.unwrap();
    let mut next = async || tokio::time::timeout(PATIENCE, watch.next()).await.unwrap().unwrap();
    assert_eq!(next().await.unwrap().events.len(), 1);
    cluster.restart(0);
    store.put("/r/a".into(), "3".into(), Expect::Any, None).await.unwrap();
    let batch = next().await.unwrap();
    assert_eq!(batch.events[0].prev().unwrap().value, "2");
    // Without any member, reads say so instead of hanging.
    cluster.kill(0);
    let unavailable = store.clone();
    let failed = tokio::spawn(async move { unavailable.get("/r/a".into(), None).await });
    assert!(matches!(failed.await.unwrap(), Err(StoreError::TimedOut(_))));
}

#[tokio::test]
async fn tls_with_client_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let ca_key = rcgen::KeyPair::generate().unwrap();
    let mut ca = rcgen::CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca_certificate = ca.self_signed(&ca_key).unwrap();
    let issuer = rcgen::Issuer::new(ca, ca_key);
    std::fs::write(path("ca"), ca_certificate.pem()).unwrap();
    for name in ["server", "client"] {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["127.0.0.1".into()]).unwrap();
        std::fs::write(path(name), params.signed_by(&key, &issuer).unwrap().pem()).unwrap();
        std::fs::write(path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }
    let flag = |flag: &str, file: &str| format!("--{flag}={}", path(file).display());
    let flags = [
        flag("cert-file", "server"),
        flag("key-file", "server.key"),
        flag("trusted-ca-file", "ca"),
        "--client-cert-auth=true".to_string(),
    ];
    let cluster = Cluster::start(1, &flags.each_ref().map(String::as_str));
    let tls = TlsFiles { ca: Some(path("ca")), certificate: Some(path("client")), key: Some(path("client.key")) };
    let store = EtcdStore::new(EtcdOptions { tls: tls.clone(), ..options(&cluster) }).unwrap();
    store.put("a".into(), "1".into(), Expect::Absent, None).await.unwrap();

    let anonymous = TlsFiles { certificate: None, key: None, ..tls.clone() };
    let untrusting = TlsFiles { ca: Some(path("client")), ..tls };
    for tls in [anonymous, untrusting] {
        let store = EtcdStore::new(EtcdOptions { tls, ..options(&cluster) }).unwrap();
        let refused = store.get("a".into(), None).await;
        assert!(matches!(refused, Err(StoreError::TimedOut(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn progress_is_trusted_by_version() {
    let cluster = Cluster::start(1, &[]);
    let store = connect(&cluster);
    let (_, status) = store.endpoint_status().await.remove(0);
    let expected = version::supports_progress_requests(&status.unwrap().version);
    while !store.inner.trust.is_known() {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.progress_requests() == ProgressRequests::Trusted, expected);
}
