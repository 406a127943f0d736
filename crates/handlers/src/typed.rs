//! Decoding by built-in types.

use super::body::{Decoded, Decoder, summarize};
use super::versions::{self, INTERNAL};
use kubelith_codec::json::{self, Strictness};
use kubelith_codec::negotiate::Format;
use kubelith_codec::typed;
use kubelith_codec::{proto, yaml};
use kubelith_meta::text::quote;
use kubelith_meta::{GroupVersionKind, Status, Value};
use kubelith_schema::{Form, TypedSchema};

/// Decodes bodies of one built-in kind.
pub struct TypedDecoder {
    pub kind: GroupVersionKind,
    pub schema: TypedSchema,
}

impl Decoder for TypedDecoder {
    fn decode(&self, body: &[u8], format: Format, strictness: Strictness) -> Result<Decoded, Status> {
        match format {
            Format::Json | Format::Text if strictness == Strictness::Report => self.decode_flawless(body),
            _ => None,
        }
        .map_or_else(|| decode(body, format, strictness, &self.kind, &self.schema), Ok)
    }

    fn check(&self, object: &Value) -> Result<(), Status> {
        check_version(object, &self.kind)
    }

    fn decode_patched(&self, text: &[u8], strictness: Strictness) -> Result<Decoded, String> {
        let meta = json::type_meta(text).map_err(|e| e.to_string())?;
        // Nothing says here which version it is if the patch took that away: it is the internal one then.
        let default = GroupVersionKind { version: INTERNAL.into(), ..self.kind.clone() };
        let given = meta.with_defaults(&default).map_err(|e| e.to_string())?;
        let mut decoded = decode_json(text, strictness, &given, &self.kind, &self.schema)?;
        if given != self.kind && given.version != INTERNAL {
            versions::complete(&given, &mut decoded.object);
            let converted = kubelith_catalog::convert(decoded.object, &given, &self.kind);
            decoded.object = converted.map_err(|e| e.to_string())?;
        }
        decoded.object = typed_object(decoded.object, &self.kind);
        Ok(decoded)
    }

    fn take(&self, value: Value, strictness: Strictness) -> Result<Decoded, String> {
        Ok(self.taken(typed::from_value(value, &self.schema, strictness)?))
    }

    fn take_exact(&self, value: Value, strictness: Strictness) -> Result<Decoded, String> {
        Ok(self.taken(typed::from_value_exactly(value, &self.schema, strictness)?))
    }
}

impl TypedDecoder {
    fn taken(&self, taken: json::Decoded) -> Decoded {
        let strict = taken.strict.iter().map(ToString::to_string).collect();
        Decoded { object: typed_object(taken.value, &self.kind), strict, form: Form::Sent }
    }

    /// A document that has nothing unknown or twice in it and says to be of the kind. What it says need not be read ahead
    /// of the rest then: nothing was passed over that could say something else.
    fn decode_flawless(&self, text: &[u8]) -> Option<Decoded> {
        let (decoded, form) = typed::decode_printed(text, &self.schema, Strictness::Report).ok()?;
        let is_flawless = decoded.strict.is_empty() && decoded.value.is_of(&self.kind);
        is_flawless.then(|| Decoded { object: decoded.value, strict: Vec::new(), form })
    }
}

/// Decodes a body of any built-in kind: options, reviews, subresources.
pub fn decode_builtin(
    body: &[u8],
    format: Format,
    strictness: Strictness,
    kind: &GroupVersionKind,
) -> Result<Decoded, Status> {
    let schema = kubelith_catalog::builtin().kind_schema(kind);
    let schema = schema.ok_or_else(|| Status::internal_error(format!("no such kind: {kind}")))?;
    let decoded = decode(body, format, strictness, kind, &schema)?;
    check_version(&decoded.object, kind)?;
    Ok(decoded)
}

/// Decodes a body that may be of any of `kinds`; the first is what it is if it does not say.
pub fn decode_any(
    body: &[u8],
    format: Format,
    strictness: Strictness,
    kinds: &[GroupVersionKind],
) -> Result<Decoded, Status> {
    let [usual, ..] = kinds else { return Err(Status::internal_error("no kind to decode")) };
    let said = match format {
        Format::Protobuf => proto::Envelope::read(body).ok().and_then(|e| e.type_meta.with_defaults(usual).ok()),
        Format::Yaml => yaml::read(body).ok().map(|document| document.value.gvk()),
        Format::Json | Format::Text => json::type_meta(body).ok().and_then(|m| m.with_defaults(usual).ok()),
    };
    let kind = kinds.iter().find(|kind| Some(*kind) == said.as_ref()).unwrap_or(usual);
    decode_builtin(body, format, strictness, kind)
}

/// Decodes a body of the kind, in whichever of its versions.
fn decode(
    body: &[u8],
    format: Format,
    strictness: Strictness,
    kind: &GroupVersionKind,
    schema: &TypedSchema,
) -> Result<Decoded, Status> {
    let unrecognized = |why: &dyn std::fmt::Display| {
        let summary = summarize(body);
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {why} ({summary})",
            kind.kind
        ))
    };
    let cannot_handle = |given: &GroupVersionKind, why: String| {
        Status::bad_request(format!(
            "{} in version {} cannot be handled as a {}: {why}",
            given.kind,
            quote(&given.version),
            kind.kind
        ))
    };
    let mut strict = Vec::new();
    let json_text;
    let text = match format {
        Format::Json | Format::Text => body,
        Format::Yaml => {
            let document = yaml::read(body).map_err(|e| unrecognized(&e))?;
            if strictness == Strictness::Report {
                strict.extend(document.strict_error().map(|e| e.to_string()));
            }
            json_text = json::to_vec(&document.value);
            &json_text
        }
        Format::Protobuf => {
            let found = proto::Envelope::read(body).map_err(|e| unrecognized(&e))?;
            let given = found.type_meta.with_defaults(kind).map_err(|e| unrecognized(&e))?;
            let readable = versions::readable(&given, kind, schema).map_err(|why| cannot_handle(&given, why))?;
            let read = proto::decode(found.raw, &readable.schema).map_err(|e| e.to_string());
            let object = readable.take(read).map_err(|why| cannot_handle(&given, why))?;
            return Ok(Decoded { object: typed_object(object, &given), strict, form: Form::Sent });
        }
    };
    let given = json::type_meta(text).and_then(|m| m.with_defaults(kind)).map_err(|e| unrecognized(&e))?;
    let mut decoded = decode_json(text, strictness, &given, kind, schema).map_err(|why| cannot_handle(&given, why))?;
    strict.append(&mut decoded.strict);
    Ok(Decoded { strict, ..decoded })
}

/// Decodes an object that says to be of the kind `given`, which is `kind` or another version of it.
fn decode_json(
    text: &[u8],
    strictness: Strictness,
    given: &GroupVersionKind,
    kind: &GroupVersionKind,
    schema: &TypedSchema,
) -> Result<Decoded, String> {
    if given.version == INTERNAL && versions::is_internal(given, kind) {
        return versions::as_internal(text, given, strictness);
    }
    let readable = versions::readable(given, kind, schema)?;
    let decoded = readable.take(typed::decode(text, &readable.schema, strictness).map_err(|e| e.to_string()))?;
    let strict = decoded.strict.iter().map(ToString::to_string).collect();
    Ok(Decoded { object: typed_object(decoded.value, given), strict, form: Form::Sent })
}

/// apiVersion and kind as the endpoint says them, whatever the client left out.
fn typed_object(mut object: Value, kind: &GroupVersionKind) -> Value {
    let map = object.make_object();
    map.insert("apiVersion", kind.api_version());
    map.insert("kind", kind.kind.clone());
    object
}

/// A body in another version than the endpoint's is understood, and refused.
fn check_version(object: &Value, kind: &GroupVersionKind) -> Result<(), Status> {
    let (given, wanted) = (object.str_at(&["apiVersion"]), kind.group_version());
    if object.is_of(kind) {
        return Ok(());
    }
    Err(Status::bad_request(format!(
        "the API version in the data ({given}) does not match the expected API version ({wanted})"
    )))
}

/// Go's package of the internal type is named after the first word of the group, mostly.
pub fn internal_package(kind: &GroupVersionKind) -> &str {
    match kind.group.as_str() {
        "" | "events.k8s.io" => "core",
        "internal.apiserver.k8s.io" => "apiserverinternal",
        group => group.split('.').next().unwrap_or(group),
    }
}
