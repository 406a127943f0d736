//! Custom resources as the engine serves them: from a definition to endpoints, made when they are first asked for and
//! kept until the definition changes.

mod codec;
mod convert;
pub mod descriptor;
pub mod embedded;
mod scale_body;
pub(crate) mod schemas;
mod strategy;
mod table;
mod webhook;

pub use codec::WrittenAs;
pub use table::{Serving, Table};

use crate::Config;
use crate::definition::{Definition, Names};
use crate::rules::RuleTree;
use codec::{CustomCodec, CustomDecoder, FORMATS};
use convert::Renaming;
use futures::future::BoxFuture;
use kubelith_cel::declared::Root;
use kubelith_handlers::cells::NoCells;
use kubelith_handlers::fields::{ConvertNow, ResourceFields};
use kubelith_handlers::scale::{Parent, Scale, ScaleFields, scale_kind};
use kubelith_handlers::typed::TypedDecoder;
use kubelith_handlers::{Endpoint, ListItems};
use kubelith_meta::object::Namespacing;
use kubelith_meta::{Status, Str, Value};
use kubelith_registry::admission::{Admission, Operation, Request};
use kubelith_registry::{Conversion, Resource, Strategy, Turns, WorkingVersion};
use kubelith_schema::{Descriptor, Scope};
use kubelith_store::StoreError;
use scale_body::ScaleDecoder;
use schemas::Schemas;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use strategy::CustomStrategy;
use webhook::Webhook;

/// What is made of one generation of a definition.
pub struct Built {
    pub uid: Str,
    pub generation: i64,
    pub names: Names,
    pub descriptor: Arc<Descriptor>,
    /// By version, for those that are served or stored.
    pub endpoints: HashMap<Str, Arc<Endpoint>>,
    /// By version, for those that have one.
    pub scales: HashMap<Str, Arc<Endpoint>>,
    closed: Arc<AtomicBool>,
}

impl Built {
    /// Whether this is still what `definition` says.
    fn fits(&self, definition: Definition<'_>) -> bool {
        self.uid == definition.uid()
            && self.generation == definition.generation()
            && self.names == definition.accepted_names()
    }

    /// Whether objects can no longer be created.
    fn set_closed(&self, closed: bool) {
        self.closed.store(closed, Ordering::Release);
    }

    /// Endpoint of the version that objects are stored in.
    pub fn storage(&self) -> Option<&Arc<Endpoint>> {
        self.endpoints.get(&self.descriptor.storage.kind.version)
    }
}

/// Whether the cache of a resource exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cached {
    Not,
    /// With another schema: what it holds is made anew.
    Before,
}

async fn build(config: &Config, definition: Definition<'_>, cached: Cached) -> Result<Built, StoreError> {
    let schemas = Arc::new(Schemas::new(definition));
    let schema_of = |version: &str| {
        let schema = schemas.of(version).cloned().unwrap_or_default();
        // Fields that no schema has can be owned, too, where nothing is pruned.
        if definition.preserves_unknown() { Arc::new(schema.preserving()) } else { schema }
    };
    let descriptor = descriptor::descriptor(definition, &schema_of);
    let selectable = descriptor.versions.first().map(|v| v.selectable.clone()).unwrap_or_default();
    let api_version = descriptor.storage.kind.api_version().to_string();
    let codec =
        Arc::new(CustomCodec { api_version, schemas: schemas.clone(), selectable, written_as: config.written_as });
    let prefix = &descriptor.storage.prefix;
    if cached == Cached::Before {
        config.hub.replace_renderer(prefix, codec.clone()).await?;
    }
    let cache = config.hub.register(prefix, None, codec.clone()).await?;
    if let Some(counts) = &config.counts {
        counts.track(descriptor.group.clone(), descriptor.plural.clone(), Arc::downgrade(&cache));
    }
    let conversion = conversion(config, definition, &schemas);
    let closed = Arc::new(AtomicBool::new(definition.is_closed()));
    let admission = Arc::new(Gate { closed: closed.clone(), inner: config.admission.clone() });
    let served: Arc<[Str]> = descriptor.versions.iter().filter(|v| v.served).map(|v| v.name.clone()).collect();
    let (mut endpoints, mut scales) = (HashMap::new(), HashMap::new());
    for spec in definition.versions().filter(|v| v.is_served() || v.is_storage()) {
        let Some(index) = descriptor.versions.iter().position(|v| v.name == spec.name()) else { continue };
        let kind = descriptor.gvk(spec.name());
        let schema = schemas.of(spec.name()).cloned().unwrap_or_default();
        let rules = config.metrics.compiled(|| RuleTree::new(&schema, Root::Resource)).map(Arc::new);
        let strategy: Arc<dyn Strategy> = Arc::new(CustomStrategy {
            kind: kind.clone(),
            schemas: schemas.clone(),
            schema,
            namespacing: match definition.scope() {
                Scope::Namespaced => Namespacing::Required,
                Scope::Cluster => Namespacing::Forbidden,
            },
            has_status: spec.has_status(),
            scale: spec.scale(),
            rules,
            metrics: config.metrics.clone(),
        });
        let resource = Arc::new(Resource {
            descriptor: descriptor.clone(),
            strategy: strategy.clone(),
            conversion: conversion.live.clone(),
            encoder: codec.clone(),
            renderer: codec.clone(),
            admission: admission.clone(),
            hub: config.hub.clone(),
            cache: cache.clone(),
            clock: config.clock.clone(),
            made_up: config.definitions.made_up.clone(),
            working: WorkingVersion::Request,
            served: served.clone(),
            garbage_collection: config.garbage_collection,
            turns: Turns::default(),
        });
        let fields = ResourceFields::new(
            descriptor.clone(),
            kind.clone(),
            strategy,
            served.clone(),
            conversion.now.clone(),
            config.outlines.clone(),
        );
        let endpoint = Endpoint {
            resource,
            view: None,
            version_index: index,
            kind: kind.clone(),
            formats: FORMATS,
            items: ListItems::WithType,
            decoder: Arc::new(CustomDecoder { kind, schemas: schemas.clone() }),
            fields: Some(Arc::new(fields)),
            strategic: false,
            cells: Arc::new(NoCells),
            limits: config.limits,
        };
        if let Some(scale) = scale(&endpoint) {
            scales.insert(Str::from(spec.name()), Arc::new(scale));
        }
        endpoints.insert(Str::from(spec.name()), Arc::new(endpoint));
    }
    Ok(Built {
        uid: definition.uid().into(),
        generation: definition.generation(),
        names: definition.accepted_names(),
        descriptor,
        endpoints,
        scales,
        closed,
    })
}

/// How objects get from one version to another.
struct Converting {
    live: Arc<dyn Conversion>,
    /// Without waiting, for field ownership.
    now: ConvertNow,
}

fn conversion(config: &Config, definition: Definition<'_>, schemas: &Arc<Schemas>) -> Converting {
    match definition.webhook() {
        None => Converting { live: Arc::new(Renaming(schemas.clone())), now: Arc::new(convert::rename) },
        Some(webhook) => {
            let webhook = Arc::new(Webhook::new(config, definition.name(), webhook, schemas.clone()));
            Converting { live: webhook.clone(), now: Arc::new(move |object, to| webhook.convert_now(object, to)) }
        }
    }
}

/// The scale subresource of a version, if it has one.
fn scale(parent: &Endpoint) -> Option<Endpoint> {
    let kind = scale_kind();
    let schema = kubelith_catalog::builtin().kind_schema(&kind)?;
    let scale = Scale::of(&parent.resource.descriptor, parent.version_index, schema.clone())?;
    Some(Endpoint {
        resource: parent.resource.clone(),
        view: Some(Arc::new(scale)),
        version_index: parent.version_index,
        kind: kind.clone(),
        formats: FORMATS,
        items: ListItems::WithoutType,
        decoder: Arc::new(ScaleDecoder(TypedDecoder { kind, schema: schema.clone() })),
        fields: Some(Arc::new(ScaleFields { schema, parent: Parent::Custom })),
        strategic: false,
        cells: parent.cells.clone(),
        limits: parent.limits,
    })
}

/// Admission that lets nothing be created while the definition is being deleted.
struct Gate {
    closed: Arc<AtomicBool>,
    inner: Arc<dyn Admission>,
}

impl Gate {
    fn check(&self, request: &Request<'_>) -> Result<(), Status> {
        if request.operation != Operation::Create || !self.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let call = request.call;
        let why = "create not allowed while custom resource definition is terminating";
        Err(Status::forbidden(&call.resource, &call.name, why))
    }
}

impl Admission for Gate {
    fn admit<'a>(&'a self, request: Request<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        match self.check(&request) {
            Ok(()) => self.inner.admit(request, object),
            Err(status) => Box::pin(std::future::ready(Err(status))),
        }
    }

    fn validate<'a>(&'a self, request: Request<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        match self.check(&request) {
            Ok(()) => self.inner.validate(request, object),
            Err(status) => Box::pin(std::future::ready(Err(status))),
        }
    }
}
