//! Random objects of every kind in the catalogue survive each encoding.

use bytes::Bytes;
use kubelith_catalog::builtin;
use kubelith_codec::json::{self, Strictness};
use kubelith_codec::object::object_json;
use kubelith_codec::typed;
use kubelith_codec::{proto, yaml};
use kubelith_meta::{Key, Map, Str, Value};
use kubelith_schema::canonical::Form;
use kubelith_schema::{Empties, ProtoSlot, Schema, Shape, StructType, TypeTable, TypedSchema, canonicalize};
use std::cell::{Cell, RefCell};

mod random;
use random::Random;

/// Makes values that fit a schema, sparse enough to end.
struct Maker<'t> {
    table: &'t TypeTable,
    random: Random,
}

impl Maker<'_> {
    fn object(&mut self, ty: &StructType, depth: usize) -> Value {
        let mut members = Vec::new();
        for field in &ty.fields {
            // Without a protobuf number a field does not survive: apiVersion and kind travel in the envelope.
            if !ty.proto.is_empty()
                && matches!(field.name.as_str(), "apiVersion" | "kind")
                && !has_number(ty, &field.name)
            {
                continue;
            }
            if self.random.below(100) < 60 / (depth + 1).max(1) + 5 {
                members.push((field.name.clone(), self.value(&field.schema, depth + 1)));
            }
        }
        Value::Object(members.into_iter().collect())
    }

    fn value(&mut self, schema: &Schema, depth: usize) -> Value {
        match &schema.shape {
            Shape::Bool => Value::Bool(self.random.below(2) == 1),
            Shape::Int32 => Value::Int(i64::from(self.random.next() as i32) >> self.random.below(32)),
            Shape::Int64 => Value::Int(self.random.next() as i64 >> self.random.below(64)),
            Shape::Float => kubelith_codec::json::stored_form(self.random.below(2000) as f64 / 8.0 - 100.0),
            Shape::String => self.text().into(),
            Shape::Bytes => {
                let bytes: Vec<u8> = (0..self.random.below(9)).map(|_| self.random.next() as u8).collect();
                kubelith_codec::base64::encode(&bytes).into()
            }
            Shape::Time => self.pick(&["2020-02-29T23:59:59Z", "1969-12-31T23:59:59Z", "9999-01-01T00:00:00Z"]),
            Shape::MicroTime => self.pick(&["2020-02-29T23:59:59.000001Z", "1960-01-01T00:00:00.999999Z"]),
            Shape::Duration => self.pick(&["1h0m0s", "0s", "-1.5s", "1µs"]),
            Shape::Quantity => self.pick(&["0", "1", "500m", "-3Gi", "12e6", "1k", "99999999999999999999"]),
            Shape::IntOrString => match self.random.below(2) {
                0 => Value::Int(i64::from(self.random.next() as i32)),
                _ => self.text().into(),
            },
            Shape::RawExtension | Shape::FieldsV1 | Shape::Json | Shape::Any => Value::from([
                ("a", Value::Array(vec![Value::Null, 1.into(), self.text().into()])),
                ("b", Value::object()),
            ]),
            Shape::JsonSchemaOrBool(id) => match self.random.below(2) {
                0 => Value::Bool(self.random.below(2) == 1),
                _ => self.object(self.table.get(*id), depth),
            },
            Shape::JsonSchemaOrArray(id) => match self.random.below(2) {
                0 => Value::Array((0..2).map(|_| self.object(self.table.get(*id), depth)).collect()),
                _ => self.object(self.table.get(*id), depth),
            },
            Shape::JsonSchemaOrStrings(id) => match self.random.below(2) {
                0 => Value::Array(vec![self.text().into()]),
                _ => self.object(self.table.get(*id), depth),
            },
            Shape::Named(id) => self.object(self.table.get(*id), depth),
            Shape::Struct(ty) => self.object(ty, depth),
            Shape::Map(item) => {
                let entries = (0..self.random.below(4)).map(|_| (self.text(), self.value(item, depth + 1)));
                Value::Object(entries.collect())
            }
            Shape::List(item) => Value::Array((0..self.random.below(4)).map(|_| self.value(item, depth + 1)).collect()),
        }
    }

    fn pick(&mut self, texts: &[&str]) -> Value {
        texts[self.random.below(texts.len())].into()
    }

    fn text(&mut self) -> Str {
        let pieces = ["a", "B", "-", " ", "é", "<a", "\n", "\"", "true", "1", ":", "世", "\u{1f600}"];
        (0..self.random.below(6)).map(|_| pieces[self.random.below(pieces.len())]).collect()
    }
}

fn has_number(ty: &StructType, name: &str) -> bool {
    ty.proto
        .iter()
        .any(|slot| matches!(slot, ProtoSlot::Field { field, .. } if ty.fields[usize::from(*field)].name == name))
}

/// `check` gets a canonical object of each kind, several times.
fn for_every_kind(seed: u64, check: impl Fn(&str, &TypedSchema, &Value)) {
    let catalog = builtin();
    let mut maker = Maker { table: &catalog.table, random: Random::new(seed) };
    let mut kinds = 0;
    for (gvk, id) in catalog.kinds() {
        let ty = catalog.table.get(id);
        let schema = TypedSchema::named(catalog.table.clone(), id);
        kinds += 1;
        for _ in 0..4 {
            let mut value = maker.object(ty, 0);
            if ty.field("kind").is_some() && ty.field("apiVersion").is_some() {
                value.set_at(&["kind"], gvk.kind.clone().into());
                let group_version = gvk.group_version();
                value.set_at(&["apiVersion"], group_version.to_string().into());
            }
            canonicalize(&schema.table, &schema.root, &mut value, Empties::Absent);
            check(&gvk.to_string(), &schema, &value);
        }
    }
    assert!(kinds > 300, "the catalogue has {kinds} kinds");
}

fn canonical(mut value: Value, schema: &TypedSchema) -> Value {
    canonicalize(&schema.table, &schema.root, &mut value, Empties::Absent);
    value
}

#[test]
fn protobuf() {
    for_every_kind(1, |kind, schema, value| {
        if schema.root_struct().is_some_and(|ty| ty.proto.is_empty()) {
            return;
        }
        let bytes = proto::to_vec(value, schema).unwrap();
        let back = canonical(proto::from_slice(&bytes, schema).unwrap(), schema);
        assert_eq!(json::to_string(&back), json::to_string(value), "{kind}");
        assert_eq!(proto::to_vec(&back, schema).unwrap(), bytes, "{kind}");
    });
}

/// Puts something else in place of some values, and adds members that no type has.
fn disturb(random: &mut Random, value: &mut Value) {
    match value {
        _ if random.below(20) == 0 => {
            let others = [Value::Null, 7.into(), 0.5.into(), "text".into(), Value::object(), vec![1].into()];
            *value = others[random.below(others.len())].clone();
        }
        Value::Object(map) => {
            map.iter_mut().for_each(|(_, v)| disturb(random, v));
            if random.below(4) == 0 {
                map.insert("unknown", Value::from([("a", Value::from(vec![Value::object(), Value::Null]))]));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|v| disturb(random, v)),
        _ => {}
    }
}

#[test]
fn protobuf_of_text_is_that_of_the_values_in_it() {
    fn read(text: &Bytes) -> Vec<(Key, Value)> {
        json::parse(text).unwrap().as_object().cloned().unwrap().into_own()
    }
    let random = RefCell::new(Random::new(5));
    let (parts, unread, whole) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let check = |kind: &str, schema: &TypedSchema, value: &Value| {
        let want = proto::to_vec(value, schema).unwrap();
        let text = Bytes::from(object_json(value));
        if let Some(got) = proto::from_json(&text, schema) {
            assert_eq!(got, want, "{kind}");
            whole.set(whole.get() + 1);
        }
        assert_eq!(proto::to_vec(&json::parse_finished(&text).unwrap(), schema).unwrap(), want, "{kind}");
        let mut sealed = value.clone();
        for (_, part) in sealed.make_object().iter_mut() {
            if part.as_object().is_some_and(|map| !map.is_empty()) {
                *part = Value::Object(Map::of_text(json::to_vec(part).into(), read));
            }
        }
        assert_eq!(proto::to_vec(&sealed, schema).unwrap(), want, "{kind}");
        let texts = || sealed.as_object().into_iter().flat_map(Map::values).filter_map(Value::as_object);
        parts.set(parts.get() + texts().filter(|part| part.text().is_some()).count());
        unread.set(unread.get() + texts().filter(|part| part.unread().is_some()).count());
    };
    for_every_kind(4, |kind, schema, value| {
        if schema.root_struct().is_some_and(|ty| ty.proto.is_empty()) {
            return;
        }
        check(kind, schema, value);
        let mut disturbed = value.clone();
        disturbed.make_object().iter_mut().for_each(|(_, v)| disturb(&mut random.borrow_mut(), v));
        check(kind, schema, &disturbed);
    });
    // Names that have to be escaped are the reason to read.
    println!("{} parts, {} unread, {} whole", parts.get(), unread.get(), whole.get());
    assert!(unread.get() * 2 > parts.get() && whole.get() > 500);
}

#[test]
fn json_and_yaml() {
    for_every_kind(2, |kind, schema, value| {
        let text = json::to_vec(value);
        let decoded = typed::decode(&text, schema, Strictness::Report).unwrap();
        assert!(decoded.strict.is_empty(), "{kind}: {:?}", decoded.strict);
        assert_eq!(json::to_string(&canonical(decoded.value, schema)), json::to_string(value), "{kind}");
        let read = yaml::read(&yaml::to_vec(value)).unwrap();
        assert_eq!(json::to_string(&read.value), json::to_string(value), "{kind}");
    });
}

/// Puts null in place of some values.
fn punch(random: &mut Random, value: &mut Value) {
    match value {
        _ if random.below(30) == 0 => *value = Value::Null,
        Value::Object(map) => map.iter_mut().for_each(|(_, v)| punch(random, v)),
        Value::Array(items) => items.iter_mut().for_each(|v| punch(random, v)),
        _ => {}
    }
}

#[test]
fn decoding_to_the_printed_form_is_decoding_and_canonicalizing() {
    let catalog = builtin();
    let mut maker = Maker { table: &catalog.table, random: Random::new(3) };
    let (mut canonical, mut sent) = (0, 0);
    for (gvk, id) in catalog.kinds() {
        let schema = TypedSchema::named(catalog.table.clone(), id);
        for attempt in 0..12 {
            let mut value = match attempt {
                0 => Value::object(),
                _ => maker.object(catalog.table.get(id), attempt % 3),
            };
            match attempt % 4 {
                0 => punch(&mut maker.random, &mut value),
                1 => {}
                _ => drop(canonicalize(&schema.table, &schema.root, &mut value, Empties::Absent)),
            }
            let text = json::to_vec(&value);
            let mut plain = typed::decode(&text, &schema, Strictness::Report).unwrap();
            let plain_form = canonicalize(&schema.table, &schema.root, &mut plain.value, Empties::Distinct);
            let (mut printed, form) = typed::decode_printed(&text, &schema, Strictness::Report).unwrap();
            match form {
                Form::Canonical => {
                    assert_eq!(plain_form, Form::Canonical, "{gvk}: {}", json::to_string(&value));
                    canonical += 1;
                }
                _ => {
                    canonicalize(&schema.table, &schema.root, &mut printed.value, Empties::Distinct);
                    sent += 1;
                }
            }
            assert_eq!(json::to_string(&printed.value), json::to_string(&plain.value), "{gvk}");
            assert_eq!(printed.strict, plain.strict, "{gvk}");
        }
    }
    assert!(canonical > 1000 && sent > 300, "{canonical} canonical, {sent} as sent");
}

#[test]
fn fields_given_twice_are_merged_before_any_is_added() {
    let kind = kubelith_meta::GroupVersionKind::new("", "v1", "Pod");
    let schema = builtin().kind_schema(&kind).unwrap();
    let text =
        br#"{"spec":{"containers":[{"name":"a","image":"b"}]},"spec":{"nodeName":"n","containers":[{"name":"c"}]}}"#;
    let (printed, form) = typed::decode_printed(text, &schema, Strictness::Report).unwrap();
    assert_eq!((printed.value, form), (typed::decode(text, &schema, Strictness::Report).unwrap().value, Form::Sent));
    assert_eq!(printed.strict.len(), 1);
}
