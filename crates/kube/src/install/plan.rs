//! What of the built-in groups follows from the options alone: which resources there are, in which versions and forms. It is the same for a server and
//! for its copies, which share it.

use super::{INDEXED_FIELDS, Install, convert};
use crate::cells::KindCells;
use crate::strategies::Gatekept;
use kubelith_handlers::body::Decoder;
use kubelith_handlers::cells::Cells;
use kubelith_handlers::fields::{ConvertNow, Outlines};
use kubelith_handlers::scale::{Parent, Scale, ScaleFields, scale_kind};
use kubelith_handlers::typed::TypedDecoder;
use kubelith_kinds::Defaults;
use kubelith_meta::{GroupVersion, GroupVersionKind, GroupVersionResource, Str};
use kubelith_openapi::discovery::{Entry, GroupVersion as DiscoveredVersion, Resource as Discovered};
use kubelith_registry::TypedShape;
use kubelith_schema::{Descriptor, Encoding};
use std::collections::HashMap;
use std::sync::Arc;

pub struct Plan {
    pub(super) resources: Vec<Planned>,
    pub(super) discovery: Vec<Entry>,
    pub(super) cells: Arc<dyn Cells>,
    pub(super) convert: ConvertNow,
    pub(super) outlines: Arc<Outlines>,
}

/// A resource that is served.
pub(super) struct Planned {
    /// With the form in which its objects are stored here.
    pub descriptor: Arc<Descriptor>,
    pub kind: Arc<Gatekept>,
    /// `None` for those of which nothing is stored.
    pub stored: Option<Stored>,
    pub versions: Vec<PlannedVersion>,
    /// Their names.
    pub served: Arc<[Str]>,
}

/// How objects are kept.
pub(super) struct Stored {
    pub working: GroupVersionKind,
    pub shape: Arc<TypedShape>,
    /// Where the field stands that lists and watches find objects by.
    pub indexed: Option<usize>,
}

/// A version that clients can use.
pub(super) struct PlannedVersion {
    /// Among those of the descriptor.
    pub index: usize,
    pub gv: GroupVersion,
    pub kind: GroupVersionKind,
    pub decoder: Arc<dyn Decoder>,
    pub scale: Option<PlannedScale>,
}

/// The scale subresource of a version that has one.
pub(super) struct PlannedScale {
    pub view: Arc<Scale>,
    pub kind: GroupVersionKind,
    pub decoder: Arc<dyn Decoder>,
    pub fields: Arc<ScaleFields>,
}

impl Plan {
    pub fn new(config: &Install) -> Plan {
        let defaults = crate::strategies::defaults(config.kinds, config.catalog, &*config.gates);
        let planned = config.catalog.descriptors.iter().filter_map(|descriptor| planned(config, &defaults, descriptor));
        let resources: Vec<Planned> = planned.collect();
        Plan {
            discovery: discovery(config, &resources),
            resources,
            cells: Arc::new(KindCells::new(config.kinds)),
            convert: Arc::new(|object, to| convert(object, to).map_err(|e| e.to_string())),
            outlines: Arc::default(),
        }
    }
}

fn planned(config: &Install, defaults: &Defaults, usual: &Arc<Descriptor>) -> Option<Planned> {
    let descriptor = config.stored(usual);
    let on: Vec<usize> = (0..descriptor.versions.len()).filter(|i| config.serves(&descriptor, *i)).collect();
    if on.is_empty() {
        return None;
    }
    let name = (descriptor.group.as_str(), descriptor.plural.as_str());
    let keeps = descriptor.storage.keeps_objects();
    Some(Planned {
        kind: Arc::new(Gatekept::of(name, config.kinds, defaults, &*config.gates)),
        stored: keeps.then(|| stored(config, &descriptor, &usual.storage.kind)),
        versions: on.iter().map(|index| version(config, &descriptor, *index)).collect(),
        served: on.iter().map(|index| descriptor.versions[*index].name.clone()).collect(),
        descriptor,
    })
}

/// `usual` is the kind that objects are stored as by default.
fn stored(config: &Install, descriptor: &Descriptor, usual: &GroupVersionKind) -> Stored {
    let own = config.strategy_from_above(descriptor);
    let working = match own.and_then(|strategy| strategy.working_version()) {
        Some(version) => GroupVersionKind { version: version.into(), ..descriptor.storage.kind.clone() },
        // Strategies know the version that objects are usually stored in.
        None => usual.clone(),
    };
    let shape = TypedShape::new(config.catalog, descriptor, &working);
    let shape = shape.unwrap_or_else(|| panic!("the catalogue has no type for {}", descriptor.storage.kind));
    let indexed = INDEXED_FIELDS.iter().find_map(|field| shape.selectable_index(field));
    Stored { working, shape: Arc::new(shape), indexed }
}

fn version(config: &Install, descriptor: &Descriptor, index: usize) -> PlannedVersion {
    let version = &descriptor.versions[index];
    let kind = descriptor.gvk(&version.name);
    PlannedVersion {
        index,
        gv: GroupVersion::new(descriptor.group.clone(), version.name.clone()),
        decoder: Arc::new(TypedDecoder { kind: kind.clone(), schema: version.schema.clone() }),
        kind,
        scale: scale(config, descriptor, index),
    }
}

fn scale(config: &Install, descriptor: &Descriptor, index: usize) -> Option<PlannedScale> {
    descriptor.versions[index].subresource("scale")?;
    let kind = scale_kind();
    let schema = config.catalog.kind_schema(&kind)?;
    Some(PlannedScale {
        view: Arc::new(Scale::of(descriptor, index, schema.clone())?),
        decoder: Arc::new(TypedDecoder { kind: kind.clone(), schema: schema.clone() }),
        fields: Arc::new(ScaleFields { schema, parent: Parent::BuiltIn }),
        kind,
    })
}

fn discovery(config: &Install, resources: &[Planned]) -> Vec<Entry> {
    let mut discovered: HashMap<GroupVersion, Vec<Discovered>> = HashMap::new();
    let hashes = (config.gates)("StorageVersionHash");
    for Planned { descriptor, versions, .. } in resources {
        for version in versions {
            let mut entry = Discovered::of(descriptor, version.index);
            entry.stored_as = entry.stored_as.filter(|_| hashes);
            discovered.entry(version.gv.clone()).or_default().push(entry);
        }
    }
    let entries = config.catalog.apis().iter().filter_map(|api| {
        let found = discovered.remove(&api.gv)?;
        Some(Entry {
            group: api.gv.group.clone(),
            version: DiscoveredVersion { name: api.gv.version.clone(), resources: found.into(), ..Default::default() },
            group_priority: api.group_priority,
            version_priority: api.version_priority,
        })
    });
    entries.collect()
}

impl Install {
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
