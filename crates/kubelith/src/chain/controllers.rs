//! Controllers of kube-controller-manager that run beside the server: they begin when it is ready, and end before it.
//! Nothing of them shows in health, so that a server with them looks like one without.

use super::Shared;
use crate::options::StorageBackend;
use futures::future::BoxFuture;
use kubelith_controllers::{
    Context, ControllerMetrics, Discovered, Known, Leadership, Lease, LegacyTokens, Selection, Settings, Signing,
    World, manager_client,
};
use kubelith_extensions::Extensions;
use kubelith_kube::Resources;
use kubelith_kube::actions::TokenService;
use kubelith_meta::{GroupResource, GroupVersion, GroupVersionResource, Str, Value, random};
use kubelith_openapi::discovery::{self, Discovery, Freshness};
use kubelith_schema::Scope;
use kubelith_server::Delegate;
use kubelith_server::lifecycle::{PreShutdownHook, Tasks};
use kubelith_store::cache::ResourceCache;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

/// Between looks at whether the server is ready. It takes a few dozen milliseconds to be.
const LOOK: Duration = Duration::from_millis(20);
/// What controllers get to end: they hold nothing that has to be brought to an end.
const END: Duration = Duration::from_secs(1);
/// What other servers on the same etcd get to see that a namespace is going.
const NAMESPACE_GRACE: Duration = Duration::from_secs(5);

/// Tests that were written for a server without controllers take a namespace's finalizer away themselves, right after its
/// deletion. They need not find that somebody else is at it.
const NAMESPACE_PAUSE: Duration = Duration::from_millis(500);

/// Adds nothing to what is served.
pub fn beside(shared: &Shared<'_>, custom: Option<Arc<Extensions>>, next: Delegate) -> Delegate {
    let leases = shared.resources.get(&("coordination.k8s.io".into(), "leases".into()));
    let Some(leases) = leases.filter(|_| !shared.options.controllers.is_empty()) else { return next };
    let alone = shared.options.storage.backend != StorageBackend::Etcd3;
    let world = ServerWorld { resources: shared.resources.clone(), discovery: shared.discovery.clone(), custom };
    let identity = &shared.frame.identity;
    let lease = Arc::new(Lease {
        client: manager_client(&shared.frame.client),
        leases: leases.cache.clone(),
        clock: shared.clock.clone(),
        made_up: shared.frame.made_up.clone(),
        // Who has the store for itself is known again after a crash, and need not wait for the end of its own lease.
        identity: match alone {
            true => format!("{}_{}", identity.hostname, identity.id),
            false => format!("{}_{}", identity.hostname, random::uid(random::random_bits)),
        },
    });
    let manager = Manager {
        context: Context {
            client: shared.frame.client.clone(),
            world: Arc::new(world),
            clock: shared.clock.clone(),
            made_up: shared.frame.made_up.clone(),
            metrics: shared.frame.metrics.clone(),
            figures: Arc::new(ControllerMetrics::new(&shared.frame.metrics.registry)),
            quotas: shared.quotas.clone(),
            tokens: Arc::new(Tokens(shared.access.tokens.clone())),
            tasks: Tasks::default(),
            settings: Arc::new(Settings {
                namespace_grace: if alone { Duration::ZERO } else { NAMESPACE_GRACE },
                namespace_pause: match shared.options.storage.backend {
                    StorageBackend::Companion => NAMESPACE_PAUSE,
                    _ => Duration::ZERO,
                },
                root_ca: root_ca(shared),
                signing: shared
                    .options
                    .authentication
                    .client_authority
                    .as_ref()
                    .map(|files| Signing { certificate: files.cert.clone(), key: files.key.clone() }),
            }),
        },
        lease,
        selection: shared.options.controllers.clone(),
        started: shared.frame.started.clone(),
        tasks: shared.frame.tasks.clone(),
    };
    let (stop, (ended, end)) = (CancellationToken::new(), oneshot::channel());
    let until = stop.clone();
    shared.frame.tasks.spawn_until_stopped("controllers", async move {
        manager.run(until).await;
        let _ = ended.send(());
    });
    next.pre_shutdown_hook(PreShutdownHook::new("stop-controllers", move || async move {
        stop.cancel();
        // An error means that they have ended already.
        let _ = end.await;
        Ok(())
    }))
}

/// What clients verify this server by.
fn root_ca(shared: &Shared<'_>) -> Option<String> {
    let file = shared.options.serving.root_ca_file.as_ref()?;
    match std::fs::read_to_string(file) {
        Ok(pem) => Some(pem),
        Err(why) => {
            tracing::warn!(file = %file.display(), err = %why, "no certificate is published in namespaces");
            None
        }
    }
}

struct Manager {
    context: Context,
    lease: Arc<Lease>,
    selection: Selection,
    /// Raised when the post-start hooks are done.
    started: CancellationToken,
    /// Of the whole server.
    tasks: Tasks,
}

impl Manager {
    async fn run(&self, stop: CancellationToken) {
        if stop.run_until_cancelled(self.ready()).await.is_none() {
            return;
        }
        loop {
            let Some(leadership) = stop.run_until_cancelled(self.lease.acquire()).await else { return };
            if self.lead(leadership, &stop).await.is_none() {
                return;
            }
        }
    }

    /// Whatever controllers need is there then: roles, namespaces, discovery.
    async fn ready(&self) {
        self.started.cancelled().await;
        while !self.context.client.get_path("/readyz").await.is_ok_and(|answer| answer.status().is_success()) {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Runs the controllers while the lease is ours; `None` when the server stops.
    async fn lead(&self, mut leadership: Leadership, stop: &CancellationToken) -> Option<()> {
        let context = Context { tasks: Tasks::default(), ..self.context.clone() };
        kubelith_controllers::start(&context, &self.selection);
        let outcome = tokio::select! {
            () = leadership.keep() => Some(()),
            () = stop.cancelled() => None,
            why = context.tasks.failed() => {
                self.tasks.fail(why);
                None
            }
        };
        if let Err(left) = context.tasks.shut_down(END).await {
            tracing::warn!(?left, "controllers did not end in time");
        }
        if outcome.is_none() {
            leadership.release().await;
        }
        outcome
    }
}

/// Signs with the key of service accounts, which may still have to be made.
struct Tokens(TokenService);

impl LegacyTokens for Tokens {
    fn sign<'a>(&'a self, account: &'a Value, secret: &'a str) -> BoxFuture<'a, Result<Option<String>, String>> {
        Box::pin(async move {
            let tokens = self.0.clone().await.map_err(|why| why.to_string())?;
            tokens.issuer.issue_legacy(account, secret)
        })
    }
}

/// What controllers see.
struct ServerWorld {
    resources: Arc<Resources>,
    discovery: Arc<Discovery>,
    custom: Option<Arc<Extensions>>,
}

impl World for ServerWorld {
    fn cache(&self, group: &str, plural: &str) -> Option<Arc<ResourceCache>> {
        self.resources.get(&(group.into(), plural.into())).map(|r| r.cache.clone())
    }

    fn cache_of<'a>(&'a self, resource: &'a GroupResource) -> BoxFuture<'a, Option<Arc<ResourceCache>>> {
        Box::pin(async move {
            match (self.cache(&resource.group, &resource.resource), &self.custom) {
                (Some(cache), _) => Some(cache),
                (None, Some(custom)) => custom.cache(resource).await,
                (None, None) => None,
            }
        })
    }

    fn discovery_changes(&self) -> watch::Receiver<()> {
        self.discovery.changes()
    }

    fn discover(&self) -> Discovered {
        let mut discovered = Discovered::default();
        for group in self.discovery.groups() {
            for version in &group.versions {
                let gv = GroupVersion::new(group.name.clone(), version.name.clone());
                if version.freshness == Freshness::Stale {
                    discovered.stale.push(gv);
                    continue;
                }
                match &version.described {
                    Some(described) => discovered.resources.extend(described_resources(&gv, described)),
                    None => discovered.resources.extend(version.resources.iter().map(|r| known(&gv, r))),
                }
            }
        }
        discovered
    }
}

fn known(gv: &GroupVersion, resource: &discovery::Resource) -> Known {
    Known {
        resource: gv.with_resource(resource.plural.clone()),
        kind: resource.kind.clone(),
        namespaced: resource.scope == Scope::Namespaced,
        verbs: resource.verbs.clone(),
    }
}

/// Resources as another server describes them.
fn described_resources(gv: &GroupVersion, described: &Value) -> Vec<Known> {
    let resources = described.get("resources").and_then(Value::as_array).unwrap_or_default();
    let read = |resource: &Value| {
        let plural = Str::from(resource.str_at(&["resource"]));
        let verbs = resource.get("verbs").and_then(Value::as_array).unwrap_or_default();
        Known {
            resource: GroupVersionResource::new(gv.group.clone(), gv.version.clone(), plural),
            kind: resource.str_at(&["responseKind", "kind"]).into(),
            namespaced: resource.str_at(&["scope"]) == "Namespaced",
            verbs: verbs.iter().filter_map(Value::as_str).map(Str::from).collect(),
        }
    };
    resources.iter().map(read).collect()
}
