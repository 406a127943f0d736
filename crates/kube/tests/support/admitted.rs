//! What a chain of admission plugins needs within a test.

use futures::future::BoxFuture;
use kubelith_admission::{Config, Configuration, Loopback};
use kubelith_auth::Authorizer;
use kubelith_auth::hook::NoHooks;
use kubelith_meta::random::MadeUp;
use kubelith_meta::time::SystemClock;
use kubelith_meta::{Status, Value};
use kubelith_registry::Objects;
use kubelith_rules::Env;
use std::sync::Arc;

struct NoServer;

impl Loopback for NoServer {
    fn update_quota_status<'a>(&'a self, quota: &'a Value) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(std::future::ready(Ok(quota.clone())))
    }

    fn create_namespace<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn resources<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(std::future::ready(Ok(Value::Null)))
    }
}

/// Without files, webhooks and anybody who counts.
pub fn config(
    objects: &Arc<Objects>,
    authorizer: Arc<dyn Authorizer>,
    gates: Arc<dyn Fn(&str) -> bool + Send + Sync>,
) -> Config {
    Config {
        objects: objects.clone(),
        authorizer,
        gates,
        release: 36,
        not_ready_toleration_seconds: 300,
        unreachable_toleration_seconds: 300,
        configuration: Configuration::default(),
        hooks: Arc::new(|_| Ok(Arc::new(NoHooks))),
        reviewer: Arc::new(|_| Err("nobody".to_owned())),
        custom: Arc::new(|_, _, _| Box::pin(std::future::ready(Ok(Vec::new())))),
        observer: Arc::new(()),
        server: Arc::new(NoServer),
        clock: Arc::new(SystemClock),
        made_up: MadeUp::Random,
        expressions: Env::default().expressions,
    }
}
