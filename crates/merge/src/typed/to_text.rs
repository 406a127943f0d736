//! The fields that a value mentions, as the text of their set. An applier mostly applies what it applied before, and
//! that can be seen from the text alone.

use super::of_new::{Unusual, Written, by_keys, fits_scalar, key_values, sorted_by_keys};
use super::{Duplicates, ListType, MapType, Type, TypeKind};
use crate::fieldset::{FieldsWriter, Mask, Masked};
use kubelith_meta::{Map, Value};
use kubelith_schema::ListKind;

impl Type<'_> {
    /// `field_set` of `value`, without what `mask` says, as `fieldsV1`. `None` if nothing is left, or if the value is not
    /// known to be valid and without duplicates: then `validate` tells.
    pub(crate) fn written_field_set(self, value: &Value, mask: Mask<'_>) -> Option<String> {
        let mut out = FieldsWriter::new();
        match (self.kind(Some(value)), value) {
            (TypeKind::Map(map), Value::Object(members)) if !map.atomic => {
                write_members(&mut out, map, members, mask).ok()?
            }
            _ => return None,
        }
        out.finish()
    }
}

fn write_members(out: &mut FieldsWriter, map: MapType<'_>, members: &Map, mask: Mask<'_>) -> Written {
    let mut types = map.in_order(members.len());
    for (key, value) in members.entries() {
        let (name, declared) = types.named_field(key);
        let ty = declared.or(map.element).ok_or(Unusual)?;
        match mask.of_field(key) {
            // What cannot be owned must fit as well.
            Masked::All => fits(ty, value)?,
            Masked::Rest { itself, below } => {
                let kind = ty.kind(Some(value));
                if is_leaf(kind) {
                    fits_leaf(kind, ty, value)?;
                    out.leaf(name, !itself);
                    continue;
                }
                let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                let member = is_empty || declared.is_none();
                out.field(name, member && !itself, |out| write_container(out, kind, value, below))?;
            }
        }
    }
    Ok(())
}

/// Whether a value is owned as a whole.
fn is_leaf(kind: TypeKind<'_>) -> bool {
    match kind {
        TypeKind::Scalar(_) => true,
        TypeKind::List(list) => list.is_atomic(),
        TypeKind::Map(map) => map.atomic,
    }
}

fn fits_leaf(kind: TypeKind<'_>, ty: Type<'_>, value: &Value) -> Written {
    match kind {
        TypeKind::Scalar(scalar) => fits_scalar(scalar, value),
        _ => fits(ty, value),
    }
}

/// What is below an element of a list.
fn write_element(out: &mut FieldsWriter, ty: Type<'_>, value: &Value) -> Written {
    let kind = ty.kind(Some(value));
    if is_leaf(kind) { fits_leaf(kind, ty, value) } else { write_container(out, kind, value, Mask::default()) }
}

fn write_container(out: &mut FieldsWriter, kind: TypeKind<'_>, value: &Value, mask: Mask<'_>) -> Written {
    match (kind, value) {
        (TypeKind::List(list), Value::Array(elements)) => write_elements(out, list, elements),
        (TypeKind::Map(map), Value::Object(members)) => write_members(out, map, members, mask),
        (_, Value::Null) => Ok(()),
        _ => Err(Unusual),
    }
}

fn write_elements(out: &mut FieldsWriter, list: ListType<'_>, elements: &[Value]) -> Written {
    let below = |out: &mut FieldsWriter, value| write_element(out, list.element, value);
    if let ListKind::Map(keys) = list.kind
        && let Some(sorted) = sorted_by_keys(keys, elements)
    {
        if sorted.windows(2).any(|pair| by_keys(keys, &pair[0], &pair[1]).is_eq()) {
            return Err(Unusual);
        }
        return sorted.iter().try_for_each(|keyed| out.keyed(key_values(keys, keyed), |out| below(out, keyed.1)));
    }
    let mut refused = false;
    let index = list.index(elements, |_, _| refused = true);
    if refused || index.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(Unusual);
    }
    index.iter().try_for_each(|(element, value)| out.element(element, |out| below(out, value)))
}

fn fits(ty: Type<'_>, value: &Value) -> Written {
    ty.validate(value, Duplicates::Refused).map_err(|_| Unusual)
}
