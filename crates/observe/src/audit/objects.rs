//! Answers as the audit log keeps them: JSON, whatever the client asked for.

use super::event::ResponseStatus;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use kubelith_codec::negotiate::Format;
use kubelith_codec::{json, proto, yaml};
use kubelith_http::audit::AuditContext;
use kubelith_http::{Body, Response};
use kubelith_meta::Value;
use std::io::Read;

/// Answers beyond this are not kept: a list of everything would fill the log and the memory.
const MAX_KEPT: usize = 64 << 20;
/// A Status is small; what is larger is none.
const MAX_STATUS: usize = 1 << 20;

/// An answer while it is sent.
#[derive(Debug, Default)]
pub struct Captured {
    bytes: BytesMut,
    too_large: bool,
}

impl Captured {
    pub fn push(&mut self, piece: &[u8]) {
        if self.too_large || self.bytes.len() + piece.len() > MAX_KEPT {
            self.too_large = true;
            self.bytes = BytesMut::new();
            return;
        }
        self.bytes.extend_from_slice(piece);
    }

    pub fn finish(self, headers: &HeaderMap, context: &AuditContext) {
        if self.too_large {
            return;
        }
        keep(&self.bytes, headers, context);
    }
}

/// Keeps an answer's object.
pub fn keep(body: &[u8], headers: &HeaderMap, context: &AuditContext) {
    let Some(body) = plain(body, headers) else { return };
    let (format, needs_value) = (format_of(headers), context.omit_managed_fields);
    let kept = match format {
        Some(Format::Json) if !needs_value => json::validate(&body).is_ok().then_some(body),
        Some(format) => value_of(&body, format).map(|mut value| {
            if needs_value {
                drop_managed_fields(&mut value);
            }
            Bytes::from(json::to_vec(&value))
        }),
        None => None,
    };
    context.gathered().response_object = kept;
}

/// How the request ended: the Status in the answer, or its code.
pub fn status_of(response: &Response) -> ResponseStatus {
    let code = response.status().as_u16();
    let body = match response.body() {
        Body::Full(Some(body)) if body.len() <= MAX_STATUS => body,
        _ => return ResponseStatus::of_code(code),
    };
    let compressed = response.headers().contains_key(CONTENT_ENCODING);
    let Some(format) = format_of(response.headers()).filter(|_| !compressed) else {
        return ResponseStatus::of_code(code);
    };
    // Most answers are no Status, and need not be read to know it.
    let likely = match format {
        Format::Json => starts_like_status(body),
        _ => code >= 400,
    };
    match likely.then(|| value_of(body, format)).flatten() {
        Some(value) if value.str_at(&["kind"]) == "Status" => ResponseStatus::of_status(&value, code),
        _ => ResponseStatus::of_code(code),
    }
}

fn starts_like_status(body: &[u8]) -> bool {
    const START: &[u8] = br#"{"kind":"Status""#;
    let mut letters = body.iter().filter(|b| !b.is_ascii_whitespace());
    START.iter().all(|wanted| letters.next() == Some(wanted))
}

fn format_of(headers: &HeaderMap) -> Option<Format> {
    let media_type = headers.get(CONTENT_TYPE)?.to_str().ok()?.split(';').next()?.trim();
    [Format::Json, Format::Yaml, Format::Protobuf].into_iter().find(|f| f.media_type() == media_type)
}

fn plain(body: &[u8], headers: &HeaderMap) -> Option<Bytes> {
    match headers.get(CONTENT_ENCODING).map(|v| v.as_bytes()) {
        None | Some(b"identity") => Some(Bytes::copy_from_slice(body)),
        Some(b"gzip") => {
            let mut out = Vec::new();
            let mut reader = flate2::read::GzDecoder::new(body).take(MAX_KEPT as u64 + 1);
            reader.read_to_end(&mut out).ok()?;
            (out.len() <= MAX_KEPT).then(|| out.into())
        }
        Some(_) => None,
    }
}

fn value_of(body: &[u8], format: Format) -> Option<Value> {
    match format {
        Format::Json => json::parse(body).ok(),
        Format::Yaml => yaml::read(body).ok().map(|d| d.value),
        Format::Protobuf => {
            let meta = proto::Envelope::read(body).ok()?.type_meta;
            let kind = meta.group_version().ok()?.with_kind(meta.kind);
            let schema = kubelith_catalog::builtin().kind_schema(&kind)?;
            proto::from_slice(body, &schema).ok()
        }
        _ => None,
    }
}

fn drop_managed_fields(value: &mut Value) {
    value.remove_at(&["metadata", "managedFields"]);
    for (list, member) in [("items", None), ("rows", Some("object"))] {
        for item in value.at_mut(&[list]).and_then(Value::as_array_mut).into_iter().flatten() {
            match member {
                None => item.remove_at(&["metadata", "managedFields"]),
                Some(member) => item.remove_at(&[member, "metadata", "managedFields"]),
            };
        }
    }
}
