//! The fields that a value mentions, as the text of their set. An applier mostly applies what it applied before, and
//! that can be seen from the text alone.

use super::error::scalar_mismatch;
use super::of_new::{Unusual, Written, by_keys, sorted_by_keys};
use super::{Duplicates, Kind, ListType, MapType, Type};
use crate::fieldset::{FieldsWriter, Mask, Masked};
use kubelith_meta::{Map, Value};
use kubelith_schema::ListKind;

impl Type<'_> {
    /// `field_set` of `value`, without what `mask` says, as `fieldsV1`. `None` if nothing is left, or if the value is not
    /// known to be valid and without duplicates: then `validate` tells.
    pub(crate) fn written_field_set(self, value: &Value, mask: Mask<'_>) -> Option<String> {
        let mut out = FieldsWriter::new();
        match (self.kind(Some(value)), value) {
            (Kind::Map(map), Value::Object(members)) if !map.atomic => {
                write_members(&mut out, map, members, mask).ok()?
            }
            _ => return None,
        }
        out.finish()
    }
}

fn write_members(out: &mut FieldsWriter, map: MapType<'_>, members: &Map, mask: Mask<'_>) -> Written {
    let mut types = map.in_order(members.len());
    for (name, value) in members.iter() {
        let declared = types.field(name);
        let ty = declared.or(map.element).ok_or(Unusual)?;
        match mask.of_field(name) {
            // What cannot be owned must fit as well.
            Masked::All => fits(ty, value)?,
            Masked::Rest { itself, below } => {
                let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                let member = is_leaf(ty, value) || is_empty || declared.is_none();
                out.field(name, member && !itself, |out| write_below(out, ty, value, below))?;
            }
        }
    }
    Ok(())
}

/// Whether the value is owned as a whole.
fn is_leaf(ty: Type<'_>, value: &Value) -> bool {
    match ty.kind(Some(value)) {
        Kind::Scalar(_) => true,
        Kind::List(list) => list.is_atomic(),
        Kind::Map(map) => map.atomic,
    }
}

fn write_below(out: &mut FieldsWriter, ty: Type<'_>, value: &Value, mask: Mask<'_>) -> Written {
    match (ty.kind(Some(value)), value) {
        (Kind::Scalar(scalar), value) => scalar_mismatch(scalar, value).map_or(Ok(()), |_| Err(Unusual)),
        (Kind::List(list), value) if list.is_atomic() => fits(ty, value),
        (Kind::Map(map), value) if map.atomic => fits(ty, value),
        (Kind::List(list), Value::Array(elements)) => write_elements(out, list, elements),
        (Kind::Map(map), Value::Object(members)) => write_members(out, map, members, mask),
        (_, Value::Null) => Ok(()),
        _ => Err(Unusual),
    }
}

fn write_elements(out: &mut FieldsWriter, list: ListType<'_>, elements: &[Value]) -> Written {
    let below = |out: &mut FieldsWriter, value| write_below(out, list.element, value, Mask::default());
    if let ListKind::Map(keys) = list.kind
        && let Some(sorted) = sorted_by_keys(keys, elements)
    {
        if sorted.windows(2).any(|pair| by_keys(&pair[0].0, &pair[1].0).is_eq()) {
            return Err(Unusual);
        }
        return sorted.iter().try_for_each(|(keys, value)| out.keyed(keys.iter().copied(), |out| below(out, value)));
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
