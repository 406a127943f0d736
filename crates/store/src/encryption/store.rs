//! Any store, with its values encrypted.

use super::keyring::Transformers;
use super::transformer::Transformer;
use crate::error::{Result, StoreError};
use crate::model::{
    Deleted, Expect, GetResponse, KeyRange, KeyValue, RangeRequest, RangeResponse, Revision, Select, StoreStats,
};
use crate::traits::{ProgressRequests, Store};
use crate::watch::{Event, Watch, WatchBatch, WatchError, WatchRequest};
use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// Encrypts on the way in and decrypts on the way out.
///
/// A value that cannot be decrypted fails a read with `StoreError::Undecryptable`. It can still be deleted:
/// then `Deleted::previous` has an empty value, and the watch event no previous value.
pub struct EncryptedStore {
    inner: Arc<dyn Store>,
    transformers: Arc<dyn Transformers>,
}

impl EncryptedStore {
    pub fn new(inner: Arc<dyn Store>, transformers: Arc<dyn Transformers>) -> EncryptedStore {
        EncryptedStore { inner, transformers }
    }
}

async fn open(transformer: &Transformer, mut kv: KeyValue) -> Result<KeyValue> {
    match transformer.open(&kv.value, &kv.key).await {
        Ok(opened) => {
            (kv.value, kv.stale) = (opened.value, opened.stale);
            Ok(kv)
        }
        Err(reason) => Err(StoreError::Undecryptable { key: String::from_utf8_lossy(&kv.key).into_owned(), reason }),
    }
}

/// The conflict's value is decrypted, too; other errors stay as they are.
async fn open_conflict(transformer: &Transformer, error: StoreError) -> StoreError {
    match error {
        StoreError::Conflict { current: Some(kv) } => match open(transformer, *kv).await {
            Ok(kv) => StoreError::conflict(Some(kv)),
            Err(error) => error,
        },
        error => error,
    }
}

async fn open_event(transformer: &Transformer, event: Event) -> Result<Event> {
    Ok(match event {
        Event::Put { kv, prev } => {
            let kv = open(transformer, kv).await?;
            // The new value is what matters: a previous one that was replaced because nobody could read it
            // must not end the watch.
            let prev = match prev {
                Some(prev) => open(transformer, prev).await.ok(),
                None => None,
            };
            Event::Put { kv, prev }
        }
        Event::Delete { key, revision, prev } => {
            let prev = match prev {
                Some(prev) => open(transformer, prev).await.ok(),
                None => None,
            };
            Event::Delete { key, revision, prev }
        }
    })
}

async fn open_batch(transformers: &dyn Transformers, batch: WatchBatch) -> Result<WatchBatch, WatchError> {
    let mut events = Vec::with_capacity(batch.events.len());
    for event in batch.events {
        let transformer = transformers.of(event.key());
        events.push(open_event(&transformer, event).await?);
    }
    Ok(WatchBatch { events, revision: batch.revision })
}

impl Store for EncryptedStore {
    fn get(&self, key: Bytes, at: Option<Revision>) -> BoxFuture<'_, Result<GetResponse>> {
        Box::pin(async move {
            let mut response = self.inner.get(key, at).await?;
            if let Some(kv) = response.item {
                response.item = Some(open(&self.transformers.of(&kv.key), kv).await?);
            }
            Ok(response)
        })
    }

    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse>> {
        Box::pin(async move {
            let select = request.select;
            let mut response = self.inner.range(request).await?;
            if select == Select::KeysAndValues {
                for item in &mut response.items {
                    *item = open(&self.transformers.of(&item.key), item.clone()).await?;
                }
            }
            Ok(response)
        })
    }

    fn put(&self, key: Bytes, value: Bytes, expect: Expect, ttl: Option<Duration>) -> BoxFuture<'_, Result<Revision>> {
        Box::pin(async move {
            let transformer = self.transformers.of(&key);
            // A put is refused before anything is written: the store is as good as unavailable.
            let sealed = transformer.seal(value, &key).await.map_err(StoreError::Unavailable)?;
            match self.inner.put(key, sealed, expect, ttl).await {
                Ok(revision) => Ok(revision),
                Err(error) => Err(open_conflict(&transformer, error).await),
            }
        })
    }

    fn delete(&self, key: Bytes, expect: Expect) -> BoxFuture<'_, Result<Deleted>> {
        Box::pin(async move {
            let transformer = self.transformers.of(&key);
            match self.inner.delete(key, expect).await {
                Ok(Deleted { revision, previous }) => {
                    let unreadable = KeyValue { value: Bytes::new(), stale: true, ..previous.clone() };
                    let previous = open(&transformer, previous).await.unwrap_or(unreadable);
                    Ok(Deleted { revision, previous })
                }
                Err(error) => Err(open_conflict(&transformer, error).await),
            }
        })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Watch>> {
        Box::pin(async move {
            let (batches, control) = self.inner.watch(request).await?.into_parts();
            // An error is the last item, also if it comes from here.
            let state = Some((batches, self.transformers.clone()));
            let opened = futures::stream::unfold(state, |state| async move {
                let (mut batches, transformers) = state?;
                let item = match batches.next().await? {
                    Ok(batch) => open_batch(&*transformers, batch).await,
                    Err(error) => Err(error),
                };
                let state = item.is_ok().then_some((batches, transformers));
                Some((item, state))
            });
            Ok(Watch::new(opened.boxed(), control))
        })
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
