//! Defaults and canonical form go in either order: objects are decoded into the form, and it is not made again behind the
//! defaults.

use super::BUILTIN;
use kubelith_codec::json::{self, Strictness};
use kubelith_codec::typed;
use kubelith_meta::{Str, Value};
use kubelith_schema::canonical::{Empties, Form, canonicalize};
use kubelith_schema::{Schema, Shape, StructType, TypeTable, TypedSchema};

/// What rules look for, in names and in values.
const TEXTS: [&str; 22] = [
    "",
    "a",
    "app:1.2",
    "app",
    "Always",
    "ClientIP",
    "ClusterIP",
    "Container",
    "Egress",
    "ExactCount",
    "Exists",
    "LoadBalancer",
    "NodePort",
    "None",
    "OnDelete",
    "RollingUpdate",
    "User",
    "autoscaling.alpha.kubernetes.io/metrics",
    "deprecated.deployment.rollback.to",
    "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match",
    "pod.beta.kubernetes.io/init-containers",
    "kubernetes.io/metadata.name",
];

struct Maker<'t> {
    table: &'t TypeTable,
    state: u64,
}

impl Maker<'_> {
    fn below(&mut self, n: usize) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % n
    }

    fn object(&mut self, ty: &StructType, depth: usize) -> Value {
        let mut members: Vec<(Str, Value)> = Vec::new();
        for field in &ty.fields {
            // A taint without a time gets that of now.
            let percent = if field.name == "timeAdded" { 100 } else { [70, 70, 60, 50, 30, 15, 5][depth.min(6)] };
            if self.below(100) < percent {
                members.push((field.name.clone(), self.value(&field.schema, depth + 1)));
            }
        }
        Value::Object(members.into_iter().collect())
    }

    fn value(&mut self, schema: &Schema, depth: usize) -> Value {
        match &schema.shape {
            Shape::Bool => Value::Bool(self.below(2) == 1),
            Shape::Int32 | Shape::Int64 => Value::Int(self.below(3) as i64 - 1),
            Shape::Float => Value::Float(self.below(2) as f64),
            Shape::String => self.text(),
            Shape::Bytes => ["", "YQ=="][self.below(2)].into(),
            Shape::Time | Shape::MicroTime => "2020-02-29T23:59:59Z".into(),
            Shape::Duration => ["0s", "1s"][self.below(2)].into(),
            Shape::Quantity => ["0", "1", "0.0001", "1Gi"][self.below(4)].into(),
            Shape::IntOrString => match self.below(2) {
                0 => Value::Int(self.below(2) as i64),
                _ => self.text(),
            },
            Shape::RawExtension | Shape::FieldsV1 | Shape::Json | Shape::Any => Value::object(),
            Shape::JsonSchemaOrBool(id) | Shape::JsonSchemaOrArray(id) | Shape::JsonSchemaOrStrings(id) => {
                self.object(self.table.get(*id), depth)
            }
            Shape::Named(id) => self.object(self.table.get(*id), depth),
            Shape::Struct(ty) => self.object(ty, depth),
            Shape::Map(item) => {
                let entries = (0..self.below(3)).map(|_| (Str::from(self.any_text()), self.value(item, depth + 1)));
                Value::Object(entries.collect())
            }
            Shape::List(item) => Value::Array((0..self.below(3)).map(|_| self.value(item, depth + 1)).collect()),
        }
    }

    fn text(&mut self) -> Value {
        self.any_text().into()
    }

    fn any_text(&mut self) -> &'static str {
        TEXTS[self.below(TEXTS.len())]
    }
}

/// The two ways to a complete object.
fn compare(schema: &TypedSchema, given: &Value) -> Form {
    let text = json::to_vec(given);
    let mut plain = typed::decode(&text, schema, Strictness::Lenient).unwrap().value;
    BUILTIN.defaulting.fill(&schema.root, &mut plain);
    let plain_form = canonicalize(&schema.table, &schema.root, &mut plain, Empties::Distinct);
    let (printed, form) = typed::decode_printed(&text, schema, Strictness::Lenient).unwrap();
    let mut printed = printed.value;
    BUILTIN.defaulting.fill(&schema.root, &mut printed);
    match form {
        Form::Canonical => assert_eq!(plain_form, Form::Canonical, "{}", json::to_string(given)),
        _ => drop(canonicalize(&schema.table, &schema.root, &mut printed, Empties::Distinct)),
    }
    assert_eq!(json::to_string(&printed), json::to_string(&plain), "{}", json::to_string(given));
    form
}

#[test]
fn canonical_objects_stay_so_when_they_are_completed() {
    let catalog = kubelith_catalog::builtin();
    let mut maker = Maker { table: &catalog.table, state: 7 };
    let mut canonical = 0;
    for (_, id) in catalog.kinds() {
        let schema = TypedSchema::named(catalog.table.clone(), id);
        if !BUILTIN.defaulting.concerns(&schema.root) {
            continue;
        }
        compare(&schema, &Value::object());
        for attempt in 0..20 {
            let mut object = maker.object(catalog.table.get(id), attempt % 2);
            if attempt % 4 != 0 {
                // Nothing in it is left out for being empty, then.
                canonicalize(&schema.table, &schema.root, &mut object, Empties::Absent);
            }
            canonical += usize::from(compare(&schema, &object) == Form::Canonical);
        }
    }
    assert!(canonical > 500, "{canonical}");
}
