//! Makes servable resources of the catalogue's descriptors.

mod plan;

pub use plan::Plan;

use crate::actions::Access;
use crate::claims::Claims;
use crate::emulation::Emulation;
use crate::issued::IssuedMetrics;
use crate::services::{ServiceNetwork, Services};
use crate::strategies::{Host, SIGNING_REQUESTS};
use futures::future::BoxFuture;
use kubelith_auth::authn::anonymous::Anonymous;
use kubelith_auth::authz::builtin::AlwaysAllow;
use kubelith_catalog::{Catalog, RuntimeConfig};
use kubelith_codec::negotiate::BUILT_IN;
use kubelith_features::FeatureGates;
use kubelith_handlers::api::{Routes, Served};
use kubelith_handlers::fields::ResourceFields;
use kubelith_handlers::{Endpoint, Limits, ListItems};
use kubelith_kinds::Kinds;
use kubelith_meta::random::MadeUp;
use kubelith_meta::time::{Clock, SystemClock};
use kubelith_meta::{GroupResource, GroupVersionKind, Status, Str, Value};
use kubelith_observe::metrics::Registry;
use kubelith_openapi::discovery::Entry;
use kubelith_registry::admission::{Admission, AdmitAll};
use kubelith_registry::{Conversion, Objects, Resource, Resources, Strategy, Turns, TypedCodec, WorkingVersion};
use kubelith_rules::Env;
use kubelith_schema::{Descriptor, Encoding};
use kubelith_store::StoreError;
use kubelith_store::cache::Hub;
use plan::{Planned, PlannedVersion, Stored};
use std::sync::Arc;

/// Fields that lists and watches find objects by: kubelets ask for the pods of their node, people for the events of an object.
const INDEXED_FIELDS: [&str; 2] = ["spec.nodeName", "involvedObject.name"];

/// What the built-in groups need to be served.
pub struct Install {
    pub catalog: &'static Catalog,
    /// What sets resources of the catalogue apart.
    pub kinds: Kinds,
    pub hub: Arc<Hub>,
    /// The form in which objects are written, of kinds that are not always JSON. Any form is read.
    pub stored_as: Encoding,
    /// Where no other program reads the store, objects are written as readers get them: the number of the rules that complete them.
    pub served_by: Option<u64>,
    pub admission: Arc<dyn Admission>,
    /// Filled with what is installed.
    pub objects: Arc<Objects>,
    pub service_network: ServiceNetwork,
    pub clock: Arc<dyn Clock>,
    /// Where uids and generated names come from.
    pub made_up: MadeUp,
    /// Of metrics.
    pub registry: Registry,
    pub limits: Limits,
    /// Those that have no watch cache in the reference: their lists of any age have pages.
    pub uncached: Vec<GroupResource>,
    pub garbage_collection: bool,
    pub access: Access,
    /// `--runtime-config`.
    pub runtime_config: RuntimeConfig,
    pub emulation: Emulation,
    /// Strategies of kinds that a layer above looks after, by group and plural.
    pub strategies: Vec<((Str, Str), Arc<dyn Strategy>)>,
    /// What rules know of the server.
    pub env: Arc<Env>,
    /// Whether a feature gate is on.
    pub gates: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// Of a server with the same options; made of what is above if there is none.
    pub plan: Option<Arc<Plan>>,
}

/// The built-in groups, served.
pub struct Installed {
    pub routes: Routes,
    pub discovery: Vec<Entry>,
    pub resources: Resources,
    /// What gives services their addresses and ports.
    pub services: Arc<Services>,
    /// For servers with the same options.
    pub plan: Arc<Plan>,
}

impl Install {
    fn strategy_from_above(&self, descriptor: &Descriptor) -> Option<&Arc<dyn Strategy>> {
        let is_its = |(group, plural): &(Str, Str)| *group == descriptor.group && *plural == descriptor.plural;
        self.strategies.iter().find_map(|(of, strategy)| is_its(of).then_some(strategy))
    }

    /// Everything on, everybody allowed, nothing admitted or extended: for tests, which change what they are about.
    pub fn unguarded(hub: Arc<Hub>) -> Install {
        Install {
            catalog: kubelith_catalog::builtin(),
            kinds: kubelith_kinds::BUILTIN,
            hub,
            stored_as: Encoding::Protobuf,
            served_by: None,
            admission: Arc::new(AdmitAll),
            objects: Objects::new(),
            service_network: ServiceNetwork::default(),
            clock: Arc::new(SystemClock),
            made_up: MadeUp::Random,
            registry: Registry::new(),
            limits: Limits::default(),
            uncached: Vec::new(),
            garbage_collection: true,
            access: Access {
                roles: Arc::default(),
                uses_roles: true,
                tokens: crate::actions::no_tokens(),
                authenticator: Arc::new(Anonymous::new([])),
                authorizer: Arc::new(AlwaysAllow),
                audiences: Arc::new([]),
                clock: Arc::new(SystemClock),
            },
            runtime_config: RuntimeConfig::default(),
            emulation: Emulation::default(),
            strategies: Vec::new(),
            env: Arc::new(Env::default()),
            gates: Arc::new(|gate| FeatureGates::default().enabled(gate)),
            plan: None,
        }
    }
}

pub async fn install(config: Install) -> Result<Installed, StoreError> {
    let services = Services::new(
        config.service_network.clone(),
        config.objects.clone(),
        config.hub.clone(),
        config.stored_as,
        &config.registry,
    );
    let issued = Arc::new(IssuedMetrics::new(&config.registry));
    let plan = config.plan.clone().unwrap_or_else(|| Arc::new(Plan::new(&config)));
    let mut routes = Routes::default();
    routes.versions.reserve(plan.discovery.len());
    let mut resources = Resources::default();
    resources.reserve(plan.resources.len());
    for planned in &plan.resources {
        let descriptor = &planned.descriptor;
        let resource = match &planned.stored {
            Some(stored) => Some(resource(&config, (&services, &issued), planned, stored).await?),
            None => None,
        };
        for version in &planned.versions {
            let served = Served {
                descriptor: descriptor.clone(),
                version_index: version.index,
                endpoint: resource.as_ref().map(|r| Arc::new(endpoint(&config, &plan, r, version))),
                action: crate::actions::of(
                    &config.access,
                    &config.admission,
                    &config.hub,
                    &descriptor.group,
                    &descriptor.plural,
                ),
                actions: crate::actions::of_subresources(&config.access, &descriptor.group, &descriptor.plural),
                subresources: resource.iter().filter_map(|r| scale(&config, &plan, r, version)).collect(),
            };
            routes.versions.entry(version.gv.clone()).or_default().insert(descriptor.plural.clone(), served);
        }
        if let Some(resource) = resource {
            resources.insert((descriptor.group.clone(), descriptor.plural.clone()), resource);
        }
    }
    crate::actions::install(&mut routes, &config.env);
    config.objects.fill(&resources);
    Ok(Installed { discovery: plan.discovery.clone(), routes, resources, services, plan })
}

async fn resource(
    config: &Install,
    (services, issued): (&Arc<Services>, &Arc<IssuedMetrics>),
    planned: &Planned,
    stored: &Stored,
) -> Result<Arc<Resource>, StoreError> {
    let descriptor = &planned.descriptor;
    let strategy = strategy(config, (services, issued), planned);
    let codec = Arc::new(TypedCodec::new(stored.shape.clone(), strategy.clone()).as_served(config.served_by));
    let hub = config.hub.of(&descriptor.storage.prefix);
    let cache = hub.register(&descriptor.storage.prefix, stored.indexed, codec.clone()).await?;
    Ok(Arc::new(Resource {
        descriptor: descriptor.clone(),
        strategy,
        conversion: Arc::new(BuiltinConversion),
        encoder: codec.clone(),
        renderer: codec,
        admission: admission(config, descriptor),
        hub,
        cache,
        clock: config.clock.clone(),
        made_up: config.made_up.clone(),
        working: WorkingVersion::One(stored.working.clone()),
        served: planned.served.clone(),
        garbage_collection: config.garbage_collection,
        turns: Turns::default(),
    }))
}

fn strategy(
    config: &Install,
    (services, issued): (&Arc<Services>, &Arc<IssuedMetrics>),
    planned: &Planned,
) -> Arc<dyn Strategy> {
    let Planned { descriptor, kind, .. } = planned;
    let (host, kind) = (Host { env: config.env.clone() }, kind.clone());
    config.strategy_from_above(descriptor).cloned().unwrap_or_else(|| {
        match (descriptor.group.as_str(), descriptor.plural.as_str()) {
            ("", "services") => host.strategy_of_services(kind, services),
            ("resource.k8s.io", "resourceclaims" | "resourceclaimtemplates") => {
                host.strategy_of_claims(kind, Claims::new(&config.objects, &config.access.authorizer, &*config.gates))
            }
            SIGNING_REQUESTS => host.strategy_of_signing_requests(kind, issued),
            _ => host.strategy(kind),
        }
    })
}

fn admission(config: &Install, descriptor: &Descriptor) -> Arc<dyn Admission> {
    let access = &config.access;
    let (group, plural) = (&descriptor.group, &descriptor.plural);
    let inner = crate::escalation::guard(group, plural, &access.roles, &access.authorizer, &config.admission);
    let inner = crate::params::guard(group, plural, &access.authorizer, &config.objects, inner);
    crate::signers::guard(group, plural, &access.authorizer, inner)
}

fn endpoint(config: &Install, plan: &Plan, resource: &Arc<Resource>, version: &PlannedVersion) -> Endpoint {
    Endpoint {
        resource: resource.clone(),
        view: None,
        version_index: version.index,
        kind: version.kind.clone(),
        formats: BUILT_IN,
        items: ListItems::WithoutType,
        decoder: version.decoder.clone(),
        fields: Some(Arc::new(ResourceFields::new(
            resource.descriptor.clone(),
            version.kind.clone(),
            resource.strategy.clone(),
            resource.served.clone(),
            plan.convert.clone(),
            plan.outlines.clone(),
        ))),
        strategic: true,
        cells: plan.cells.clone(),
        limits: Limits {
            pages_any_age: config.limits.pages_any_age || is_uncached(config, &resource.descriptor),
            ..config.limits
        },
    }
}

fn is_uncached(config: &Install, descriptor: &Descriptor) -> bool {
    // Events of both groups are those of the core group where they are stored.
    let group = if descriptor.plural == "events" { "" } else { descriptor.group.as_str() };
    config.uncached.iter().any(|one| one.group == group && one.resource == descriptor.plural)
}

/// The scale subresource of a resource that has one.
fn scale(
    config: &Install,
    plan: &Plan,
    resource: &Arc<Resource>,
    version: &PlannedVersion,
) -> Option<(Str, Arc<Endpoint>)> {
    let scale = version.scale.as_ref()?;
    let endpoint = Endpoint {
        view: Some(scale.view.clone()),
        kind: scale.kind.clone(),
        decoder: scale.decoder.clone(),
        fields: Some(scale.fields.clone()),
        ..endpoint(config, plan, resource, version)
    };
    Some(("scale".into(), Arc::new(endpoint)))
}

/// Conversion between the built-in versions of a kind.
struct BuiltinConversion;

impl Conversion for BuiltinConversion {
    fn convert<'a>(&'a self, object: Value, to: &'a GroupVersionKind) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(std::future::ready(convert(object, to).map_err(Status::internal_error)))
    }
}

fn convert(mut object: Value, to: &GroupVersionKind) -> Result<Value, kubelith_catalog::ConvertError> {
    let from = object.gvk();
    // What holds of the parts of one version need not hold of another.
    object.unseal();
    kubelith_catalog::convert(object, &from, to)
}
