//! Where the decoder is, in the words of its messages.

use super::decoder::{Decoder, FrameKind, Place};
use super::go_names;
use crate::error::{DecodeError, TypeError};
use kubelith_schema::Schema;
use std::fmt::Write;

/// The path that strict errors name: `spec.containers[0].env[1].name`.
pub(super) fn path(decoder: &Decoder<'_, '_>) -> String {
    path_of(decoder, decoder.stack.len())
}

/// The path of `key` in the container that stands inside `outer` others.
pub(super) fn path_to(decoder: &Decoder<'_, '_>, outer: usize, key: &str) -> String {
    let mut path = path_of(decoder, outer);
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
    path
}

fn path_of(decoder: &Decoder<'_, '_>, frames: usize) -> String {
    let mut path = String::new();
    for (i, frame) in decoder.stack[..frames].iter().enumerate() {
        let name = match &frame.kind {
            FrameKind::Struct { ty, field, .. } => ty.fields[*field].name.as_str(),
            FrameKind::Map { key, .. } => key.as_str(),
            FrameKind::List { .. } => {
                // Elements lie on one stack: this list's end where the next open one's begin.
                let end = decoder.stack[i + 1..]
                    .iter()
                    .find_map(|f| matches!(f.kind, FrameKind::List { .. }).then_some(f.start))
                    .unwrap_or(decoder.elements.len());
                write!(path, "[{}]", end - frame.start).expect("writing to a String cannot fail");
                continue;
            }
        };
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
    }
    path
}

/// A value of the wrong type where the decoder is. `expected` overrides what the schema says, for values that
/// are read as something else first (a time as a string).
pub(super) fn type_error(decoder: &Decoder<'_, '_>, found: &str, expected: Option<&str>) -> DecodeError {
    let mut in_struct = "";
    let mut field_path = String::new();
    // Go's name for the type of the place, as far as names tell it.
    let mut type_name: Option<&str> = None;
    let mut schema: Option<&Schema> = decoder.root;
    let mut place: Option<Place<'_>> = None;
    let mut struct_done = false;
    for frame in &decoder.stack {
        match &frame.kind {
            FrameKind::Struct { ty, field, .. } => {
                let field = &ty.fields[*field];
                let go = go_names::field(ty, &field.name);
                // What is decoded apart is known to the outer decoder only as a field of the struct around it.
                if !struct_done {
                    in_struct = go_names::struct_name(ty);
                    struct_done = frame.nested;
                }
                for part in [go.embedded, &field.name] {
                    if !part.is_empty() {
                        if !field_path.is_empty() {
                            field_path.push('.');
                        }
                        field_path.push_str(part);
                    }
                }
                type_name = go.type_name;
                schema = Some(&field.schema);
                place = None;
            }
            FrameKind::Map { value, .. } => {
                type_name = type_name.and_then(go_names::element);
                schema = Some(value);
            }
            FrameKind::List { item } => {
                type_name = type_name.and_then(go_names::element);
                match item {
                    Place::Schema(item) => schema = Some(item),
                    other => {
                        schema = None;
                        place = Some(*other);
                    }
                }
            }
        }
    }
    let expected = match (expected, type_name, schema, place) {
        (Some(expected), ..) => expected.to_owned(),
        (_, Some(name), ..) => name.to_owned(),
        (_, _, Some(schema), _) => go_names::of_schema(decoder.table, schema),
        (_, _, _, Some(Place::Type(id))) => go_names::qualified(decoder.table.get(id)),
        (_, _, _, Some(Place::Byte)) => "uint8".into(),
        (_, _, _, Some(_)) => "string".into(),
        (_, _, None, None) => String::new(),
    };
    DecodeError::Type(Box::new(TypeError {
        found: found.to_owned(),
        expected,
        in_struct: in_struct.to_owned(),
        field: field_path,
    }))
}
