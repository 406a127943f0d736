//! The API extensions server: custom resources. It is the last to be asked, so that no definition can take a built-in
//! group's place.
//!
//! In health it shows, in this order: `start-apiextensions-informers`, `start-apiextensions-controllers`,
//! `crd-informer-synced`.

use super::Shared;
use super::own_requests::own_server;
use crate::options::StorageBackend;
use kubelith_extensions::{Config, DefinitionStrategy, Extensions, ExtensionsMetrics, WrittenAs};
use kubelith_kube::strategies;
use kubelith_meta::Str;
use kubelith_outbound::proxy::hook::{HookClients, HookConfig, Users};
use kubelith_registry::Strategy;
use kubelith_rules::expression::Expressions;
use kubelith_server::Delegate;
use kubelith_server::lifecycle::PostStartHook;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

const GROUP: &str = "apiextensions.k8s.io";
const DEFINITIONS: &str = "customresourcedefinitions";

/// Defaults of definitions follow from the catalogue alone.
static DEFAULTS: LazyLock<Arc<dyn Strategy>> = LazyLock::new(|| strategies::of(GROUP, DEFINITIONS));

/// What other servers on the same etcd get to see that a definition is going. They hear of it within a few milliseconds.
const DELETION_GRACE: Duration = Duration::from_millis(50);

/// What definitions do in the life cycles, with their place in the table of strategies.
pub fn strategy(expressions: Arc<Expressions>) -> ((Str, Str), Arc<dyn Strategy>) {
    let strategy = DefinitionStrategy { defaults: DEFAULTS.clone(), expressions };
    ((GROUP.into(), DEFINITIONS.into()), Arc::new(strategy))
}

/// Also answers what knows the custom resources, if they are served.
pub fn server(shared: &Shared<'_>, next: Delegate) -> (Delegate, Option<Arc<Extensions>>) {
    let Some(definitions) = shared.resources.get(&(GROUP.into(), DEFINITIONS.into())) else { return (next, None) };
    let config = Config {
        hub: shared.hub.clone(),
        definitions: definitions.clone(),
        admission: shared.admission.clone(),
        clock: shared.clock.clone(),
        limits: shared.limits,
        written_as: match shared.options.features.enabled("CBORServingAndStorage") {
            true => WrittenAs::Cbor,
            false => WrittenAs::Json,
        },
        garbage_collection: shared.options.storage.garbage_collector,
        metrics: Arc::new(ExtensionsMetrics::new(&shared.frame.metrics.registry)),
        counts: shared.frame.flow_control.counts(),
        hooks: HookClients::new(HookConfig {
            resolve: shared.resolve.clone(),
            own: Some(own_server(shared.frame.client.clone())),
            users: Users::default(),
            cluster: shared.options.egress.cluster.clone(),
            control_plane: shared.options.egress.control_plane.clone(),
            flaws: Some(shared.frame.metrics.webhooks.clone()),
            transports: shared.frame.metrics.transports.clone(),
        }),
        webhook_timeout: kubelith_extensions::WEBHOOK_TIMEOUT,
        deletion_grace: match shared.options.storage.backend {
            StorageBackend::Etcd3 => DELETION_GRACE,
            _ => Duration::ZERO,
        },
        outlines: Arc::default(),
    };
    let extensions = Extensions::new(config, shared.discovery.clone(), shared.openapi.clone());
    let documents = shared.installation.awaits_one();
    let (controllers, (settled, wait)) = (extensions.clone(), tokio::sync::oneshot::channel());
    let delegate = next
        .behind(|next| extensions.before(next))
        .post_start_hook(PostStartHook::new("start-apiextensions-informers", |_| async { Ok(()) }))
        .post_start_hook(PostStartHook::new("start-apiextensions-controllers", move |context| async move {
            // Whoever waits for the definitions may be gone already.
            let _ = settled.send(controllers.start(&context.client, &context.tasks));
            Ok(())
        }))
        .post_start_hook(PostStartHook::new("crd-informer-synced", move |_| async move {
            if let Ok(running) = wait.await {
                running.settled().await;
            }
            documents.done();
            Ok(())
        }));
    (delegate, Some(extensions))
}
