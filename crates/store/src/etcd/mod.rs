//! A real etcd v3 cluster as the store: for high availability and for several servers on one state, beside
//! kube-apiservers if wished. Keys and values go to etcd as they come.

mod calls;
mod client;
mod compactor;
mod lease;
mod proto;
mod question;
#[cfg(any(test, feature = "testing"))]
pub mod server;
mod version;
mod watch;

use crate::error::{Result, StoreError};
use crate::model::{
    Deleted, Expect, GetResponse, KeyRange, KeyValue, RangeRequest, RangeResponse, Revision, Select, StoreStats,
};
use crate::traits::{ProgressRequests, Store};
use crate::watch::{Watch, WatchRequest};
use bytes::Bytes;
pub use calls::{CallCounts, EtcdCounts, LeaseCounts, Method};
use client::{CallError, Client, Kind};
use futures::future::BoxFuture;
use kubelith_grpc::{Dial, TlsFiles};
use lease::{LeaseLimits, Leases};
use proto::{
    Compare, CompareResult, CompareTarget, CompareValue, DeleteRangeRequest, DeleteRangeResponse, Operation, Outcome,
    PutRequest, PutResponse, RequestOp, ResponseHeader, TxnRequest, TxnResponse,
};
use question::Question;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use version::ProgressTrust;

/// Whose word decides if progress requests are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TrustProgress {
    /// The versions of the members: none older than 3.4.31 or 3.5.13.
    #[default]
    ByVersion,
    /// The operator's, for an etcd with the fixes under another version.
    Always,
}

#[derive(Debug, Clone)]
pub struct EtcdOptions {
    /// `https://host:2379` and so on.
    pub endpoints: Vec<String>,
    /// Files for `https` endpoints.
    pub tls: TlsFiles,
    /// Who makes the connections, if they are not made straight.
    pub dial: Option<Arc<dyn Dial>>,
    /// `None` leaves compaction to others.
    pub compaction_interval: Option<Duration>,
    /// For how long a lease is given out again, and to how many keys.
    pub lease_reuse: Duration,
    pub lease_max_keys: u64,
    pub trust_progress: TrustProgress,
    /// For how long calls are made again while no member can be reached.
    pub patience: Duration,
    /// What is done is counted here.
    pub counts: Arc<EtcdCounts>,
}

impl EtcdOptions {
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> EtcdOptions {
        EtcdOptions {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            tls: TlsFiles::default(),
            dial: None,
            compaction_interval: Some(Duration::from_secs(300)),
            lease_reuse: Duration::from_secs(60),
            lease_max_keys: 1000,
            trust_progress: TrustProgress::default(),
            // As long as requests have: who asked decides whether to wait longer.
            patience: Duration::from_secs(60),
            counts: Arc::default(),
        }
    }
}

/// Cloning shares the connections.
#[derive(Clone)]
pub struct EtcdStore {
    inner: Arc<Inner>,
}

struct Inner {
    client: Arc<Client>,
    leases: Leases,
    trust: Arc<ProgressTrust>,
    compacted: Arc<AtomicI64>,
    /// How far etcd is; every consistent read asks.
    revision: Arc<Question<Revision>>,
    /// True ends tasks and watches. Dropping it does, too.
    closed: tokio::sync::watch::Sender<bool>,
}

/// What a member says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointStatus {
    pub endpoint: String,
    pub version: String,
    pub db_size: u64,
    pub db_size_in_use: u64,
    pub is_leader: bool,
}

impl EtcdStore {
    /// Sets up the connections, which are made on first use, and starts the compactor. Needs a tokio runtime.
    pub fn new(options: EtcdOptions) -> Result<EtcdStore> {
        let client = Arc::new(Client::new(&options)?);
        let (closed, _) = tokio::sync::watch::channel(false);
        let compacted = Arc::new(AtomicI64::new(0));
        if let Some(interval) = options.compaction_interval.filter(|interval| !interval.is_zero()) {
            tokio::spawn(compactor::run(client.clone(), interval, compacted.clone(), closed.subscribe()));
        }
        let trust = match options.trust_progress {
            TrustProgress::Always => Arc::new(ProgressTrust::always()),
            TrustProgress::ByVersion => {
                let trust = Arc::new(ProgressTrust::default());
                tokio::spawn(version::detect(client.clone(), trust.clone(), closed.subscribe()));
                trust
            }
        };
        let limits = LeaseLimits { reuse: options.lease_reuse, max_keys: options.lease_max_keys };
        let (leases, revision) = (Leases::new(limits), Arc::default());
        let inner = Inner { client, leases, trust, compacted, revision, closed };
        Ok(EtcdStore { inner: Arc::new(inner) })
    }

    /// Asks each endpoint for its status, for metrics and health.
    pub async fn endpoint_status(&self) -> Vec<(String, Result<EndpointStatus>)> {
        let client = &self.inner.client;
        let ask = client.endpoints().iter().map(|endpoint| async move {
            let status = client.status(endpoint).await.map_err(StoreError::from);
            let status = status.map(|status| EndpointStatus {
                endpoint: endpoint.url.clone(),
                version: status.version,
                db_size: status.db_size.max(0) as u64,
                db_size_in_use: status.db_size_in_use.max(0) as u64,
                is_leader: status.header.is_some_and(|header| header.member_id == status.leader),
            });
            (endpoint.url.clone(), status)
        });
        futures::future::join_all(ask).await
    }

    /// The revision up to which this or another server is known to have compacted; 0 if none is.
    pub fn known_compacted(&self) -> Revision {
        Revision(self.inner.compacted.load(Ordering::Relaxed))
    }

    fn open(&self) -> Result<&Client> {
        if *self.inner.closed.borrow() { Err(StoreError::Closed) } else { Ok(&self.inner.client) }
    }

    async fn send_range(&self, request: proto::RangeRequest) -> Result<proto::RangeResponse> {
        Ok(self.open()?.call(Kind::Read, Method::Range, request).await?)
    }

    /// A write that holds only if the key was last written at `expected` (0: is absent). Otherwise the
    /// answer is the conflict, with what the key holds, read in the same transaction.
    async fn guarded(&self, key: &Bytes, expected: i64, then: Operation) -> Result<Written, CallOrConflict> {
        let request = TxnRequest {
            compare: vec![Compare {
                result: CompareResult::Equal as i32,
                target: CompareTarget::Mod as i32,
                key: key.clone(),
                value: Some(CompareValue::ModRevision(expected)),
            }],
            success: vec![RequestOp { request: Some(then) }],
            failure: vec![RequestOp { request: Some(Operation::Range(get_request(key.clone()))) }],
        };
        let response: TxnResponse = self.open()?.call(Kind::Write, Method::Txn, request).await?;
        let outcome = response.responses.into_iter().next().and_then(|op| op.response);
        match outcome {
            Some(Outcome::Range(found)) if !response.succeeded => {
                Err(StoreError::conflict(found.kvs.into_iter().next().map(to_kv)).into())
            }
            Some(outcome) if response.succeeded => Ok((revision_of(response.header), outcome)),
            _ => Err(StoreError::Corrupt("etcd's answer does not fit the transaction".into()).into()),
        }
    }

    async fn put_once(
        &self,
        key: &Bytes,
        value: &Bytes,
        expect: Expect,
        lease: i64,
    ) -> Result<Revision, CallOrConflict> {
        let put = PutRequest { key: key.clone(), value: value.clone(), lease };
        let expected = match expect {
            Expect::Any => {
                let response: PutResponse = self.open()?.call(Kind::Write, Method::Put, put).await?;
                return Ok(revision_of(response.header));
            }
            Expect::Absent => 0,
            Expect::At(revision) => revision.0,
        };
        Ok(self.guarded(key, expected, Operation::Put(put)).await?.0)
    }

    async fn put_key(&self, key: Bytes, value: Bytes, expect: Expect, ttl: Option<Duration>) -> Result<Revision> {
        let Some(ttl) = ttl else {
            return Ok(self.put_once(&key, &value, expect, 0).await?);
        };
        let lease = self.inner.leases.get(self.open()?, ttl).await?;
        match self.put_once(&key, &value, expect, lease).await {
            // The lease ended early (its etcd was restored, say). Nothing was written.
            Err(CallOrConflict::Call(error)) if error.is_lease_missing() => {
                self.inner.leases.forget(lease).await;
                let lease = self.inner.leases.get(self.open()?, ttl).await?;
                Ok(self.put_once(&key, &value, expect, lease).await?)
            }
            result => Ok(result?),
        }
    }

    async fn delete_key(&self, key: Bytes, expect: Expect) -> Result<Deleted> {
        let delete = DeleteRangeRequest { key: key.clone(), range_end: Bytes::new(), prev_kv: true };
        let (revision, response) = match expect {
            Expect::Any => {
                let response: DeleteRangeResponse = self.open()?.call(Kind::Write, Method::DeleteRange, delete).await?;
                (revision_of(response.header.clone()), response)
            }
            // Nothing can be deleted that is absent: this only asks what is there.
            Expect::Absent => {
                let found = self.send_range(get_request(key)).await?;
                return Err(StoreError::conflict(found.kvs.into_iter().next().map(to_kv)));
            }
            Expect::At(expected) => match self.guarded(&key, expected.0, Operation::DeleteRange(delete)).await? {
                (revision, Outcome::DeleteRange(response)) => (revision, response),
                _ => return Err(StoreError::Corrupt("etcd's answer does not fit the transaction".into())),
            },
        };
        match response.prev_kvs.into_iter().next() {
            Some(previous) => Ok(Deleted { revision, previous: to_kv(previous) }),
            None => Err(StoreError::conflict(None)),
        }
    }
}

type Written = (Revision, Outcome);

/// A failed call, still with its status, or an error of this crate.
enum CallOrConflict {
    Call(CallError),
    Store(StoreError),
}

impl From<CallError> for CallOrConflict {
    fn from(error: CallError) -> Self {
        CallOrConflict::Call(error)
    }
}

impl From<StoreError> for CallOrConflict {
    fn from(error: StoreError) -> Self {
        CallOrConflict::Store(error)
    }
}

impl From<CallOrConflict> for StoreError {
    fn from(error: CallOrConflict) -> StoreError {
        match error {
            CallOrConflict::Call(error) => error.into(),
            CallOrConflict::Store(error) => error,
        }
    }
}

fn get_request(key: Bytes) -> proto::RangeRequest {
    proto::RangeRequest { key, ..proto::RangeRequest::default() }
}

/// etcd has no empty key and no open end: both are a zero byte.
fn key_and_end(range: &KeyRange) -> (Bytes, Bytes) {
    const ZERO: Bytes = Bytes::from_static(b"\0");
    let key = if range.start.is_empty() { ZERO } else { range.start.clone() };
    (key, range.end.clone().unwrap_or(ZERO))
}

fn to_kv(kv: proto::KeyValue) -> KeyValue {
    KeyValue {
        key: kv.key,
        value: kv.value,
        create_revision: Revision(kv.create_revision),
        mod_revision: Revision(kv.mod_revision),
        stale: false,
    }
}

fn revision_of(header: Option<ResponseHeader>) -> Revision {
    Revision(header.map_or(0, |header| header.revision))
}

impl Store for EtcdStore {
    fn get(&self, key: Bytes, at: Option<Revision>) -> BoxFuture<'_, Result<GetResponse>> {
        Box::pin(async move {
            let request = proto::RangeRequest { revision: at.map_or(0, |at| at.0), ..get_request(key) };
            let response = self.send_range(request).await?;
            let item = response.kvs.into_iter().next().map(to_kv);
            Ok(GetResponse { revision: revision_of(response.header), item })
        })
    }

    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse>> {
        Box::pin(async move {
            let (key, range_end) = key_and_end(&request.range);
            let request = proto::RangeRequest {
                key,
                range_end,
                limit: request.limit as i64,
                revision: request.at.map_or(0, |at| at.0),
                serializable: false,
                keys_only: request.select == Select::Keys,
                count_only: request.select == Select::Count,
            };
            let response = self.send_range(request).await?;
            Ok(RangeResponse {
                revision: revision_of(response.header),
                items: response.kvs.into_iter().map(to_kv).collect(),
                count: response.count.max(0) as u64,
                more: response.more,
            })
        })
    }

    fn put(&self, key: Bytes, value: Bytes, expect: Expect, ttl: Option<Duration>) -> BoxFuture<'_, Result<Revision>> {
        Box::pin(self.put_key(key, value, expect, ttl))
    }

    fn delete(&self, key: Bytes, expect: Expect) -> BoxFuture<'_, Result<Deleted>> {
        Box::pin(self.delete_key(key, expect))
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Watch>> {
        Box::pin(async move {
            self.open()?;
            let trust = self.inner.trust.clone();
            let closed = self.inner.closed.subscribe();
            Ok(watch::start(self.inner.client.clone(), request, closed, move || trust.holds()))
        })
    }

    fn current_revision(&self) -> BoxFuture<'_, Result<Revision>> {
        Box::pin(async move {
            self.open()?;
            let store = self.clone();
            let ask = move || {
                let store = store.clone();
                async move {
                    // Any linearizable read tells; this one carries next to nothing.
                    let key = Bytes::from_static(compactor::COMPACT_KEY);
                    let request = proto::RangeRequest { count_only: true, ..get_request(key) };
                    Ok(revision_of(store.send_range(request).await?.header))
                }
            };
            self.inner.revision.ask(ask).await
        })
    }

    fn progress_requests(&self) -> ProgressRequests {
        if self.inner.trust.holds() { ProgressRequests::Trusted } else { ProgressRequests::Unsupported }
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let request = proto::CompactionRequest { revision: revision.0, physical: false };
            let _: proto::CompactionResponse = self.open()?.call(Kind::Write, Method::Compact, request).await?;
            self.inner.compacted.fetch_max(revision.0, Ordering::Relaxed);
            Ok(())
        })
    }

    fn stats(&self) -> BoxFuture<'_, Result<StoreStats>> {
        Box::pin(async move {
            let revision = self.current_revision().await?;
            let mut stats = StoreStats { revision, compacted: self.known_compacted(), ..StoreStats::default() };
            for (_, status) in self.endpoint_status().await {
                let Ok(status) = status else { continue };
                stats.size = stats.size.max(status.db_size);
                stats.size_in_use = stats.size_in_use.max(status.db_size_in_use);
            }
            Ok(stats)
        })
    }

    fn health(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.current_revision().await.map(drop) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.inner.closed.send_replace(true);
        })
    }
}

#[cfg(test)]
mod tests;
