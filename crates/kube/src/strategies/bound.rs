//! A kind with what its behaviour needs of the server.

use crate::claims::Claims;
use crate::issued::IssuedMetrics;
use crate::services::Services;
use futures::future::BoxFuture;
use kubelith_kinds::DefaultFn;
use kubelith_meta::field::ErrorList;
use kubelith_meta::time::Time;
use kubelith_meta::{Status, Str, Value};
use kubelith_registry::{
    Begun, Call, DeleteOptions, DeleteStep, Deletion, GarbageCollection, Generation, Part, Strategy, count_change,
};
use kubelith_rules::gated::Gated;
use kubelith_rules::{Env, Kind, Request};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// A kind under the gates of a server: what it and its copies share.
pub struct Gatekept {
    pub kind: Kind,
    /// Nothing for kinds that have no defaults.
    pub default: Option<DefaultFn>,
    /// What is dropped because its gate is off.
    pub gated: Gated,
}

/// A kind with what its behaviour needs of the server.
pub struct Bound {
    pub gatekept: Arc<Gatekept>,
    pub env: Arc<Env>,
    /// Of services only: where their addresses and ports come from.
    pub services: Option<Arc<Services>>,
    /// Of claims on devices and their templates only: whom they ask.
    pub claims: Option<Claims>,
    /// Of certificate signing requests only: what counts the certificates that were issued.
    pub issued: Option<Arc<IssuedMetrics>>,
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
        &self.gatekept.kind
    }
}

impl Strategy for Bound {
    fn default_object(&self, version: &str, object: &mut Value) {
        if let Some(default) = &self.gatekept.default {
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
        self.gatekept.gated.drop_from(object, None);
        (self.prepare_for_create)(&self.env, call, object);
    }

    fn validate(&self, call: &Call, object: &Value) -> ErrorList {
        let mut errors = match &self.claims {
            Some(claims) => claims.check_requested(object),
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
        if self.gatekept.gated.drop_from(object, Some(old)) && self.counts_dropped {
            count_change(object, old);
        }
        (self.prepare_for_update)(&self.env, call, part, object, old);
    }

    fn validate_update(&self, call: &Call, part: Part<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = (self.rules.update)(self.request(call), object, old);
        errors.extend((self.validate_update)(call, part, object, old));
        errors
    }

    fn consult_on_update<'a>(
        &'a self,
        call: &'a Call,
        part: Part<'a>,
        object: &'a Value,
        old: &'a Value,
    ) -> Option<BoxFuture<'a, ErrorList>> {
        let claims = self.claims.as_ref().filter(|_| part == Part::Status)?;
        Some(Box::pin(claims.check_status(call, object, old)))
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
        match (&self.services, &self.issued) {
            (Some(services), _) if call.subresource.is_empty() => Box::pin(services.begin_update(call, object, old)),
            (_, Some(issued)) => Box::pin(std::future::ready(Ok(issued.begin_update(call, object, old)))),
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
