//! The console of a server, put together from its parts.

use crate::flow_control::FlowControl;
use crate::options::{Options, StorageBackend};
use crate::storage::Storage;
use kubelith_auth::Authenticator;
use kubelith_auth::user::{GROUP_AUTHENTICATED, GROUP_MASTERS, User};
use kubelith_console::{Backup, SessionAuthenticator, Sessions, Sources};
use kubelith_observe::metrics::Metrics;
use kubelith_tls::Pki;
use std::sync::Arc;

/// What its answers are made of.
pub fn sources(options: &Options, storage: &Storage, flow_control: &FlowControl, metrics: &Metrics) -> Sources {
    Sources {
        metrics: metrics.clone(),
        fairness: flow_control.fairness(),
        hubs: storage.hubs.iter().map(Arc::downgrade).collect(),
        layout: (*storage.layout).clone(),
        backend: match options.storage.backend {
            StorageBackend::Embedded | StorageBackend::Companion => "embedded",
            StorageBackend::Memory => "memory",
            StorageBackend::Etcd3 => "etcd",
        },
        price: crate::cel_command::price,
        backup: storage.embedded.clone().map(|(folder, store)| Backup::new(folder, store)),
        allows_always: options.authorization.allows_always(),
    }
}

/// `next`, and sessions where there are any.
pub fn authenticator(sessions: Option<&Arc<Sessions>>, next: Arc<dyn Authenticator>) -> Arc<dyn Authenticator> {
    match sessions {
        Some(sessions) => Arc::new(SessionAuthenticator { sessions: sessions.clone(), next }),
        None => next,
    }
}

/// A link for the one who started the server, at this address. It is good once.
pub fn link(sessions: &Sessions, url: &str) -> String {
    let admin = User::named(Pki::ADMIN_NAME).with_groups(&[GROUP_MASTERS, GROUP_AUTHENTICATED]);
    format!("{url}{}#code={}", kubelith_console::PATH, sessions.link(Arc::new(admin)))
}
