//! A store whose requests are counted and timed by operation and resource.

use super::metrics::StorageMetrics;
use bytes::Bytes;
use futures::future::BoxFuture;
use kubelith_store::{
    Deleted, Expect, GetResponse, KeyLayout, KeyRange, ProgressRequests, RangeRequest, RangeResponse, Result, Revision,
    Select, Store, StoreError, StoreStats, Watch, WatchRequest,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct MeteredStore {
    inner: Arc<dyn Store>,
    layout: Arc<KeyLayout>,
    metrics: Arc<StorageMetrics>,
}

impl MeteredStore {
    pub fn new(inner: Arc<dyn Store>, layout: Arc<KeyLayout>, metrics: Arc<StorageMetrics>) -> MeteredStore {
        MeteredStore { inner, layout, metrics }
    }

    async fn timed<T>(
        &self,
        operation: &'static str,
        key: &[u8],
        request: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let Some(resource) = self.layout.resource(key) else { return request.await };
        let started = Instant::now();
        let outcome = request.await;
        // A guard that does not hold is an answer, not an error.
        let failed = matches!(&outcome, Err(error) if !matches!(error, StoreError::Conflict { .. }));
        self.metrics.request(operation, &resource, started.elapsed(), failed);
        outcome
    }
}

impl Store for MeteredStore {
    fn get(&self, key: Bytes, at: Option<Revision>) -> BoxFuture<'_, Result<GetResponse>> {
        Box::pin(async move { self.timed("get", &key.clone(), self.inner.get(key, at)).await })
    }

    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse>> {
        let operation = if request.select == Select::Count { "count" } else { "list" };
        let lists = request.select == Select::KeysAndValues;
        Box::pin(async move {
            let start = request.range.start.clone();
            let outcome = self.timed(operation, &start, self.inner.range(request)).await;
            if let Some(resource) = self.layout.resource(&start).filter(|_| lists) {
                self.metrics.listed(&resource, outcome.as_ref().map_or(0, |response| response.items.len()));
            }
            outcome
        })
    }

    fn put(&self, key: Bytes, value: Bytes, expect: Expect, ttl: Option<Duration>) -> BoxFuture<'_, Result<Revision>> {
        let operation = if expect == Expect::Absent { "create" } else { "update" };
        Box::pin(async move { self.timed(operation, &key.clone(), self.inner.put(key, value, expect, ttl)).await })
    }

    fn delete(&self, key: Bytes, expect: Expect) -> BoxFuture<'_, Result<Deleted>> {
        Box::pin(async move { self.timed("delete", &key.clone(), self.inner.delete(key, expect)).await })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Watch>> {
        self.inner.watch(request)
    }

    fn recent(&self, range: KeyRange, bytes: usize) -> BoxFuture<'_, Result<Revision>> {
        self.inner.recent(range, bytes)
    }

    fn current_revision(&self) -> BoxFuture<'_, Result<Revision>> {
        self.inner.current_revision()
    }

    fn progress_requests(&self) -> ProgressRequests {
        self.inner.progress_requests()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<()>> {
        self.inner.compact(revision)
    }

    fn stats(&self) -> BoxFuture<'_, Result<StoreStats>> {
        self.inner.stats()
    }

    fn health(&self) -> BoxFuture<'_, Result<()>> {
        self.inner.health()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}
