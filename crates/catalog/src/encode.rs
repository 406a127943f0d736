//! Writes a model in the form that `decode` reads. Both go through the same things in the same order.

use crate::api::Serve;
use crate::model::{Model, Resource, ResourceVersion};
use crate::wire::Writer;
use kubelith_meta::{GroupVersionKind, Str, Value};
use kubelith_schema::{
    Cell, Column, Encoding, Field, ListKind, Omit, PatchHint, ProtoSlot, Schema, Scope, Shape, StructType,
};

pub fn encode(model: &Model) -> Vec<u8> {
    let mut w = Writer::default();
    w.list(&model.types, struct_type);
    w.list(&model.apis, |w, api| {
        w.text(&api.gv.group);
        w.text(&api.gv.version);
        w.uint(match api.serve {
            Serve::Default => 0,
            Serve::OnRequest => 1,
            Serve::Never => 2,
        });
        w.int(api.group_priority.into());
        w.int(api.version_priority.into());
        w.text(&api.models);
    });
    w.list(&model.kinds, |w, (gvk, id)| {
        kind(w, gvk);
        w.uint(id.0.into());
    });
    w.list(&model.everywhere, |w, (kind, id)| {
        w.text(kind);
        w.uint(id.0.into());
    });
    w.list(&model.resources, resource);
    w.finish()
}

fn struct_type(w: &mut Writer, t: &StructType) {
    w.text(&t.name);
    let [unions, go] = [!t.unions.is_empty(), !t.go.is_empty()].map(u64::from);
    w.uint(u64::from(t.atomic) | u64::from(t.embedded) << 1 | unions << 2 | go << 3);
    w.list(&t.fields, field);
    w.list(&t.proto, slot);
    if !t.unions.is_empty() {
        w.list(&t.unions, |w, union| {
            w.text(union.discriminator.as_deref().unwrap_or(""));
            w.list(&union.members, |w, (field, value)| {
                w.text(field);
                w.text(value);
            });
        });
    }
    if !t.go.is_empty() {
        w.list(&t.go, |w, field| {
            w.text(&field.name);
            w.text(&field.type_name);
            w.text(&field.embedded);
        });
    }
}

fn slot(w: &mut Writer, slot: &ProtoSlot) {
    match slot {
        ProtoSlot::Field { number, field } => {
            w.uint(u64::from(*number) << 1);
            w.uint((*field).into());
        }
        ProtoSlot::Inline { number, slots } => {
            w.uint(u64::from(*number) << 1 | 1);
            w.list(slots, self::slot);
        }
    }
}

fn field(w: &mut Writer, field: &Field) {
    w.text(&field.name);
    let omit = match field.presence.omit {
        Omit::Never => 0,
        Omit::Empty => 1,
        Omit::Zero => 2,
    };
    let flags = u64::from(field.required) | u64::from(field.presence.nilable) << 1;
    w.uint(flags | u64::from(field.presence.pointer) << 2 | omit << 3);
    schema(w, &field.schema);
}

/// A flag word says which of the rarer parts follow.
fn schema(w: &mut Writer, s: &Schema) {
    let enumeration = s.rules.as_ref().map_or(&[][..], |r| &r.enumeration);
    let list = match &s.list {
        ListKind::Atomic => 0,
        ListKind::Set => 1,
        ListKind::Map(_) => 2,
    };
    let flags = [
        s.default.is_some(),
        s.default_hidden,
        s.list_declared,
        s.boxed,
        s.atomic,
        s.granular,
        s.patch.is_some(),
        !enumeration.is_empty(),
    ];
    let flags = flags.iter().enumerate().fold(0, |word, (i, set)| word | u64::from(*set) << i);
    w.uint(flags << 2 | list);
    shape(w, &s.shape);
    if let Some(default) = &s.default {
        value(w, default);
    }
    if let ListKind::Map(keys) = &s.list {
        texts(w, keys);
    }
    if let Some(patch) = &s.patch {
        patch_hint(w, patch);
    }
    if !enumeration.is_empty() {
        w.list(enumeration, value);
    }
}

fn patch_hint(w: &mut Writer, patch: &PatchHint) {
    w.uint(u64::from(patch.merge) | u64::from(patch.retain_keys) << 1);
    w.text(patch.merge_key.as_deref().unwrap_or(""));
}

fn shape(w: &mut Writer, shape: &Shape) {
    let tag = match shape {
        Shape::Any => 0,
        Shape::Bool => 1,
        Shape::Int32 => 2,
        Shape::Int64 => 3,
        Shape::Float => 4,
        Shape::String => 5,
        Shape::Bytes => 6,
        Shape::Time => 7,
        Shape::MicroTime => 8,
        Shape::Duration => 9,
        Shape::Quantity => 10,
        Shape::IntOrString => 11,
        Shape::RawExtension => 12,
        Shape::FieldsV1 => 13,
        Shape::Json => 14,
        Shape::JsonSchemaOrBool(_) => 15,
        Shape::JsonSchemaOrArray(_) => 16,
        Shape::JsonSchemaOrStrings(_) => 17,
        Shape::Map(_) => 18,
        Shape::List(_) => 19,
        Shape::Named(_) => 20,
        Shape::Struct(_) => unreachable!("the texts have named types only"),
    };
    w.uint(tag);
    match shape {
        Shape::JsonSchemaOrBool(id)
        | Shape::JsonSchemaOrArray(id)
        | Shape::JsonSchemaOrStrings(id)
        | Shape::Named(id) => w.uint(id.0.into()),
        Shape::Map(inner) | Shape::List(inner) => schema(w, inner),
        _ => {}
    }
}

/// The texts know scalars and the empty object.
fn value(w: &mut Writer, v: &Value) {
    match v {
        Value::Bool(b) => w.uint(u64::from(*b)),
        Value::Int(i) => {
            w.uint(2);
            w.int(*i);
        }
        Value::String(s) => {
            w.uint(3);
            w.text(s);
        }
        Value::Array(items) => {
            w.uint(4);
            w.list(items, value);
        }
        Value::Object(members) if members.is_empty() => w.uint(5),
        _ => unreachable!("the texts have booleans, integers, strings, lists of them and {{}}"),
    }
}

fn texts(w: &mut Writer, list: &[Str]) {
    w.list(list, |w, s| w.text(s));
}

fn kind(w: &mut Writer, gvk: &GroupVersionKind) {
    w.text(&gvk.group);
    w.text(&gvk.version);
    w.text(&gvk.kind);
}

fn resource(w: &mut Writer, r: &Resource) {
    for text in [&r.group, &r.plural, &r.singular, &r.kind, &r.list_kind] {
        w.text(text);
    }
    w.uint(u64::from(r.scope == Scope::Namespaced));
    texts(w, &r.short_names);
    texts(w, &r.categories);
    kind(w, &r.storage.kind);
    w.text(&r.storage.resource.group);
    w.text(&r.storage.resource.resource);
    w.text(&r.storage.prefix);
    w.uint(u64::from(r.storage.encoding == Encoding::Json));
    let before = r.storage.before.as_ref();
    w.uint(before.map_or(0, |(minor, _)| (*minor).into()));
    w.text(before.map_or("", |(_, version)| version));
    w.list(&r.versions, version);
}

fn version(w: &mut Writer, v: &ResourceVersion) {
    w.text(&v.name);
    w.uint(v.schema.0.into());
    w.text(v.gate.as_deref().unwrap_or(""));
    texts(w, &v.verbs);
    w.list(&v.subresources, |w, sub| {
        w.text(&sub.name);
        kind(w, &sub.kind);
        w.uint(sub.schema.map_or(0, |id| u64::from(id.0) + 1));
        texts(w, &sub.verbs);
        w.list(&sub.accepted, kind);
    });
    w.list(&v.columns, column);
    w.list(&v.selectable, |w, field| {
        w.text(&field.name);
        w.text(&field.path);
        w.text(field.fallback.as_deref().unwrap_or(""));
        w.text(&field.absent);
    });
    w.uint(u64::from(v.unselectable.namespace));
    w.text(&v.unselectable.message);
    w.text(v.deprecation.as_ref().map_or("", |d| &d.warning));
    w.uint(v.releases.since.into());
    w.uint(v.releases.removed.into());
}

fn column(w: &mut Writer, c: &Column) {
    for text in [&c.name, &c.kind, &c.format] {
        w.text(text);
    }
    w.int(c.priority.into());
    match &c.cell {
        Cell::Path(path) => {
            w.uint(0);
            w.text(path);
        }
        Cell::Function(name) => {
            w.uint(1);
            w.text(name);
        }
    }
    texts(w, &c.arguments);
    value(w, &c.absent);
}
