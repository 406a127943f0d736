//! What data cannot say about a kind. Every hook has a default; most kinds override none.
//!
//! Hooks see objects at the resource's working version: one for all requests for built-in kinds, the
//! request's version for custom ones. The order in which they run is fixed in `create.rs`, `update.rs` and `delete.rs`.

use futures::future::BoxFuture;
use kubelith_meta::call::Call;
use kubelith_meta::field::ErrorList;
use kubelith_meta::status::Status;
use kubelith_meta::time::Time;
use kubelith_meta::{Str, Value};
use kubelith_schema::lifecycle::{DeleteOptions, DeleteStep, Deletion, GarbageCollection, Generation, Part};
use std::time::Duration;

/// Undoes or confirms what `begin_create` or `begin_update` reserved. The request waits for either.
pub trait Reservation: Send {
    /// The write is done.
    fn commit(self: Box<Self>) -> BoxFuture<'static, ()>;
    /// The write did not happen.
    fn revert(self: Box<Self>) -> BoxFuture<'static, ()>;
}

pub type Begun = Option<Box<dyn Reservation>>;

pub trait Strategy: Send + Sync + 'static {
    /// The version in which objects are cached and all hooks see them, if it is not the one they are stored in.
    fn working_version(&self) -> Option<&'static str> {
        None
    }

    /// Fills in what the client left out, at the version it speaks. Also runs on objects read in that version.
    fn default_object(&self, _version: &str, _object: &mut Value) {}

    /// Brings an object that admission patched into the form that decoding gives to bodies. Types were checked already,
    /// where the version has them.
    fn take_patched(&self, _object: &mut Value) -> Result<(), String> {
        Ok(())
    }

    /// Completes what an earlier release stored. Runs on objects as they are read from the store, after their defaults were
    /// filled in; on what is written today it changes nothing.
    fn complete_read(&self, _object: &mut Value) {}

    /// Clears what clients may not set and sets what the server knows. Runs after mutating admission.
    fn prepare_for_create(&self, _call: &Call, _object: &mut Value) {}

    fn validate(&self, _call: &Call, _object: &Value) -> ErrorList {
        ErrorList::default()
    }

    /// Whether `validate`, and `validate_update` of a main update, check metadata at least as strictly as is done for all kinds, so that
    /// it need not be done again.
    fn validates_metadata(&self) -> bool {
        false
    }

    fn warnings_on_create(&self, _call: &Call, _object: &Value) -> Vec<String> {
        Vec::new()
    }

    /// `object` has the metadata of the request; `old` is what is stored. The generic part (status kept on
    /// main updates, everything but status kept on status updates) ran before.
    fn prepare_for_update(&self, _call: &Call, _part: Part<'_>, _object: &mut Value, _old: &Value) {}

    fn validate_update(&self, _call: &Call, _part: Part<'_>, _object: &Value, _old: &Value) -> ErrorList {
        ErrorList::default()
    }

    /// What others have to say to an update, whom only an await reaches. Their errors stand before those of `validate_update`,
    /// and hold whether it has some or not.
    fn consult_on_update<'a>(
        &'a self,
        _call: &'a Call,
        _part: Part<'a>,
        _object: &'a Value,
        _old: &'a Value,
    ) -> Option<BoxFuture<'a, ErrorList>> {
        None
    }

    fn warnings_on_update(&self, _call: &Call, _part: Part<'_>, _object: &Value, _old: &Value) -> Vec<String> {
        Vec::new()
    }

    /// Brings a valid object into its stored form. It is in canonical form before and after.
    fn canonicalize(&self, _object: &mut Value) {}

    /// Whether metadata.generation counts changes, and of what.
    fn generation(&self) -> Generation {
        Generation::None
    }

    /// PUT to an absent name creates.
    fn creates_on_update(&self) -> bool {
        false
    }

    /// PUT without a resourceVersion overwrites whatever is there.
    fn updates_unconditionally(&self) -> bool {
        true
    }

    /// The answer to DELETE is the object instead of a Status.
    fn delete_returns_object(&self) -> bool {
        false
    }

    /// Whether what is deleted first becomes something that is being deleted, by a step of its own, as namespaces do: the
    /// reference then checks preconditions by itself, in other words.
    fn deletes_in_steps(&self) -> bool {
        false
    }

    /// May refuse a client's delete or warn about it, before the object is read.
    fn before_delete(&self, _call: &Call, _options: &DeleteOptions, _by: Deletion) -> Result<(), Status> {
        Ok(())
    }

    fn garbage_collection(&self, _call: &Call) -> GarbageCollection {
        GarbageCollection::DeleteDependents
    }

    /// Whether deletion waits for a grace period, which is then in `options` (set it if the client gave none).
    fn graceful_delete(&self, _call: &Call, _object: &Value, _options: &mut DeleteOptions) -> bool {
        false
    }

    /// Whether the kind takes part in graceful deletion at all. Without it a second delete is immediate.
    fn is_graceful(&self) -> bool {
        false
    }

    /// Lets a kind go its own way in deletion: namespaces wait for their content, whatever the options say.
    /// May mark `object` for deletion.
    fn delete_step(&self, _object: &mut Value, _options: &DeleteOptions, _now: Time) -> DeleteStep {
        DeleteStep::Generic
    }

    /// Whether an object that is being deleted and has no finalizer left may go now. Namespaces also wait for
    /// spec.finalizers.
    fn may_vanish(&self, _object: &Value) -> bool {
        true
    }

    /// How long objects live.
    fn time_to_live(&self, _object: &Value) -> Option<Duration> {
        None
    }

    /// Fields that a write to `part` cannot change, as field paths: they are nobody's in managedFields.
    fn reset_fields(&self, _part: Part<'_>) -> Vec<Vec<Str>> {
        Vec::new()
    }

    /// Makes `object.status` absent from creates and kept on main updates. True wherever there is a status subresource.
    fn owns_status(&self, has_status_subresource: bool) -> bool {
        has_status_subresource
    }

    /// Puts into an object with nothing in it what the kind shows even then: bookmarks carry such objects.
    fn complete_blank(&self, _object: &mut Value) {}

    /// A create may bring a status of its own, although updates may not: nodes report theirs with their creation.
    fn keeps_status_on_create(&self) -> bool {
        false
    }

    /// Reserves what the object needs from elsewhere (addresses, ports), after its metadata is complete.
    fn begin_create<'a>(&'a self, _call: &'a Call, _object: &'a mut Value) -> BoxFuture<'a, Result<Begun, Status>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn begin_update<'a>(
        &'a self,
        _call: &'a Call,
        _object: &'a mut Value,
        _old: &'a Value,
    ) -> BoxFuture<'a, Result<Begun, Status>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Runs after an object is gone from the store.
    fn after_delete<'a>(&'a self, _call: &'a Call, _object: &'a Value) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A kind without behaviour of its own.
#[derive(Debug, Default, Clone, Copy)]
pub struct Plain;

impl Strategy for Plain {}
