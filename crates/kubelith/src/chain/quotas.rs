//! How admission writes the use of quotas: as a client of this server, like any other.

use futures::future::BoxFuture;
use kubelith_admission::plugins::QuotaStatus;
use kubelith_meta::{GroupVersionResource, Status, Value};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};

pub struct QuotaWriter(pub LoopbackClient);

impl QuotaStatus for QuotaWriter {
    fn update<'a>(&'a self, quota: &'a Value) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let quotas = GroupVersionResource::new("", "v1", "resourcequotas");
            let meta = quota.meta();
            let target = ResourceRef::new(&quotas).namespace(meta.namespace()).name(meta.name()).subresource("status");
            self.0.update(&target, quota).await
        })
    }
}
