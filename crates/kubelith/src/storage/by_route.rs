//! etcd by the way that `--egress-selector-config-file` names for it.

use crate::options::Options;
use futures::future::BoxFuture;
use kubelith_outbound::egress::Route;
use kubelith_store::etcd::EtcdOptions;
use kubelith_store::{Dial, Io};
use std::io;
use std::sync::Arc;

#[derive(Debug)]
struct ByRoute(Route);

impl Dial for ByRoute {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        Box::pin(async move {
            match self.0.connect(host, port).await {
                Some(tunnel) => Ok(Box::new(tunnel.map_err(io::Error::other)?) as Box<dyn Io>),
                None => Err(io::Error::other("there is no proxy on this route")),
            }
        })
    }
}

/// How the etcd at `servers` is used.
pub fn etcd_options(options: &Options, servers: &[String]) -> EtcdOptions {
    let storage = &options.storage;
    let dial = match &options.egress.etcd {
        Route::Direct => None,
        route @ Route::Through(_) => Some(Arc::new(ByRoute(route.clone())) as Arc<dyn Dial>),
    };
    EtcdOptions {
        tls: storage.etcd_tls.clone(),
        dial,
        compaction_interval: storage.etcd_compaction_interval,
        lease_reuse: storage.lease_reuse,
        ..EtcdOptions::new(servers.iter().cloned())
    }
}
