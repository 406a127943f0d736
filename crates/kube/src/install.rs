//! Makes servable resources of the catalogue's descriptors.

use crate::actions::Access;
use crate::cells::BuiltinCells;
use crate::services::{ServiceNetwork, Services};
use crate::strategies;
use futures::future::BoxFuture;
use kubelith_catalog::{Catalog, RuntimeConfig};
use kubelith_codec::negotiate::BUILT_IN;
use kubelith_meta::time::Clock;
use kubelith_meta::{GroupVersion, GroupVersionKind, GroupVersionResource, Status, Value};
use kubelith_registry::admission::Admission;
use kubelith_registry::{Conversion, Objects, Plain, Resource, Resources, Strategy, TypedCodec, Working};
use kubelith_schema::Descriptor;
use kubelith_server::api::{Action, Routes, Served};
use kubelith_server::discovery::{Entry, GroupVersion as DiscoveredVersion, Resource as Discovered};
use kubelith_server::handlers::fields::ResourceFields;
use kubelith_server::handlers::typed::TypedDecoder;
use kubelith_server::handlers::{Endpoint, FieldTracker, Limits, ListItems};
use kubelith_store::StoreError;
use kubelith_store::cache::Hub;
use std::collections::HashMap;
use std::sync::Arc;

/// What the built-in groups need to be served.
pub struct Install {
    pub catalog: &'static Catalog,
    pub hub: Arc<Hub>,
    pub admission: Arc<dyn Admission>,
    /// Filled with what is installed.
    pub objects: Arc<Objects>,
    pub service_network: ServiceNetwork,
    pub clock: Arc<dyn Clock>,
    pub limits: Limits,
    pub garbage_collection: bool,
    pub access: Access,
    /// `--runtime-config`.
    pub runtime_config: RuntimeConfig,
    /// Whether a feature gate is on.
    pub gates: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

/// The built-in groups, served.
pub struct Installed {
    pub routes: Routes,
    pub discovery: Vec<Entry>,
    pub resources: Resources,
}

impl Install {
    fn serves(&self, descriptor: &Descriptor, index: usize) -> bool {
        let version = descriptor.versions[index].name.clone();
        let resource = GroupVersionResource::new(descriptor.group.clone(), version, descriptor.plural.clone());
        self.catalog.serves(&self.runtime_config, &*self.gates, &resource)
    }
}

pub async fn install(config: Install) -> Result<Installed, StoreError> {
    let services = Services::new(config.service_network.clone(), config.objects.clone(), config.hub.clone());
    let mut routes = Routes::default();
    let mut resources = HashMap::new();
    let mut discovered: HashMap<GroupVersion, Vec<Discovered>> = HashMap::new();
    for descriptor in &config.catalog.descriptors {
        let on: Vec<usize> = (0..descriptor.versions.len()).filter(|i| config.serves(descriptor, *i)).collect();
        if on.is_empty() {
            continue;
        }
        let resource = match descriptor.storage.keeps_objects() {
            true => Some(resource(&config, &services, descriptor).await?),
            false => None,
        };
        for index in on {
            let version = descriptor.versions[index].name.clone();
            let gv = GroupVersion::new(descriptor.group.clone(), version);
            let endpoint = resource.as_ref().map(|r| Arc::new(endpoint(&config, r, index)));
            discovered.entry(gv.clone()).or_default().push(Discovered::of(descriptor, index));
            let served = Served {
                descriptor: descriptor.clone(),
                version_index: index,
                endpoint,
                action: action(&config, descriptor, index),
                actions: HashMap::new(),
                subresources: HashMap::new(),
            };
            routes.versions.entry(gv).or_default().insert(descriptor.plural.clone(), served);
        }
        if let Some(resource) = resource {
            resources.insert((descriptor.group.clone(), descriptor.plural.clone()), resource);
        }
    }
    let discovery = config.catalog.apis().iter().filter_map(|api| {
        let found = discovered.remove(&api.gv)?;
        Some(Entry {
            group: api.gv.group.clone(),
            version: DiscoveredVersion { name: api.gv.version.clone(), resources: found.into(), ..Default::default() },
            group_priority: api.group_priority,
            version_priority: api.version_priority,
        })
    });
    config.objects.fill(resources.clone());
    Ok(Installed { discovery: discovery.collect(), routes, resources })
}

/// What a resource does of which nothing is stored.
fn action(config: &Install, descriptor: &Arc<Descriptor>, index: usize) -> Option<Arc<dyn Action>> {
    if descriptor.storage.keeps_objects() {
        return None;
    }
    let kind = descriptor.gvk(&descriptor.versions[index].name);
    let fields = fields(descriptor, kind, Arc::new(Plain));
    crate::actions::of(&config.access, &config.hub, &descriptor.group, &descriptor.plural, fields)
}

/// Who owns which field of a kind.
fn fields(descriptor: &Arc<Descriptor>, kind: GroupVersionKind, strategy: Arc<dyn Strategy>) -> Arc<dyn FieldTracker> {
    let convert = Arc::new(|object, to: &GroupVersionKind| convert(object, to).map_err(|e| e.to_string()));
    Arc::new(ResourceFields::new(descriptor.clone(), kind, strategy, convert))
}

async fn resource(
    config: &Install,
    services: &Arc<Services>,
    descriptor: &Arc<Descriptor>,
) -> Result<Arc<Resource>, StoreError> {
    let strategy = strategies::of(&descriptor.group, &descriptor.plural, services);
    let codec = TypedCodec::new(config.catalog, descriptor, strategy.clone());
    let codec = Arc::new(codec.unwrap_or_else(|| panic!("the catalogue has no type for {}", descriptor.storage.kind)));
    let indexed = codec.selectable_index("spec.nodeName");
    let cache = config.hub.register(&descriptor.storage.prefix, indexed, codec.clone()).await?;
    Ok(Arc::new(Resource {
        descriptor: descriptor.clone(),
        strategy,
        conversion: Arc::new(BuiltinConversion),
        encoder: codec.clone(),
        renderer: codec,
        admission: config.admission.clone(),
        hub: config.hub.clone(),
        cache,
        clock: config.clock.clone(),
        working: Working::Storage,
        garbage_collection: config.garbage_collection,
    }))
}

fn endpoint(config: &Install, resource: &Arc<Resource>, index: usize) -> Endpoint {
    let version = &resource.descriptor.versions[index];
    let kind = resource.descriptor.gvk(&version.name);
    Endpoint {
        resource: resource.clone(),
        version_index: index,
        kind: kind.clone(),
        formats: BUILT_IN,
        items: ListItems::WithoutType,
        decoder: Arc::new(TypedDecoder { kind: kind.clone(), schema: version.schema.clone() }),
        fields: Some(fields(&resource.descriptor, kind, resource.strategy.clone())),
        strategic: true,
        cells: Arc::new(BuiltinCells),
        limits: config.limits,
    }
}

/// Conversion between the built-in versions of a kind.
struct BuiltinConversion;

impl Conversion for BuiltinConversion {
    fn convert<'a>(&'a self, object: Value, to: &'a GroupVersionKind) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(std::future::ready(convert(object, to).map_err(Status::internal_error)))
    }
}

fn convert(object: Value, to: &GroupVersionKind) -> Result<Value, kubelith_catalog::ConvertError> {
    let from = object.gvk();
    kubelith_catalog::convert(object, &from, to)
}
