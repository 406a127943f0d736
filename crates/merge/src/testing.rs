//! Type tables from a few lines of text, for tests.
//!
//! ```text
//! type Spec
//!   containers []Container map=name merge=name
//!   labels map<string>
//!   finalizers []string set merge
//! ```

use crate::json::parse;
use kubelith_meta::{Str, Value};
use kubelith_schema::*;
use std::sync::Arc;

/// The table of `text`, and the type named first as the root.
pub(crate) fn types(text: &str) -> TypedSchema {
    let names: Vec<&str> = text.lines().filter_map(|l| l.trim().strip_prefix("type ")).map(type_name).collect();
    let mut structs: Vec<StructType> = Vec::new();
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
        if let Some(head) = line.strip_prefix("type ") {
            structs.push(StructType {
                name: Str::from(type_name(head)),
                atomic: head.contains(" atomic"),
                unknown: if head.contains(" preserve") { Unknown::Preserve } else { Unknown::Prune },
                ..StructType::default()
            });
        } else {
            let fields = &mut structs.last_mut().expect("a field needs a type").fields;
            *fields = fields.iter().cloned().chain([field(line, &names)]).collect();
        }
    }
    let table = Arc::new(TypeTable::new(structs));
    TypedSchema::named(table, TypeId(0))
}

fn type_name(head: &str) -> &str {
    head.split(' ').next().expect("a name")
}

fn field(line: &str, names: &[&str]) -> Field {
    let mut words = line.split_whitespace();
    let name = Str::from(words.next().expect("a field name"));
    let mut schema = schema(words.next().expect("a field type"), names);
    let mut required = false;
    let mut presence = Presence::default();
    for flag in words {
        let (flag, argument) = flag.split_once('=').map_or((flag, None), |(f, a)| (f, Some(a)));
        let hint = |s: &mut Schema| s.patch.take().map(|hint| *hint).unwrap_or_default();
        match flag {
            "set" => schema.list = ListKind::Set,
            "map" => schema.list = ListKind::Map(argument.expect("keys").split(',').map(Str::from).collect()),
            "merge" => {
                let hint = PatchHint { merge: true, merge_key: argument.map(Str::from), ..hint(&mut schema) };
                schema.patch = Some(Box::new(hint));
            }
            "retainKeys" => {
                schema.patch = Some(Box::new(PatchHint { retain_keys: true, ..hint(&mut schema) }));
            }
            "replace" => schema.patch = Some(Box::default()),
            "atomic" => schema.atomic = true,
            "nullable" => schema.nullable = true,
            "required" => required = true,
            "value" => presence = Presence { nilable: false, pointer: false, omit: Omit::Empty },
            "default" => schema.default = Some(Box::new(parse(argument.expect("JSON")).expect("valid JSON"))),
            other => panic!("unknown flag {other}"),
        }
    }
    Field { name, schema, required, presence }
}

fn schema(text: &str, names: &[&str]) -> Schema {
    let shape = if let Some(element) = text.strip_prefix("[]") {
        Shape::List(Box::new(schema(element, names)))
    } else if let Some(value) = text.strip_prefix("map<") {
        Shape::Map(Box::new(schema(value.strip_suffix('>').expect("map<…>"), names)))
    } else {
        match text {
            "any" => Shape::Any,
            "bool" => Shape::Bool,
            "int32" => Shape::Int32,
            "int64" => Shape::Int64,
            "float" => Shape::Float,
            "string" => Shape::String,
            "time" => Shape::Time,
            "quantity" => Shape::Quantity,
            "intstr" => Shape::IntOrString,
            "raw" => Shape::RawExtension,
            "fieldsv1" => Shape::FieldsV1,
            name => {
                let id = names.iter().position(|n| *n == name).unwrap_or_else(|| panic!("unknown type {name}"));
                Shape::Named(TypeId(id as u32))
            }
        }
    };
    Schema { shape, ..Schema::default() }
}

/// Enough of a Deployment to try every kind of list and map.
pub(crate) fn deployment() -> TypedSchema {
    types(
        "type Deployment
           apiVersion string
           kind string
           metadata ObjectMeta
           spec DeploymentSpec
           status Status
         type ObjectMeta
           name string
           namespace string
           generateName string
           uid string
           resourceVersion string
           generation int64
           creationTimestamp time
           labels map<string>
           annotations map<string>
           finalizers []string set merge
           ownerReferences []OwnerReference map=uid merge=uid
           managedFields []ManagedFieldsEntry
         type OwnerReference atomic
           uid string
           name string
           controller bool
         type ManagedFieldsEntry
           manager string
           operation string
           apiVersion string
           time time
           fieldsType string
           fieldsV1 fieldsv1
           subresource string
         type DeploymentSpec value
           replicas int32
           paused bool
           selector LabelSelector
           strategy Strategy retainKeys
           template PodTemplate
         type LabelSelector atomic
           matchLabels map<string>
         type Strategy
           type string
           rollingUpdate RollingUpdate
         type RollingUpdate
           maxSurge intstr
           maxUnavailable intstr
         type PodTemplate
           metadata ObjectMeta
           spec PodSpec
         type PodSpec
           containers []Container map=name merge=name
           initContainers []Container map=name merge=name
           volumes []Volume map=name merge=name retainKeys
           nodeSelector map<string> atomic
           tolerations []Toleration
           restartPolicy string
           terminationGracePeriodSeconds int64
           overhead map<quantity>
         type Container
           name string required
           image string
           command []string
           args []string
           env []EnvVar map=name merge=name
           ports []Port map=containerPort,protocol merge=containerPort
           resources Resources
           workingDir string
         type Resources
           limits map<quantity>
           requests map<quantity>
         type EnvVar
           name string
           value string
         type Port
           name string
           containerPort int32
           hostPort int32
           protocol string default=\"TCP\"
         type Volume
           name string
           emptyDir EmptyDir
           hostPath HostPath
         type EmptyDir
           medium string
           sizeLimit quantity
         type HostPath
           path string
           type string
         type Toleration
           key string
           operator string
           effect string
         type Status
           replicas int32
           observedGeneration int64
           conditions []Condition map=type merge=type
         type Condition
           type string
           status string
           message string",
    )
}

/// `value` as JSON text, for messages.
pub(crate) fn text(value: &Value) -> String {
    kubelith_meta::text::json(value)
}

/// A random object of `schema`: members come and go, keyed lists have few distinct keys in any order. Two objects of
/// different seeds overlap a lot, which is what merging is about.
pub(crate) fn random_object(schema: &TypedSchema, seed: u64) -> Value {
    let mut random = Random { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, depth: 0, density: Density::Even };
    random.value(&schema.table, &schema.root)
}

/// As [`random_object`], but the deeper the fewer members: for the types of real APIs, which are wide and deep.
pub(crate) fn sparse_object(schema: &TypedSchema, seed: u64) -> Value {
    let mut random = Random { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, depth: 0, density: Density::Sparse };
    random.value(&schema.table, &schema.root)
}

/// The same members with some other values.
pub(crate) fn other_scalars(value: &Value, seed: u64) -> Value {
    let next = |i: usize| seed.rotate_left(i as u32 * 5 + 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let other = seed >> 60 == 0;
    match value {
        Value::Object(map) => {
            Value::Object(map.iter().enumerate().map(|(i, (k, v))| (k, other_scalars(v, next(i)))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().enumerate().map(|(i, v)| other_scalars(v, next(i))).collect()),
        Value::Int(_) if other => Value::Int((seed % 4) as i64),
        Value::Bool(_) if other => Value::Bool(seed.is_multiple_of(2)),
        Value::String(_) if other => Value::from(["", "x", "y"][(seed % 3) as usize]),
        same => same.clone(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Density {
    Even,
    Sparse,
}

struct Random {
    state: u64,
    depth: u64,
    density: Density,
}

impl Random {
    /// A number below `n` (xorshift).
    fn below(&mut self, n: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) % n
    }

    fn value(&mut self, table: &TypeTable, schema: &Schema) -> Value {
        match &schema.shape {
            Shape::Bool => Value::Bool(self.below(2) == 1),
            Shape::Int32 | Shape::Int64 => Value::Int(self.below(4) as i64),
            Shape::IntOrString if self.below(2) == 0 => Value::Int(self.below(4) as i64),
            Shape::Quantity => Value::from(["1", "2", "500m"][self.below(3) as usize]),
            Shape::Time => Value::from("2024-01-01T00:00:00Z"),
            Shape::Map(element) => {
                let mut map = kubelith_meta::Map::new();
                for key in ["k1", "k2", "k3"] {
                    if self.below(2) == 0 {
                        map.insert(key, self.value(table, element));
                    }
                }
                Value::Object(map)
            }
            Shape::List(element) => self.list(table, schema, element),
            Shape::Named(_) | Shape::Struct(_) => {
                let mut map = kubelith_meta::Map::new();
                self.depth += 1;
                for field in &table.resolve(schema).expect("a struct").fields {
                    if self.has_member() && !matches!(field.name.as_str(), "managedFields" | "fieldsV1") {
                        map.insert(field.name.clone(), self.value(table, &field.schema));
                    }
                }
                self.depth -= 1;
                Value::Object(map)
            }
            _ => Value::from(["x", "y", "z"][self.below(3) as usize]),
        }
    }

    fn has_member(&mut self) -> bool {
        match self.density {
            Density::Even => self.below(5) < 3,
            Density::Sparse if self.depth > 8 => false,
            Density::Sparse => self.below(self.depth + 1) == 0,
        }
    }

    fn list(&mut self, table: &TypeTable, schema: &Schema, element: &Schema) -> Value {
        let mut labels = ["a", "b", "c", "d"];
        for i in (1..labels.len()).rev() {
            labels.swap(i, self.below(i as u64 + 1) as usize);
        }
        let most = if self.density == Density::Even { 5 } else { 3 };
        let labels = &labels[..self.below(most) as usize];
        // A list may merge by another key than it is owned by.
        let merge_key = schema.patch.as_ref().filter(|p| p.merge).and_then(|p| p.merge_key.clone());
        let one = |random: &mut Random, label: &str| match &schema.list {
            ListKind::Set if matches!(element.shape, Shape::Int32 | Shape::Int64) => {
                Value::Int(i64::from(label.as_bytes()[0]))
            }
            ListKind::Set => Value::from(label),
            ListKind::Map(keys) => {
                let mut value = random.value(table, element);
                let key_type = |k: &str| table.resolve(element).and_then(|s| s.field(k)).map(|f| &f.schema.shape);
                for (i, key) in keys.iter().enumerate() {
                    let id = match key_type(key) {
                        Some(Shape::Int32 | Shape::Int64) => Value::Int(i64::from(label.as_bytes()[0])),
                        _ if i > 0 => Value::from("TCP"),
                        _ => Value::from(label),
                    };
                    value.make_object().insert(key.clone(), id);
                }
                value
            }
            ListKind::Atomic => random.value(table, element),
        };
        let mut keyed = |label: &&str| {
            let mut value = one(self, label);
            let key = merge_key.as_ref().filter(|_| value.as_object().is_some());
            if let Some(key) = key {
                let shape = table.resolve(element).and_then(|s| s.field(key)).map(|f| &f.schema.shape);
                let number = matches!(shape, Some(Shape::Int32 | Shape::Int64));
                let id = if number { Value::Int(i64::from(label.as_bytes()[0])) } else { Value::from(*label) };
                value.make_object().insert(key.clone(), id);
            }
            value
        };
        Value::Array(labels.iter().map(&mut keyed).collect())
    }
}

/// `n` random cases; failures are reported, not kept in files.
pub(crate) fn cases(n: u32) -> proptest::test_runner::Config {
    proptest::test_runner::Config { cases: n, failure_persistence: None, ..Default::default() }
}
