//! Makes servable resources of the catalogue's descriptors.

use crate::actions::Access;
use crate::cells::KindCells;
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
use kubelith_handlers::cells::Cells;
use kubelith_handlers::fields::ResourceFields;
use kubelith_handlers::scale::{Parent, Scale, ScaleFields, scale_kind};
use kubelith_handlers::typed::TypedDecoder;
use kubelith_handlers::{Endpoint, Limits, ListItems};
use kubelith_kinds::{Defaults, Kinds};
use kubelith_meta::random::MadeUp;
use kubelith_meta::time::{Clock, SystemClock};
use kubelith_meta::{GroupVersion, GroupVersionKind, GroupVersionResource, Status, Str, Value};
use kubelith_observe::metrics::prometheus::Registry;
use kubelith_openapi::discovery::{Entry, GroupVersion as DiscoveredVersion, Resource as Discovered};
use kubelith_registry::admission::{Admission, AdmitAll};
use kubelith_registry::{Conversion, Objects, Resource, Resources, Strategy, Turns, TypedCodec, WorkingVersion};
use kubelith_rules::Env;
use kubelith_schema::{Descriptor, Encoding};
use kubelith_store::StoreError;
use kubelith_store::cache::Hub;
use std::collections::HashMap;
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
    pub garbage_collection: bool,
    pub access: Access,
    /// `--runtime-config`.
    pub runtime_config: RuntimeConfig,
    pub emulation: Emulation,
    /// Strategies of kinds that a layer above looks after, by group and plural.
    pub strategies: HashMap<(Str, Str), Arc<dyn Strategy>>,
    /// What rules know of the server.
    pub env: Arc<Env>,
    /// Whether a feature gate is on.
    pub gates: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

/// The built-in groups, served.
pub struct Installed {
    pub routes: Routes,
    pub discovery: Vec<Entry>,
    pub resources: Resources,
    /// What gives services their addresses and ports.
    pub services: Arc<Services>,
}

impl Install {
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
            strategies: HashMap::new(),
            env: Arc::new(Env::default()),
            gates: Arc::new(|gate| FeatureGates::default().enabled(gate)),
        }
    }

    /// The descriptor with the form in which its objects are stored here.
    fn stored(&self, descriptor: &Arc<Descriptor>) -> Arc<Descriptor> {
        let mut stored = descriptor.clone();
        if descriptor.storage.encoding != self.stored_as && self.stored_as == Encoding::Json {
            Arc::make_mut(&mut stored).storage.encoding = Encoding::Json;
        }
        if let Some(version) = self.emulation.storage_version(descriptor) {
            Arc::make_mut(&mut stored).storage.kind.version = version.into();
        }
        stored
    }

    fn serves(&self, descriptor: &Descriptor, index: usize) -> bool {
        let resource = |index: usize| {
            let version = descriptor.versions[index].name.clone();
            GroupVersionResource::new(descriptor.group.clone(), version, descriptor.plural.clone())
        };
        let is_on = |index: usize| self.catalog.serves(&self.runtime_config, &*self.gates, &resource(index));
        is_on(index) && self.emulation.has(&resource(index), descriptor, is_on)
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
    let defaults = crate::strategies::defaults(config.kinds, config.catalog, &*config.gates);
    let cells: Arc<dyn Cells> = Arc::new(KindCells::new(config.kinds));
    let mut routes = Routes::default();
    let mut resources = Resources::default();
    let mut discovered: HashMap<GroupVersion, Vec<Discovered>> = HashMap::new();
    for descriptor in &config.catalog.descriptors {
        let usual = &descriptor.storage.kind;
        let descriptor = &config.stored(descriptor);
        let on: Vec<usize> = (0..descriptor.versions.len()).filter(|i| config.serves(descriptor, *i)).collect();
        if on.is_empty() {
            continue;
        }
        let resource = match descriptor.storage.keeps_objects() {
            true => Some(resource(&config, &defaults, (&services, &issued), (descriptor, usual), &on).await?),
            false => None,
        };
        for index in on {
            let version = descriptor.versions[index].name.clone();
            let gv = GroupVersion::new(descriptor.group.clone(), version);
            let endpoint = resource.as_ref().map(|r| Arc::new(endpoint(&config, &cells, r, index)));
            let mut entry = Discovered::of(descriptor, index);
            if !(config.gates)("StorageVersionHash") {
                entry.stored_as = None;
            }
            discovered.entry(gv.clone()).or_default().push(entry);
            let served = Served {
                descriptor: descriptor.clone(),
                version_index: index,
                endpoint,
                action: crate::actions::of(
                    &config.access,
                    &config.admission,
                    &config.hub,
                    &descriptor.group,
                    &descriptor.plural,
                ),
                actions: crate::actions::of_subresources(&config.access, &descriptor.group, &descriptor.plural),
                subresources: resource.iter().filter_map(|r| scale(&config, &cells, r, index)).collect(),
            };
            routes.versions.entry(gv).or_default().insert(descriptor.plural.clone(), served);
        }
        if let Some(resource) = resource {
            resources.insert((descriptor.group.clone(), descriptor.plural.clone()), resource);
        }
    }
    crate::actions::install(&mut routes, &config.env);
    let discovery = config.catalog.apis().iter().filter_map(|api| {
        let found = discovered.remove(&api.gv)?;
        Some(Entry {
            group: api.gv.group.clone(),
            version: DiscoveredVersion { name: api.gv.version.clone(), resources: found.into(), ..Default::default() },
            group_priority: api.group_priority,
            version_priority: api.version_priority,
        })
    });
    config.objects.fill(&resources);
    Ok(Installed { discovery: discovery.collect(), routes, resources, services })
}

async fn resource(
    config: &Install,
    defaults: &Defaults,
    (services, issued): (&Arc<Services>, &Arc<IssuedMetrics>),
    (descriptor, usual): (&Arc<Descriptor>, &GroupVersionKind),
    on: &[usize],
) -> Result<Arc<Resource>, StoreError> {
    let strategy = strategy(config, defaults, (services, issued), descriptor);
    let working = match strategy.working_version() {
        Some(version) => GroupVersionKind { version: version.into(), ..descriptor.storage.kind.clone() },
        // Strategies know the version that objects are usually stored in.
        None => usual.clone(),
    };
    let codec = TypedCodec::new(config.catalog, descriptor, &working, strategy.clone());
    let codec = codec.unwrap_or_else(|| panic!("the catalogue has no type for {}", descriptor.storage.kind));
    let codec = Arc::new(codec.as_served(config.served_by));
    let indexed = INDEXED_FIELDS.iter().find_map(|field| codec.selectable_index(field));
    let hub = config.hub.of(&descriptor.storage.prefix);
    let cache = hub.register(&descriptor.storage.prefix, indexed, codec.clone()).await?;
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
        working: WorkingVersion::One(working),
        served: on.iter().map(|index| descriptor.versions[*index].name.clone()).collect(),
        garbage_collection: config.garbage_collection,
        turns: Turns::default(),
    }))
}

fn strategy(
    config: &Install,
    defaults: &Defaults,
    (services, issued): (&Arc<Services>, &Arc<IssuedMetrics>),
    descriptor: &Descriptor,
) -> Arc<dyn Strategy> {
    let host = Host { kinds: config.kinds, env: config.env.clone(), defaults, gates: &*config.gates };
    let own = config.strategies.get(&(descriptor.group.clone(), descriptor.plural.clone())).cloned();
    own.unwrap_or_else(|| match (descriptor.group.as_str(), descriptor.plural.as_str()) {
        ("", "services") => host.strategy_of_services(services),
        ("resource.k8s.io", plural @ ("resourceclaims" | "resourceclaimtemplates")) => {
            host.strategy_of_claims(plural, &config.objects)
        }
        SIGNING_REQUESTS => host.strategy_of_signing_requests(issued),
        (group, plural) => host.strategy(group, plural),
    })
}

fn admission(config: &Install, descriptor: &Descriptor) -> Arc<dyn Admission> {
    let access = &config.access;
    let (group, plural) = (&descriptor.group, &descriptor.plural);
    let inner = crate::escalation::guard(group, plural, &access.roles, &access.authorizer, &config.admission);
    let inner = crate::params::guard(group, plural, &access.authorizer, &config.objects, inner);
    let inner = crate::claims::guard((group, plural), &*config.gates, &access.authorizer, inner);
    crate::signers::guard(group, plural, &access.authorizer, inner)
}

fn endpoint(config: &Install, cells: &Arc<dyn Cells>, resource: &Arc<Resource>, index: usize) -> Endpoint {
    let version = &resource.descriptor.versions[index];
    let kind = resource.descriptor.gvk(&version.name);
    Endpoint {
        resource: resource.clone(),
        view: None,
        version_index: index,
        kind: kind.clone(),
        formats: BUILT_IN,
        items: ListItems::WithoutType,
        decoder: Arc::new(TypedDecoder { kind: kind.clone(), schema: version.schema.clone() }),
        fields: Some(Arc::new(ResourceFields::new(
            resource.descriptor.clone(),
            kind.clone(),
            resource.strategy.clone(),
            resource.served.clone(),
            Arc::new(|object, to| convert(object, to).map_err(|e| e.to_string())),
        ))),
        strategic: true,
        cells: cells.clone(),
        limits: config.limits,
    }
}

/// The scale subresource of a resource that has one.
fn scale(
    config: &Install,
    cells: &Arc<dyn Cells>,
    resource: &Arc<Resource>,
    index: usize,
) -> Option<(Str, Arc<Endpoint>)> {
    let kind = scale_kind();
    let schema = config.catalog.kind_schema(&kind)?;
    let scale = Scale::of(&resource.descriptor, index, schema.clone())?;
    let endpoint = Endpoint {
        view: Some(Arc::new(scale)),
        kind: kind.clone(),
        decoder: Arc::new(TypedDecoder { kind, schema: schema.clone() }),
        fields: Some(Arc::new(ScaleFields { schema, parent: Parent::BuiltIn })),
        ..endpoint(config, cells, resource, index)
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
