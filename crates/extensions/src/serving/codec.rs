//! Bytes of custom resources: bodies of requests, and JSON in the store.

use super::schemas::{Nulls, Schemas, unknown_field};
use bytes::Bytes;
use kubelith_codec::json::{self, Strictness};
use kubelith_codec::negotiate::Format;
use kubelith_codec::{cbor, yaml};
use kubelith_handlers::body::summarize;
use kubelith_handlers::{Decoded, Decoder};
use kubelith_meta::text::{json_kind, quote};
use kubelith_meta::time::Time;
use kubelith_meta::{GroupVersionKind, Status, Value};
use kubelith_registry::{Encoder, render, set_resource_version};
use kubelith_schema::Form;
use kubelith_schema::SelectableField;
use kubelith_store::cache::{Rendered, Renderer};
use std::sync::Arc;

/// What custom resources speak.
pub const FORMATS: &[Format] = &[Format::Json, Format::Yaml];

/// Decodes bodies of one version.
pub struct CustomDecoder {
    pub kind: GroupVersionKind,
    pub schemas: Arc<Schemas>,
}

impl Decoder for CustomDecoder {
    fn decode(&self, body: &[u8], format: Format, strictness: Strictness) -> Result<Decoded, Status> {
        let unrecognized = |why: &dyn std::fmt::Display| {
            let (kind, summary) = (&self.kind.kind, summarize(body));
            Status::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): {why} ({summary})"
            ))
        };
        let mut strict = Vec::new();
        let object = match format {
            Format::Yaml => {
                let document = yaml::read(body).map_err(|e| unrecognized(&e))?;
                if strictness == Strictness::Report {
                    strict.extend(document.strict_error().map(|e| e.to_string()));
                }
                document.value
            }
            _ => {
                let decoded = json::parse_document(body, strictness).map_err(|e| unrecognized(&untyped(&e)))?;
                strict.extend(decoded.strict.iter().map(ToString::to_string));
                decoded.value
            }
        };
        if !matches!(object, Value::Object(_) | Value::Null) {
            return Err(unrecognized(&untyped(&no_type(&object))));
        }
        if object.str_at(&["kind"]).is_empty() {
            let shown = String::from_utf8_lossy(body);
            return Err(unrecognized(&format!("Object 'Kind' is missing in '{}'", shown.trim_end())));
        }
        let given = object.gvk();
        let taken = self.take(object, strictness).map_err(|why| {
            Status::bad_request(format!(
                "{} in version {} cannot be handled as a {}: {why}",
                given.kind,
                quote(&given.version),
                self.kind.kind
            ))
        })?;
        strict.extend_from_slice(&taken.strict);
        Ok(Decoded { strict, ..taken })
    }

    fn decode_patched(&self, text: &[u8], strictness: Strictness) -> Result<Decoded, String> {
        self.decode(text, Format::Json, strictness).map_err(|status| decode_reason(&status))
    }

    fn take(&self, mut object: Value, strictness: Strictness) -> Result<Decoded, String> {
        let unknown = self.schemas.coerce(&mut object, strictness, Nulls::Drop)?;
        let strict = match strictness {
            Strictness::Lenient => Vec::new(),
            Strictness::Report => unknown.iter().map(|path| unknown_field(path)).collect(),
        };
        Ok(Decoded { object, strict, form: Form::Sent })
    }

    /// Whoever applies a null means it: where null is no value, validation says so.
    fn take_applied(&self, mut object: Value) -> Result<Decoded, String> {
        // Times of the server's own are nobody's to apply: what is no time is not even read.
        for key in ["creationTimestamp", "deletionTimestamp"] {
            let time = object.at(&["metadata", key]).and_then(Value::as_str);
            if time.is_some_and(|text| Time::parse(text).is_err()) {
                object.remove_at(&["metadata", key]);
            }
        }
        self.schemas.coerce(&mut object, Strictness::Lenient, Nulls::Keep)?;
        Ok(Decoded { object, strict: Vec::new(), form: Form::Sent })
    }

    fn check(&self, object: &Value) -> Result<(), Status> {
        let (given, wanted) = (object.str_at(&["apiVersion"]), self.kind.api_version());
        if given == wanted {
            return Ok(());
        }
        Err(Status::bad_request(format!(
            "the API version in the data ({given}) does not match the expected API version ({wanted})"
        )))
    }
}

/// What went wrong in decoding, without the words that decoding a body puts around it.
fn decode_reason(status: &Status) -> String {
    match status.message.split_once("cannot be handled as a ").and_then(|(_, rest)| rest.split_once(": ")) {
        Some((_, why)) => why.to_owned(),
        None => status.message.clone(),
    }
}

/// What Go says of a document whose type cannot be read.
pub fn untyped(why: &dyn std::fmt::Display) -> String {
    format!("couldn't get version/kind; json parse error: {why}")
}

/// Why a document that is no object has no type.
pub fn no_type(document: &Value) -> String {
    format!(
        "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \
         \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
        json_kind(document)
    )
}

/// Encodes and renders the objects of one custom resource.
pub struct CustomCodec {
    /// Of the storage version.
    pub api_version: String,
    pub schemas: Arc<Schemas>,
    pub selectable: Vec<SelectableField>,
    pub written_as: WrittenAs,
}

/// The form in which custom resources are stored. Both are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenAs {
    Json,
    Cbor,
}

impl Renderer for CustomCodec {
    fn render(&self, value: &[u8], revision: i64) -> Result<Rendered, String> {
        let mut object = match cbor::is_cbor(value) {
            true => cbor::decode(value),
            false => json::parse_stored(value),
        }
        .map_err(|e| e.to_string())?;
        self.schemas.restore(&mut object);
        set_resource_version(&mut object, revision);
        let is_foreign = object.str_at(&["apiVersion"]) != self.api_version;
        Ok(Rendered { is_foreign, ..render(&object, &self.selectable) })
    }
}

impl Encoder for CustomCodec {
    fn encode(&self, object: &Value) -> Result<Bytes, Status> {
        // Go's encoder sorts keys, those of fieldsV1 too, and ends a document with a line feed.
        let mut object = object.clone();
        json::unfold_fields(&mut object);
        if self.written_as == WrittenAs::Cbor {
            return Ok(cbor::to_vec(&object, cbor::Order::Sorted).into());
        }
        let mut bytes = json::to_vec(&object);
        bytes.push(b'\n');
        Ok(bytes.into())
    }
}
