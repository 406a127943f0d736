//! Keys in the store that go away by themselves unless refreshed: which servers are alive, and where. They are no
//! resource; kube-apiservers on the same etcd read and write them as Endpoints objects, and so do we.

use super::Bootstrap;
use crate::Resources;
use bytes::Bytes;
use kubelith_codec::json;
use kubelith_meta::Value;
use kubelith_registry::Resource;
use kubelith_store::cache::Hub;
use kubelith_store::{Expect, KeyRange, RangeRequest, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// A server that has not refreshed its key for this long is gone.
const TTL: Duration = Duration::from_secs(15);
/// A key that changes under our hands this often belongs to somebody else, too.
const ATTEMPTS: usize = 5;

pub struct StoreLeases {
    store: Arc<dyn Store>,
    prefix: String,
    /// For its codec.
    endpoints: Arc<Resource>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Removal {
    Removed,
    /// There was no such key.
    Absent,
}

impl StoreLeases {
    /// `None` if endpoints are not served.
    pub fn new(config: &Bootstrap, prefix: &str) -> Option<StoreLeases> {
        StoreLeases::below(&config.hub, &config.resources, prefix)
    }

    pub fn below(hub: &Hub, resources: &Resources, prefix: &str) -> Option<StoreLeases> {
        let endpoints = resources.get(&("".into(), "endpoints".into()))?.clone();
        Some(StoreLeases { store: hub.store().clone(), prefix: hub.key_prefix(prefix), endpoints })
    }

    /// Writes the key anew, as it was and with `set` applied; it lives for another [`TTL`].
    pub async fn refresh(&self, name: &str, set: impl Fn(&mut Value)) -> Result<(), String> {
        let key = self.key(name);
        let mut attempt = 1;
        loop {
            let current = self.store.get(key.clone(), None).await.map_err(|e| e.to_string())?.item;
            let expect = current.as_ref().map_or(Expect::Absent, |kv| Expect::At(kv.mod_revision));
            let mut object = match &current {
                Some(kv) => self.decode(&kv.value)?,
                None => Value::from([("apiVersion", "v1"), ("kind", "Endpoints")]),
            };
            set(&mut object);
            // Something must change for the key to be written; the reference counts here.
            let generation = object.meta().generation() + 1;
            object.meta_mut().set_generation(generation).remove("resourceVersion");
            let value = self.endpoints.encoder.encode(&object).map_err(|e| e.to_string())?;
            match self.store.put(key.clone(), value, expect, Some(TTL)).await {
                Ok(_) => return Ok(()),
                Err(StoreError::Conflict { .. }) if attempt < ATTEMPTS => attempt += 1,
                Err(why) => return Err(why.to_string()),
            }
        }
    }

    pub async fn remove(&self, name: &str) -> Result<Removal, String> {
        match self.store.delete(self.key(name), Expect::Any).await {
            Ok(_) => Ok(Removal::Removed),
            Err(StoreError::Conflict { current: None }) => Ok(Removal::Absent),
            Err(why) => Err(why.to_string()),
        }
    }

    /// The first address of every key.
    pub async fn addresses(&self) -> Result<Vec<String>, String> {
        let objects = self.objects().await?;
        Ok(objects.iter().filter_map(first_address).map(str::to_owned).collect())
    }

    /// The objects of all keys.
    pub async fn objects(&self) -> Result<Vec<Value>, String> {
        let request = RangeRequest::new(KeyRange::prefix(self.prefix.clone()));
        let found = self.store.range(request).await.map_err(|e| e.to_string())?;
        found.items.iter().map(|kv| self.decode(&kv.value)).collect()
    }

    fn decode(&self, stored: &[u8]) -> Result<Value, String> {
        let rendered = self.endpoints.renderer.render(stored, 0)?;
        json::parse(&rendered.json).map_err(|e| e.to_string())
    }

    fn key(&self, name: &str) -> Bytes {
        format!("{}{name}", self.prefix).into()
    }
}

pub fn first_address(object: &Value) -> Option<&str> {
    let address = first(object.get("subsets")).and_then(|subset| first(subset.get("addresses")))?;
    Some(address.str_at(&["ip"])).filter(|ip| !ip.is_empty())
}

pub fn first_port(object: &Value) -> Option<i64> {
    let port = first(object.get("subsets")).and_then(|subset| first(subset.get("ports")))?;
    port.get("port").and_then(Value::as_i64)
}

fn first(list: Option<&Value>) -> Option<&Value> {
    list?.as_array()?.first()
}
