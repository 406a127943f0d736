//! Who creates an object owns all that is in it: `fieldsV1` of that, from the object to the text in one walk.
//!
//! It is what comparing the object with an empty one gives, which also takes care of what does not fit the type.

use super::error::is_scalar;
use super::validate::Duplicates;
use super::{ListType, MapType, Scalar, Type, TypeKind};
use crate::fieldset::{FieldsWriter, Mask, Masked, Name, values};
use kubelith_meta::{Map, Str, Value};
use kubelith_schema::{ListKind, Shape, StructType, TypeTable};
use std::cmp::Ordering;

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
        (TypeKind::Map(_), TypeKind::Map(map), Value::Object(members)) => {
            changed_members(out, map, zero.as_object().unwrap_or(&Map::new()), members, mask)
        }
        (TypeKind::List(_), TypeKind::List(list), Value::Array(elements)) => added_elements(out, list, elements),
        (_, _, Value::Null) => Ok(()),
        _ => Err(Unusual),
    }
}

fn changed_members(out: &mut FieldsWriter, map: MapType<'_>, zero: &Map, members: &Map, mask: Mask<'_>) -> Written {
    let mut types = map.in_order(members.len());
    for (key, value) in members.entries() {
        let (name, ty) = types.named_member(key).ok_or(Unusual)?;
        let Masked::Rest { itself, below } = mask.of_field(key) else {
            // What cannot be owned must fit as well.
            fits(ty, value)?;
            continue;
        };
        match zero.get_with(key.head(), key) {
            None => added_field(out, name, !itself, (ty, value), below)?,
            Some(zero) if values::equal(zero, value) => {}
            Some(zero) if is_leaf(ty, zero, value) => {
                fits(ty, value)?;
                out.leaf(name, !itself);
            }
            Some(zero) => out.field(name, false, |out| changed(out, ty, zero, value, below))?,
        }
    }
    Ok(())
}

/// Whether the value is one thing, which changes as a whole.
fn is_leaf(ty: Type<'_>, zero: &Value, value: &Value) -> bool {
    match ty.kind(Some(value)) {
        TypeKind::Scalar(_) => matches!(ty.kind(Some(zero)), TypeKind::Scalar(_)),
        TypeKind::List(list) => list.is_atomic() || value.as_array().is_some_and(<[Value]>::is_empty),
        TypeKind::Map(map) => map.atomic || (is_empty(value) && is_empty(zero)),
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_none_or(Map::is_empty)
}

/// A field that came whole, and everything below it.
#[inline]
fn added_field(
    out: &mut FieldsWriter,
    name: Name<'_>,
    member: bool,
    (ty, value): (Type<'_>, &Value),
    mask: Mask<'_>,
) -> Written {
    match ty.declared_scalar() {
        Some(scalar) => {
            fits_scalar(scalar, value)?;
            out.leaf(name, member);
            Ok(())
        }
        None => out.field(name, member, |out| added(out, ty, value, mask)),
    }
}

/// Everything below a value that came whole.
fn added(out: &mut FieldsWriter, ty: Type<'_>, value: &Value, mask: Mask<'_>) -> Written {
    if let (Some((table, struct_type)), Value::Object(members)) = (ty.plain_struct(), value)
        && mask.is_empty()
    {
        return added_struct(out, table, struct_type, members);
    }
    match (ty.kind(Some(value)), value) {
        (TypeKind::Scalar(scalar), value) => fits_scalar(scalar, value),
        (TypeKind::List(list), value) if list.is_atomic() => fits(ty, value),
        (TypeKind::Map(map), value) if map.atomic => fits(ty, value),
        (TypeKind::List(list), Value::Array(elements)) => added_elements(out, list, elements),
        (TypeKind::Map(map), Value::Object(members)) => {
            let mut types = map.in_order(members.len());
            for (key, value) in members.entries() {
                let (name, ty) = types.named_member(key).ok_or(Unusual)?;
                match mask.of_field(key) {
                    Masked::All => fits(ty, value)?,
                    Masked::Rest { itself, below } => added_field(out, name, !itself, (ty, value), below)?,
                }
            }
            Ok(())
        }
        (_, Value::Null) => Ok(()),
        _ => Err(Unusual),
    }
}

/// As `added`, for what most of an object is made of: structs that have no members but those that are declared.
fn added_struct(out: &mut FieldsWriter, table: &TypeTable, struct_type: &StructType, members: &Map) -> Written {
    let fields = &struct_type.fields;
    let mut in_order = fields.in_order(members.len());
    for (key, value) in members.entries() {
        let index = in_order.find(key.head(), key).ok_or(Unusual)?;
        let schema = &fields[index].schema;
        let name = if fields.are_plain() { Name::Plain(key) } else { Name::Any(key) };
        match (&schema.shape, value) {
            // Most fields: whatever else is said of them, these fit.
            (Shape::String, Value::String(_)) | (Shape::Int32 | Shape::Int64, Value::Int(_)) => out.leaf(name, true),
            _ => {
                let ty = Type::Declared { table, schema, preserve: false };
                added_field(out, name, true, (ty, value), Mask::default())?;
            }
        }
    }
    Ok(())
}

#[inline]
pub(super) fn fits_scalar(scalar: Scalar, value: &Value) -> Written {
    if is_scalar(scalar, value) { Ok(()) } else { Err(Unusual) }
}

fn fits(ty: Type<'_>, value: &Value) -> Written {
    ty.validate(value, Duplicates::Allowed).map_err(|_| Unusual)
}

fn added_elements(out: &mut FieldsWriter, list: ListType<'_>, elements: &[Value]) -> Written {
    if let ListKind::Map(keys) = list.kind
        && let Some(sorted) = sorted_by_keys(keys, elements)
    {
        for twins in sorted.chunk_by(|a, b| by_keys(keys, a, b).is_eq()) {
            out.keyed(key_values(keys, &twins[0]), |out| added_element(out, list, twins))?;
        }
        return Ok(());
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

/// An element with the value of its first key.
pub(super) type Keyed<'v> = (&'v Value, &'v Value);

/// The elements in the order of their keys, if all have all of them. The keys must be in order themselves, as those of
/// built-in types are.
pub(super) fn sorted_by_keys<'v>(keys: &[Str], elements: &'v [Value]) -> Option<Vec<Keyed<'v>>> {
    let (first, others) = keys.split_first().filter(|_| keys.is_sorted())?;
    let keyed = |element: &'v Value| {
        let map = element.as_object()?;
        others.iter().all(|key| map.contains_key(key)).then_some(())?;
        Some((map.get(first)?, element))
    };
    let mut sorted = Vec::with_capacity(elements.len());
    for element in elements {
        sorted.push(keyed(element)?);
    }
    sorted.sort_by(|a, b| by_keys(keys, a, b));
    Some(sorted)
}

pub(super) fn by_keys(keys: &[Str], a: &Keyed<'_>, b: &Keyed<'_>) -> Ordering {
    let rest = || key_values(keys, a).zip(key_values(keys, b)).skip(1).map(|(a, b)| values::compare(a.1, b.1));
    values::compare(a.0, b.0).then_with(|| rest().find(|order| order.is_ne()).unwrap_or(Ordering::Equal))
}

/// The keys of an element with their values.
pub(super) fn key_values<'v>(
    keys: &'v [Str],
    (first, element): &Keyed<'v>,
) -> impl Iterator<Item = (&'v str, &'v Value)> {
    let (first, element) = (*first, *element);
    keys.iter().enumerate().filter_map(move |(i, key)| {
        let value = if i == 0 { Some(first) } else { element.get(key) };
        value.map(|value| (key.as_str(), value))
    })
}
