//! A kind's behaviour as a value: facts and functions, each with a default. A kind overrides what it does differently.

use super::devices;
use crate::defaults::DefaultFn;
use crate::gated::Gated;
use crate::services::Services;
use futures::future::BoxFuture;
use kubelith_meta::field::ErrorList;
use kubelith_meta::time::Time;
use kubelith_meta::{Status, Str, Value};
use kubelith_registry::{
    Begun, Call, DeleteOptions, DeleteStep, Deletion, GarbageCollection, Generation, Objects, Part, Strategy,
    count_change,
};
use kubelith_validation::{Env, Request, Rules};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// What a kind does in the generic life cycles. The hooks are those of [`Strategy`], where their time is told.
#[derive(Clone, Copy)]
pub struct Kind {
    pub generation: Generation,
    pub creates_on_update: bool,
    pub updates_unconditionally: bool,
    pub delete_returns_object: bool,
    pub garbage_collection: GarbageCollection,
    pub complete_read: fn(&mut Value),
    pub prepare_for_create: fn(&Env, &Call, &mut Value),
    pub prepare_for_update: fn(&Env, &Call, Part<'_>, &mut Value, &Value),
    /// The rules for objects of this kind, of the crate that knows them all.
    pub rules: Rules,
    /// The rules are no milder about metadata than what is asked of all kinds.
    pub validates_metadata: bool,
    /// What else is checked.
    pub validate: fn(&Call, &Value) -> ErrorList,
    pub validate_update: fn(&Call, Part<'_>, &Value, &Value) -> ErrorList,
    pub warnings_on_create: fn(&Call, &Value) -> Vec<String>,
    pub warnings_on_update: fn(&Call, Part<'_>, &Value, &Value) -> Vec<String>,
    pub canonicalize: fn(&mut Value),
    /// `None`: deletion is never graceful.
    pub graceful_delete: Option<fn(&Value, &mut DeleteOptions) -> bool>,
    pub before_delete: fn(&Call, &DeleteOptions, Deletion) -> Result<(), Status>,
    pub deletes_in_steps: bool,
    pub delete_step: fn(&mut Value, &DeleteOptions, Time) -> DeleteStep,
    pub may_vanish: fn(&Value) -> bool,
    pub time_to_live: fn(&Value) -> Option<Duration>,
    /// Fields that nobody owns by writing to a part: what the part cannot change.
    pub reset_fields: fn(Part<'_>) -> &'static [&'static [&'static str]],
    /// Status is kept on main updates and dropped on create. False for kinds whose status anybody may write.
    pub owns_status: bool,
    /// A create may bring a status.
    pub keeps_status_on_create: bool,
    pub complete_blank: fn(&mut Value),
    /// Fields whose gate is off count in metadata.generation all the same.
    pub counts_dropped: bool,
}

impl Kind {
    pub const PLAIN: Kind = Kind {
        generation: Generation::None,
        creates_on_update: false,
        updates_unconditionally: true,
        delete_returns_object: false,
        garbage_collection: GarbageCollection::DeleteDependents,
        complete_read: |_| {},
        prepare_for_create: |_, _, _| {},
        prepare_for_update: |_, _, _, _, _| {},
        rules: Rules::NONE,
        validates_metadata: false,
        validate: |_, _| ErrorList::default(),
        validate_update: |_, _, _, _| ErrorList::default(),
        warnings_on_create: |_, _| Vec::new(),
        warnings_on_update: |_, _, _, _| Vec::new(),
        canonicalize: |_| {},
        graceful_delete: None,
        before_delete: |_, _, _| Ok(()),
        deletes_in_steps: false,
        delete_step: |_, _, _| DeleteStep::Generic,
        may_vanish: |_| true,
        time_to_live: |_| None,
        reset_fields: |part| match part {
            Part::Main => &[&["status"]],
            Part::Status => &[&["spec"]],
            Part::Other(_) => &[],
        },
        owns_status: true,
        keeps_status_on_create: false,
        complete_blank: |_| {},
        counts_dropped: false,
    };

    /// Counts changes of spec in metadata.generation.
    pub const fn generation(mut self, generation: Generation) -> Kind {
        self.generation = generation;
        self
    }

    /// PUT creates.
    pub const fn upserts(mut self) -> Kind {
        self.creates_on_update = true;
        self
    }

    /// PUT needs a resourceVersion.
    pub const fn guarded(mut self) -> Kind {
        self.updates_unconditionally = false;
        self
    }

    /// DELETE answers with the object.
    pub const fn returned(mut self) -> Kind {
        self.delete_returns_object = true;
        self
    }

    pub const fn collects(mut self, policy: GarbageCollection) -> Kind {
        self.garbage_collection = policy;
        self
    }

    pub fn with_rules_of(mut self, group: &str, plural: &str) -> Kind {
        self.rules = kubelith_validation::rules(group, plural);
        self
    }
}

/// A kind with what its behaviour needs of the server.
pub struct Bound {
    pub kind: Kind,
    /// Nothing for kinds that have no defaults.
    pub default: Option<DefaultFn>,
    pub env: Arc<Env>,
    /// What is dropped because its gate is off.
    pub gated: Gated,
    /// Of services only: where their addresses and ports come from.
    pub services: Option<Arc<Services>>,
    /// Of claims on devices only: where their namespaces are.
    pub namespaces: Option<Arc<Objects>>,
}

impl Bound {
    fn request<'a>(&'a self, call: &'a Call) -> Request<'a> {
        let subresource = &call.subresource;
        Request { group: &call.kind.group, version: &call.kind.version, subresource, env: &self.env }
    }
}

impl Deref for Bound {
    type Target = Kind;

    fn deref(&self) -> &Kind {
        &self.kind
    }
}

impl Strategy for Bound {
    fn default_object(&self, version: &str, object: &mut Value) {
        if let Some(default) = &self.default {
            default(version, object);
        }
    }

    fn complete_read(&self, object: &mut Value) {
        (self.complete_read)(object);
        if let Some(services) = &self.services {
            services.complete_read(object);
        }
    }

    fn prepare_for_create(&self, call: &Call, object: &mut Value) {
        self.gated.drop_from(object, None);
        (self.prepare_for_create)(&self.env, call, object);
    }

    fn validate(&self, call: &Call, object: &Value) -> ErrorList {
        let mut errors = match &self.namespaces {
            Some(objects) => devices::check_requested(objects, object),
            None => ErrorList::default(),
        };
        errors.extend((self.rules.create)(self.request(call), object));
        errors.extend((self.validate)(call, object));
        errors
    }

    fn validates_metadata(&self) -> bool {
        self.validates_metadata
    }

    fn warnings_on_create(&self, call: &Call, object: &Value) -> Vec<String> {
        (self.warnings_on_create)(call, object)
    }

    fn prepare_for_update(&self, call: &Call, part: Part<'_>, object: &mut Value, old: &Value) {
        if self.gated.drop_from(object, Some(old)) && self.counts_dropped {
            count_change(object, old);
        }
        (self.prepare_for_update)(&self.env, call, part, object, old);
    }

    fn validate_update(&self, call: &Call, part: Part<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = match &self.namespaces {
            Some(objects) if part == Part::Status => devices::check_given(objects, object, old),
            _ => ErrorList::default(),
        };
        errors.extend((self.rules.update)(self.request(call), object, old));
        errors.extend((self.validate_update)(call, part, object, old));
        errors
    }

    fn warnings_on_update(&self, call: &Call, part: Part<'_>, object: &Value, old: &Value) -> Vec<String> {
        (self.warnings_on_update)(call, part, object, old)
    }

    fn canonicalize(&self, object: &mut Value) {
        (self.canonicalize)(object);
    }

    fn complete_blank(&self, object: &mut Value) {
        (self.complete_blank)(object);
    }

    fn generation(&self) -> Generation {
        self.generation
    }

    fn creates_on_update(&self) -> bool {
        self.creates_on_update
    }

    fn updates_unconditionally(&self) -> bool {
        self.updates_unconditionally
    }

    fn delete_returns_object(&self) -> bool {
        self.delete_returns_object
    }

    fn garbage_collection(&self, _call: &Call) -> GarbageCollection {
        self.garbage_collection
    }

    fn graceful_delete(&self, _call: &Call, object: &Value, options: &mut DeleteOptions) -> bool {
        self.graceful_delete.is_some_and(|graceful| graceful(object, options))
    }

    fn is_graceful(&self) -> bool {
        self.graceful_delete.is_some()
    }

    fn before_delete(&self, call: &Call, options: &DeleteOptions, by: Deletion) -> Result<(), Status> {
        (self.before_delete)(call, options, by)
    }

    fn deletes_in_steps(&self) -> bool {
        self.deletes_in_steps
    }

    fn delete_step(&self, object: &mut Value, options: &DeleteOptions, now: Time) -> DeleteStep {
        (self.delete_step)(object, options, now)
    }

    fn may_vanish(&self, object: &Value) -> bool {
        (self.may_vanish)(object)
    }

    fn time_to_live(&self, object: &Value) -> Option<Duration> {
        (self.time_to_live)(object)
    }

    fn reset_fields(&self, part: Part<'_>) -> Vec<Vec<Str>> {
        let fields = (self.reset_fields)(part);
        fields.iter().map(|path| path.iter().map(|key| Str::from(*key)).collect()).collect()
    }

    fn begin_create<'a>(&'a self, call: &'a Call, object: &'a mut Value) -> BoxFuture<'a, Result<Begun, Status>> {
        match &self.services {
            Some(services) => Box::pin(services.begin_create(call, object)),
            None => Box::pin(std::future::ready(Ok(None))),
        }
    }

    fn begin_update<'a>(
        &'a self,
        call: &'a Call,
        object: &'a mut Value,
        old: &'a Value,
    ) -> BoxFuture<'a, Result<Begun, Status>> {
        match &self.services {
            Some(services) if call.subresource.is_empty() => Box::pin(services.begin_update(call, object, old)),
            _ => Box::pin(std::future::ready(Ok(None))),
        }
    }

    fn after_delete<'a>(&'a self, _call: &'a Call, object: &'a Value) -> BoxFuture<'a, ()> {
        match &self.services {
            Some(services) => Box::pin(services.after_delete(object)),
            None => Box::pin(std::future::ready(())),
        }
    }

    fn keeps_status_on_create(&self) -> bool {
        self.keeps_status_on_create
    }

    fn owns_status(&self, has_status_subresource: bool) -> bool {
        self.owns_status && has_status_subresource
    }
}
