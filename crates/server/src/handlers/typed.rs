//! Decoding by built-in types.

use super::body::{Decoded, Decoder, summarize};
use kubelith_codec::DecodeError;
use kubelith_codec::json::{self, Strictness};
use kubelith_codec::negotiate::Format;
use kubelith_codec::typed::{self, Form};
use kubelith_codec::{proto, yaml};
use kubelith_meta::{GroupVersionKind, Status, Value};
use kubelith_schema::TypedSchema;

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

    fn take(&self, value: Value, strictness: Strictness) -> Result<Decoded, String> {
        let taken = typed::from_value(value, &self.schema, strictness)?;
        let strict = taken.strict.iter().map(ToString::to_string).collect();
        Ok(Decoded { object: typed_object(taken.value, &self.kind), strict, form: Form::Sent })
    }
}

impl TypedDecoder {
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
    decode(body, format, strictness, kind, &schema)
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
            check_kind(&given, kind)?;
            let object = proto::decode(found.raw, schema).map_err(|e| cannot_handle(&given, kind, &e))?;
            return Ok(Decoded { object: typed_object(object, kind), strict, form: Form::Sent });
        }
    };
    let given = json::type_meta(text).and_then(|m| m.with_defaults(kind)).map_err(|e| unrecognized(&e))?;
    check_kind(&given, kind)?;
    let decoded = typed::decode(text, schema, strictness).map_err(|e| cannot_handle(&given, kind, &e))?;
    strict.extend(decoded.strict.iter().map(ToString::to_string));
    Ok(Decoded { object: typed_object(decoded.value, kind), strict, form: Form::Sent })
}

/// apiVersion and kind as the endpoint says them, whatever the client left out.
fn typed_object(mut object: Value, kind: &GroupVersionKind) -> Value {
    let map = object.make_object();
    map.insert("apiVersion", kind.api_version());
    map.insert("kind", kind.kind.clone());
    object
}

fn cannot_handle(given: &GroupVersionKind, kind: &GroupVersionKind, why: &DecodeError) -> Status {
    Status::bad_request(format!(
        "{} in version \"{}\" cannot be handled as a {}: {why}",
        given.kind, given.version, kind.kind
    ))
}

/// The body must be of the endpoint's kind, in its group; another version of it that we know is fine where it converts.
fn check_kind(given: &GroupVersionKind, kind: &GroupVersionKind) -> Result<(), Status> {
    if given == kind {
        return Ok(());
    }
    let catalog = kubelith_catalog::builtin();
    let why = match catalog.kind_schema(given) {
        None => {
            let version = given.group_version();
            // The reference names the file of its scheme.
            format!(
                "no kind \"{}\" is registered for version \"{version}\" in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
                given.kind
            )
        }
        Some(_) => {
            let (from, to) = (go_package(given), internal_package(kind));
            format!("converting ({from}.{}) to ({to}.{}): unknown conversion", given.kind, kind.kind)
        }
    };
    Err(Status::bad_request(format!(
        "{} in version \"{}\" cannot be handled as a {}: {why}",
        given.kind, given.version, kind.kind
    )))
}

/// Go's package of a versioned type is named after the version.
fn go_package(kind: &GroupVersionKind) -> &str {
    &kind.version
}

/// Go's package of the internal type is named after the first word of the group.
pub fn internal_package(kind: &GroupVersionKind) -> &str {
    match kind.group.as_str() {
        "" => "core",
        group => group.split('.').next().unwrap_or(group),
    }
}
