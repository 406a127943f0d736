//! Who creates an object owns all that is in it: `fieldsV1` of that, from the object to the text in one walk.
//!
//! It is what comparing the object with an empty one gives, which also takes care of what does not fit the type.

use super::error::scalar_mismatch;
use super::validate::Duplicates;
use super::{Kind, ListType, MapType, Type};
use crate::fieldset::{FieldsWriter, Mask, Masked, values};
use kubelith_meta::{Map, Str, Value};
use kubelith_schema::ListKind;

/// The value is not as simple as that: it takes the long way.
pub(super) struct Unusual;

pub(super) type Written = Result<(), Unusual>;

/// What the creator of `object` owns, without what `mask` says. `Ok(None)` is nothing; an error means that it takes a
/// comparison to tell.
pub(crate) fn fields_of_new(ty: Type<'_>, object: &Value, mask: Mask<'_>) -> Result<Option<String>, ()> {
    let mut writer = FieldsWriter::new();
    changed(&mut writer, ty, &ty.zero(), object, mask).map_err(|Unusual| ())?;
    Ok(writer.finish())
}

/// Below a container that a new object has, too.
fn changed(out: &mut FieldsWriter, ty: Type<'_>, zero: &Value, value: &Value, mask: Mask<'_>) -> Written {
    match (ty.kind(Some(zero)), ty.kind(Some(value)), value) {
        (Kind::Map(_), Kind::Map(map), Value::Object(members)) => {
            changed_members(out, map, zero.as_object().unwrap_or(&Map::new()), members, mask)
        }
        (Kind::List(_), Kind::List(list), Value::Array(elements)) => added_elements(out, list, elements),
        (_, _, Value::Null) => Ok(()),
        _ => Err(Unusual),
    }
}

fn changed_members(out: &mut FieldsWriter, map: MapType<'_>, zero: &Map, members: &Map, mask: Mask<'_>) -> Written {
    let mut types = map.in_order(members.len());
    for (name, value) in members.iter() {
        let ty = types.member(name).ok_or(Unusual)?;
        let Masked::Rest { itself, below } = mask.of_field(name) else {
            // What cannot be owned must fit as well.
            fits(ty, value)?;
            continue;
        };
        match zero.get(name) {
            None => out.field(name, !itself, |out| added(out, ty, value, below))?,
            Some(zero) if values::equal(zero, value) => {}
            Some(zero) if is_leaf(ty, zero, value) => {
                fits(ty, value)?;
                out.field(name, !itself, |_| ());
            }
            Some(zero) => out.field(name, false, |out| changed(out, ty, zero, value, below))?,
        }
    }
    Ok(())
}

/// Whether the value is one thing, which changes as a whole.
fn is_leaf(ty: Type<'_>, zero: &Value, value: &Value) -> bool {
    match ty.kind(Some(value)) {
        Kind::Scalar(_) => matches!(ty.kind(Some(zero)), Kind::Scalar(_)),
        Kind::List(list) => list.is_atomic() || value.as_array().is_some_and(<[Value]>::is_empty),
        Kind::Map(map) => map.atomic || (is_empty(value) && is_empty(zero)),
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_none_or(Map::is_empty)
}

/// Everything below a value that came whole.
fn added(out: &mut FieldsWriter, ty: Type<'_>, value: &Value, mask: Mask<'_>) -> Written {
    match (ty.kind(Some(value)), value) {
        (Kind::Scalar(scalar), value) => scalar_mismatch(scalar, value).map_or(Ok(()), |_| Err(Unusual)),
        (Kind::List(list), value) if list.is_atomic() => fits(ty, value),
        (Kind::Map(map), value) if map.atomic => fits(ty, value),
        (Kind::List(list), Value::Array(elements)) => added_elements(out, list, elements),
        (Kind::Map(map), Value::Object(members)) => {
            let mut types = map.in_order(members.len());
            for (name, value) in members.iter() {
                let ty = types.member(name).ok_or(Unusual)?;
                match mask.of_field(name) {
                    Masked::All => fits(ty, value)?,
                    Masked::Rest { itself, below } => {
                        out.field(name, !itself, |out| added(out, ty, value, below))?;
                    }
                }
            }
            Ok(())
        }
        (_, Value::Null) => Ok(()),
        _ => Err(Unusual),
    }
}

fn fits(ty: Type<'_>, value: &Value) -> Written {
    ty.validate(value, Duplicates::Allowed).map_err(|_| Unusual)
}

fn added_elements(out: &mut FieldsWriter, list: ListType<'_>, elements: &[Value]) -> Written {
    if let ListKind::Map(keys) = list.kind
        && let Some(sorted) = sorted_by_keys(keys, elements)
    {
        return keyed_elements(out, list, &sorted);
    }
    let mut refused = false;
    let index = list.index(elements, |_, _| refused = true);
    if refused {
        return Err(Unusual);
    }
    for twins in index.chunk_by(|a, b| a.0 == b.0) {
        out.element(&twins[0].0, |out| added_element(out, list, twins))?;
    }
    Ok(())
}

/// Below an element. One that is there twice is owned as a whole.
fn added_element<K>(out: &mut FieldsWriter, list: ListType<'_>, twins: &[(K, &Value)]) -> Written {
    match twins {
        [(_, value)] => added(out, list.element, value, Mask::default()),
        several => several.iter().try_for_each(|(_, value)| fits(list.element, value)),
    }
}

/// Elements with the values of their keys.
pub(super) type Keyed<'v> = Vec<(Vec<(&'v str, &'v Value)>, &'v Value)>;

/// The elements in the order of their keys, if all have all of them.
pub(super) fn sorted_by_keys<'v>(keys: &'v [Str], elements: &'v [Value]) -> Option<Keyed<'v>> {
    let mut names: Vec<&str> = keys.iter().map(Str::as_str).collect();
    names.sort_unstable();
    let keyed = |element: &'v Value| {
        let map = element.as_object()?;
        let fields: Option<Vec<_>> = names.iter().map(|name| Some((*name, map.get(name)?))).collect();
        Some((fields?, element))
    };
    let mut sorted: Keyed<'v> = elements.iter().map(keyed).collect::<Option<_>>()?;
    sorted.sort_by(|a, b| by_keys(&a.0, &b.0));
    Some(sorted)
}

pub(super) fn by_keys(a: &[(&str, &Value)], b: &[(&str, &Value)]) -> std::cmp::Ordering {
    let orders = a.iter().zip(b).map(|(a, b)| values::compare(a.1, b.1));
    orders.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
}

fn keyed_elements(out: &mut FieldsWriter, list: ListType<'_>, sorted: &Keyed<'_>) -> Written {
    for twins in sorted.chunk_by(|a, b| by_keys(&a.0, &b.0).is_eq()) {
        out.keyed(twins[0].0.iter().copied(), |out| added_element(out, list, twins))?;
    }
    Ok(())
}
