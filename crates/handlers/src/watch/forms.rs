//! Events in the form that the client wants.

use super::WatchState;
use crate::{table, views};
use kubelith_codec::frames;
use kubelith_codec::negotiate::Format;
use kubelith_http::negotiated::encode;
use kubelith_meta::{Status, Value};
use kubelith_store::cache::{CachedObject, EventKind};

/// Only the first table of a watch has column definitions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Columns {
    Due,
    Sent,
}

impl WatchState {
    pub(super) async fn push(&mut self, kind: EventKind, object: &CachedObject) {
        let made = match (&self.negotiated.convert, self.negotiated.format) {
            (None, Format::Json) if object.broken.is_none() && views::is_native(&self.cx, object) => {
                Ok(object.json_frame(kind))
            }
            (None, Format::Protobuf) => match views::protobuf_of(&self.cx, object).await {
                Ok(object) => Ok(frames::proto_event(kind.as_str(), object.len()).with(&object).into()),
                Err(status) => Err(status),
            },
            _ => match views::value_of(&self.cx, object).await {
                Ok(value) => return self.push_value(kind.as_str(), value),
                Err(status) => Err(status),
            },
        };
        match made {
            Ok(frame) => self.pieces.push(frame),
            Err(status) => self.push_error(&status),
        }
    }

    pub(super) fn push_value(&mut self, kind: &str, object: Value) {
        let Some(object) = self.event_value(object).transpose() else {
            self.watcher = None;
            return;
        };
        let encoded = object.and_then(|object| match self.negotiated.format {
            Format::Protobuf => {
                let object = match self.negotiated.convert {
                    None => views::protobuf_value(&self.cx, &object)?,
                    Some(_) => encode(Format::Protobuf, &object, false)?,
                };
                Ok(frames::proto_event(kind, object.len()).with(&object))
            }
            _ => Ok(frames::json_event(kind).with(&views::object_json(&object))),
        });
        match encoded {
            Ok(frame) => self.pieces.push(frame.into()),
            Err(status) => self.push_error(&status),
        }
    }

    /// The object as the kind the client asked for; `None` if an object cannot be that, which ends the watch.
    fn event_value(&mut self, object: Value) -> Result<Option<Value>, Status> {
        let Some(target) = &self.negotiated.convert else { return Ok(Some(object)) };
        match target.kind.as_str() {
            "Table" => {
                let mut table = table::of_object(&self.cx, &object, &target.version)?;
                if std::mem::replace(&mut self.columns, Columns::Sent) == Columns::Sent {
                    table.set_at(&["columnDefinitions"], Value::Null);
                }
                Ok(Some(table))
            }
            "PartialObjectMetadata" => Ok(Some(views::partial_metadata(&self.cx, &object, &target.version))),
            _ => Ok(None),
        }
    }

    /// An error ends the watch, as its last event.
    pub(super) fn push_error(&mut self, status: &Status) {
        let value = status.to_value();
        let frame = match self.negotiated.format {
            Format::Protobuf => match encode(Format::Protobuf, &value, false) {
                Ok(object) => frames::proto_event("ERROR", object.len()).with(&object),
                Err(_) => Vec::new(),
            },
            _ => frames::json_event("ERROR").with(&views::object_json(&value)),
        };
        self.pieces.push(frame.into());
        self.watcher = None;
    }
}
