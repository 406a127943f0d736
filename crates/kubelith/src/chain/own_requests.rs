//! What admission plugins ask of this server: as a client of it, like any other.

use futures::future::BoxFuture;
use http_body_util::BodyExt;
use kubelith_admission::Loopback;
use kubelith_meta::{GroupVersionResource, Status, Value};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};

pub struct OwnRequests(pub LoopbackClient);

impl Loopback for OwnRequests {
    fn update_quota_status<'a>(&'a self, quota: &'a Value) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let quotas = GroupVersionResource::new("", "v1", "resourcequotas");
            let meta = quota.meta();
            let target = ResourceRef::new(&quotas).namespace(meta.namespace()).name(meta.name()).subresource("status");
            self.0.update(&target, quota).await
        })
    }

    fn create_namespace<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let namespaces = GroupVersionResource::new("", "v1", "namespaces");
            let mut namespace = Value::default();
            namespace.meta_mut().set_name(name);
            self.0.create(&ResourceRef::new(&namespaces), &namespace).await.map(drop)
        })
    }

    fn resources<'a>(&'a self, group_version: &'a str) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let root = if group_version.contains('/') { "apis" } else { "api" };
            let answer = self.0.get_path(&format!("/{root}/{group_version}")).await?;
            let found = answer.status().is_success();
            let body = answer.into_body().collect().await.map_err(Status::internal_error)?.to_bytes();
            let listed = kubelith_codec::json::parse(&body).ok().filter(|_| found);
            listed.ok_or_else(|| Status::internal_error(format!("{group_version} is not served")))
        })
    }
}
