//! Reads what `encode` wrote, at start and once.

use crate::api::{Api, Serve};
use crate::catalog::{Catalog, Gate};
use crate::reader::Reader;
use kubelith_meta::{GroupResource, GroupVersion, Str};
use kubelith_schema::{
    Cell, Column, Deprecation, Descriptor, Encoding, Field, GoField, ListKind, Omit, PatchHint, Presence, ProtoSlot,
    Rules, Schema, Scope, SelectableField, ServedReleases, Shape, Storage, StructType, Subresource, TypeId, TypeTable,
    TypedSchema, Union, Unknown, Unselectable, Version,
};
use std::sync::Arc;

pub fn decode(bytes: &[u8]) -> Catalog {
    let mut r = Reader::new(bytes);
    let table = Arc::new(TypeTable::new(r.list(struct_type)));
    let apis = r.list(api);
    let kinds = r.list(|r| (r.kind(), r.id()));
    let everywhere = r.list(|r| (r.text(), r.id()));
    let mut gates = Vec::new();
    let descriptors = r.list(|r| Arc::new(descriptor(r, &table, &apis, &mut gates)));
    assert!(r.is_done(), "the catalogue is longer than its content");
    Catalog { table, descriptors, apis, kinds, everywhere, gates }
}

fn struct_type(r: &mut Reader<'_>) -> StructType {
    let name = r.text();
    let flags = r.uint();
    StructType {
        name,
        fields: r.list(field).into(),
        proto: r.list(slot),
        atomic: flags & 1 != 0,
        unknown: Unknown::Prune,
        embedded: flags & 2 != 0,
        unions: if flags & 4 != 0 { r.list(union) } else { Vec::new() },
        go: if flags & 8 != 0 { r.list(go_field) } else { Vec::new() },
    }
}

fn go_field(r: &mut Reader<'_>) -> GoField {
    GoField { name: r.text(), type_name: r.text(), embedded: r.text() }
}

fn union(r: &mut Reader<'_>) -> Union {
    Union { discriminator: r.some_text(), members: r.list(|r| (r.text(), r.text())) }
}

fn slot(r: &mut Reader<'_>) -> ProtoSlot {
    let word = r.uint();
    let number = (word >> 1) as u32;
    if word & 1 == 0 {
        ProtoSlot::Field { number, field: r.uint() as u16 }
    } else {
        ProtoSlot::Inline { number, slots: r.list(slot) }
    }
}

fn field(r: &mut Reader<'_>) -> Field {
    let name = r.text();
    let flags = r.uint();
    let omit = match flags >> 3 {
        0 => Omit::Never,
        1 => Omit::Empty,
        _ => Omit::Zero,
    };
    let presence = Presence { nilable: flags & 2 != 0, pointer: flags & 4 != 0, omit };
    Field { name, schema: schema(r), required: flags & 1 != 0, presence }
}

fn schema(r: &mut Reader<'_>) -> Schema {
    let word = r.uint();
    let flag = |i: u32| word >> 2 >> i & 1 != 0;
    Schema {
        shape: shape(r),
        nullable: false,
        default: flag(0).then(|| Box::new(r.value())),
        default_hidden: flag(1),
        list: match word & 3 {
            0 => ListKind::Atomic,
            1 => ListKind::Set,
            _ => ListKind::Map(r.texts().into()),
        },
        list_declared: flag(2),
        boxed: flag(3),
        atomic: flag(4),
        granular: flag(5),
        patch: flag(6).then(|| Box::new(patch_hint(r))),
        rules: flag(7).then(|| Box::new(Rules { enumeration: r.list(Reader::value), ..Rules::default() })),
    }
}

fn patch_hint(r: &mut Reader<'_>) -> PatchHint {
    let flags = r.uint();
    PatchHint { merge: flags & 1 != 0, retain_keys: flags & 2 != 0, merge_key: r.some_text() }
}

fn shape(r: &mut Reader<'_>) -> Shape {
    match r.uint() {
        0 => Shape::Any,
        1 => Shape::Bool,
        2 => Shape::Int32,
        3 => Shape::Int64,
        4 => Shape::Float,
        5 => Shape::String,
        6 => Shape::Bytes,
        7 => Shape::Time,
        8 => Shape::MicroTime,
        9 => Shape::Duration,
        10 => Shape::Quantity,
        11 => Shape::IntOrString,
        12 => Shape::RawExtension,
        13 => Shape::FieldsV1,
        14 => Shape::Json,
        15 => Shape::JsonSchemaOrBool(r.id()),
        16 => Shape::JsonSchemaOrArray(r.id()),
        17 => Shape::JsonSchemaOrStrings(r.id()),
        18 => Shape::Map(Box::new(schema(r))),
        19 => Shape::List(Box::new(schema(r))),
        _ => Shape::Named(r.id()),
    }
}

fn api(r: &mut Reader<'_>) -> Api {
    Api {
        gv: GroupVersion { group: r.text(), version: r.text() },
        serve: match r.uint() {
            0 => Serve::Default,
            1 => Serve::OnRequest,
            _ => Serve::Never,
        },
        group_priority: r.int() as i32,
        version_priority: r.int() as i32,
        models: r.text(),
    }
}

fn descriptor(r: &mut Reader<'_>, table: &Arc<TypeTable>, apis: &[Api], gates: &mut Vec<Gate>) -> Descriptor {
    let (group, plural) = (r.text(), r.text());
    let resource = GroupResource { group: group.clone(), resource: plural.clone() };
    Descriptor {
        singular: r.text(),
        kind: r.text(),
        list_kind: r.text(),
        scope: if r.flag() { Scope::Namespaced } else { Scope::Cluster },
        short_names: r.texts(),
        categories: r.texts(),
        storage: Storage {
            kind: r.kind(),
            resource: GroupResource { group: r.text(), resource: r.text() },
            prefix: r.text(),
            encoding: if r.flag() { Encoding::Json } else { Encoding::Protobuf },
            before: Some((r.uint() as u32, r.text())).filter(|(minor, _)| *minor > 0),
        },
        versions: r.list(|r| version(r, table, apis, &resource, gates)),
        group,
        plural,
    }
}

fn version(
    r: &mut Reader<'_>,
    table: &Arc<TypeTable>,
    apis: &[Api],
    resource: &GroupResource,
    gates: &mut Vec<Gate>,
) -> Version {
    let name = r.text();
    let schema = TypedSchema::named(table.clone(), r.id());
    let gate = r.some_text();
    let is_default = |a: &Api| a.gv.group == resource.group && a.gv.version == name && a.serve == Serve::Default;
    let served = gate.is_none() && apis.iter().any(is_default);
    if let Some(gate) = gate {
        gates.push(Gate { resource: resource.clone(), version: name.clone(), gate });
    }
    Version {
        name,
        served,
        schema,
        verbs: r.texts(),
        subresources: r.list(|r| subresource(r, table)),
        columns: r.list(column),
        selectable: r.list(|r| SelectableField {
            name: r.text(),
            path: r.text(),
            fallback: r.some_text(),
            absent: r.text(),
        }),
        unselectable: Unselectable { namespace: r.flag(), message: r.text() },
        deprecation: r.some_text().map(|warning| Deprecation { warning }),
        releases: ServedReleases { since: r.uint() as u32, removed: r.uint() as u32 },
    }
}

fn subresource(r: &mut Reader<'_>, table: &Arc<TypeTable>) -> Subresource {
    Subresource {
        name: r.text(),
        kind: r.kind(),
        schema: match r.uint() {
            0 => None,
            id => Some(TypedSchema::named(table.clone(), TypeId(id as u32 - 1))),
        },
        verbs: r.texts(),
        accepted: r.list(Reader::kind),
        scale: None,
    }
}

fn column(r: &mut Reader<'_>) -> Column {
    Column {
        name: r.text(),
        kind: r.text(),
        format: r.text(),
        description: Str::default(),
        priority: r.int() as i32,
        cell: if r.uint() == 0 { Cell::Path(r.text()) } else { Cell::Function(r.text()) },
        arguments: r.texts(),
        absent: r.value(),
    }
}
