//! New objects that are the same in every store but for their uid and the time at which they were made. What a create does with them is
//! done once; each store gets a copy with its own uid and time filled in.

use crate::error;
use crate::resource::{Encoded, Resource, WorkingVersion};
use crate::working::Working;
use bytes::Bytes;
use kubelith_meta::call::Call;
use kubelith_meta::status::Status;
use kubelith_meta::time::Time;
use kubelith_meta::{Str, Value};
use kubelith_store::Expect;
use kubelith_store::cache::{Draft, EventKind, Rendered};
use memchr::memmem;
use std::ops::Range;
use std::sync::Arc;

/// Stands for the uid, and is as long as one.
const UID: &str = "00000000-0000-4000-8000-000000000000";
/// Stands for the time, and is as long as one.
pub const TIME: Time = Time::from_unix(0);
const TIME_LENGTH: usize = "1970-01-01T00:00:00Z".len();

/// An object that is ready to be stored, but for its uid and time.
pub struct Prepared {
    namespace: Str,
    name: Str,
    key: String,
    /// As readers get it.
    json: Text,
    /// Where its resourceVersion stands there.
    version: Range<usize>,
    labels: Vec<(Str, Str)>,
    fields: Vec<Str>,
    /// As it is stored, where that does not follow from the above.
    stored: Option<Text>,
}

/// A text with room for a uid and for times.
struct Text {
    bytes: Vec<u8>,
    uids: Vec<usize>,
    times: Vec<usize>,
}

impl Text {
    /// `None` if there is no room for a uid or a time.
    fn of(bytes: Vec<u8>) -> Option<Text> {
        let uids: Vec<usize> = memmem::find_iter(&bytes, UID).collect();
        let times: Vec<usize> = memmem::find_iter(&bytes, TIME.rfc3339().as_str()).collect();
        (!uids.is_empty() && !times.is_empty()).then_some(Text { bytes, uids, times })
    }

    /// `None` if they do not fit: the time may be of a clock that somebody turns.
    fn filled(&self, uid: &str, time: &str) -> Option<Vec<u8>> {
        if uid.len() != UID.len() || time.len() != TIME_LENGTH {
            return None;
        }
        let mut bytes = self.bytes.clone();
        let uids = self.uids.iter().map(|at| (*at, uid));
        for (at, text) in uids.chain(self.times.iter().map(|at| (*at, time))) {
            bytes.get_mut(at..at + text.len())?.copy_from_slice(text.as_bytes());
        }
        Some(bytes)
    }
}

impl Resource {
    /// What a create makes of `object`, which is at the working version, defaulted, of [`TIME`], and admitted, and what `then` makes of
    /// that. `None` if it depends on more than that.
    pub fn prepare(
        &self,
        call: &Call,
        mut object: Value,
        then: impl FnOnce(Value) -> Result<Value, Status>,
    ) -> Result<Option<Prepared>, Status> {
        if !matches!(&self.working, WorkingVersion::One(kind) if *kind == self.descriptor.storage.kind) {
            return Ok(None);
        }
        let meta = object.make_object().entry_or_null("metadata").make_object();
        meta.insert("creationTimestamp", TIME.rfc3339());
        meta.insert("uid", UID);
        let mut object = Working::changed(then(self.before_create(call, object)?)?);
        self.canonicalize_for_rules(call, &mut object);
        self.complete(call, &mut object);
        let mut object = object.value;
        for condition in object.at_mut(&["status", "conditions"]).and_then(Value::as_array_mut).into_iter().flatten() {
            condition.set_at(&["lastTransitionTime"], TIME.rfc3339().into());
        }
        let name = Str::from(object.str_at(&["metadata", "name"]));
        let key = self.key(&call.namespace, &name)?;
        if self.time_to_live(&object).is_some() {
            return Ok(None);
        }
        let (rendered, stored) = match self.encoder.rendered(&object, None, None) {
            Some(rendered) if self.encoder.as_prepared(&rendered).is_some() => (rendered, None),
            _ => {
                let stored = self.encoder.encode(&object)?;
                let rendered = self.renderer.render(&stored, 0).map_err(Status::internal_error)?;
                (rendered, Some(stored))
            }
        };
        let stored = match stored.map(|stored| Text::of(stored.to_vec())) {
            Some(None) => return Ok(None),
            stored => stored.flatten(),
        };
        let Rendered { json, version, labels, fields, is_foreign: false } = rendered else { return Ok(None) };
        let (Some(version), Some(json)) = (version, Text::of(json)) else { return Ok(None) };
        Ok(Some(Prepared { namespace: call.namespace.clone(), name, key, json, version, labels, fields, stored }))
    }

    /// Creates an object that was prepared for this resource.
    pub async fn create_prepared(&self, prepared: &Prepared) -> Result<(), Status> {
        let purpose = [self.descriptor.plural.as_str(), &prepared.namespace, &prepared.name];
        let uid = self.made_up.next_uid(&purpose);
        let misfit = || Status::internal_error("a prepared object has no room for its uid or time");
        let encoded = self.fill(prepared, &uid).ok_or_else(misfit)?;
        debug_assert!(self.reads_back(&encoded), "what is read back differs from what was prepared");
        let written = self.put(&prepared.key, encoded, Expect::Absent, None).await;
        written.map_err(|e| error::from_store(e, &self.descriptor.group_resource(), &prepared.name))?;
        self.made_up.used_uid(&purpose);
        Ok(())
    }

    fn fill(&self, prepared: &Prepared, uid: &str) -> Option<Encoded> {
        let time = self.clock.now().rfc3339();
        let rendered = Rendered {
            json: prepared.json.filled(uid, &time)?,
            version: Some(prepared.version.clone()),
            labels: prepared.labels.clone(),
            fields: prepared.fields.clone(),
            is_foreign: false,
        };
        let bytes = match &prepared.stored {
            Some(text) => Bytes::from(text.filled(uid, &time)?),
            None => self.encoder.as_prepared(&rendered)?,
        };
        let draft = Arc::new(Draft::new(rendered, EventKind::Added, self.hub.next_revision()));
        Some(Encoded { bytes, draft: Some(draft) })
    }
}
