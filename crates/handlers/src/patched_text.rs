//! The text of a patched object as errors show it. The reference patches text: what a patch reaches is written anew, with
//! its members sorted; all else stands there as it was printed, in the order of Go's fields. That order is nearly the one
//! of the protobuf numbers, which is the one taken here.

use kubelith_codec::json;
use kubelith_meta::{Map, Str, Value};
use kubelith_schema::{ProtoSlot, Schema, Shape, StructType, TypeTable, TypedSchema};
use std::collections::BTreeMap;

/// No object is deeper, whatever a pointer says; what is deeper here could not be dropped without a stack as deep.
const MAX_STEPS: usize = json::MAX_DEPTH;

/// What a patch reaches of an object.
#[derive(Debug, Default)]
pub struct Reached {
    members: BTreeMap<Str, Reached>,
    /// The patch put the value here.
    is_new: bool,
}

impl Reached {
    /// By a merge patch.
    pub fn by_merge(live: &Value, patch: &Value) -> Reached {
        let (Value::Object(live), Value::Object(patch)) = (live, patch) else {
            return Reached { is_new: true, ..Reached::default() };
        };
        let reached = |(key, member): (&str, &Value)| {
            let current = live.get(key).unwrap_or(&Value::Null);
            (key.into(), Reached::by_merge(current, member))
        };
        Reached { members: patch.iter().map(reached).collect(), is_new: false }
    }

    /// By operations at these JSON pointers.
    pub fn by_pointers<'a>(pointers: impl IntoIterator<Item = &'a str>) -> Reached {
        let mut root = Reached::default();
        for pointer in pointers {
            let mut at = &mut root;
            for step in pointer.split('/').skip(1).take(MAX_STEPS) {
                at = at.members.entry(step.replace("~1", "/").replace("~0", "~").into()).or_default();
            }
            at.is_new = true;
        }
        root
    }
}

/// The text of `object`, which a patch that reaches so far has made. Without a schema all of it is sorted.
pub fn write(object: &Value, reached: &Reached, schema: Option<&TypedSchema>) -> Vec<u8> {
    let Some(schema) = schema else { return json::to_vec(object) };
    let mut out = Vec::new();
    Writer { table: &schema.table, out: &mut out }.value(object, Some(reached), Some(&schema.root));
    out
}

struct Writer<'a> {
    table: &'a TypeTable,
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, reached: Option<&Reached>, schema: Option<&Schema>) {
        match value {
            _ if reached.is_some_and(|r| r.is_new) => json::write(self.out, value),
            Value::Object(map) => self.object(map, reached, schema),
            Value::Array(items) => {
                let element = schema.and_then(|s| if let Shape::List(e) = &s.shape { Some(&**e) } else { None });
                self.out.push(b'[');
                for (i, item) in items.iter().enumerate() {
                    self.comma(i);
                    let reached = reached.and_then(|r| r.members.get(i.to_string().as_str()));
                    self.value(item, reached, element);
                }
                self.out.push(b']');
            }
            _ => json::write(self.out, value),
        }
    }

    fn object(&mut self, map: &Map, reached: Option<&Reached>, schema: Option<&Schema>) {
        let table = self.table;
        let ty = schema.and_then(|schema| table.resolve(schema));
        let element = schema.and_then(|s| if let Shape::Map(e) = &s.shape { Some(&**e) } else { None });
        let mut members: Vec<(&str, &Value)> = map.iter().collect();
        if let (None, Some(ty)) = (reached, ty) {
            let order = order(ty);
            members.sort_by_key(|(key, _)| order.get(*key).copied().unwrap_or(0));
        }
        self.out.push(b'{');
        for (i, (key, member)) in members.into_iter().enumerate() {
            self.comma(i);
            json::write_string(self.out, key);
            self.out.push(b':');
            let field = ty.and_then(|ty| ty.fields.iter().find(|f| f.name == *key)).map(|field| &field.schema);
            self.value(member, reached.and_then(|r| r.members.get(key)), field.or(element));
        }
        self.out.push(b'}');
    }

    fn comma(&mut self, index: usize) {
        if index > 0 {
            self.out.push(b',');
        }
    }
}

/// The place of each field that protobuf has among the others.
fn order(ty: &StructType) -> BTreeMap<&str, usize> {
    fn collect<'t>(ty: &'t StructType, slots: &[ProtoSlot], into: &mut BTreeMap<&'t str, usize>) {
        for slot in slots {
            match slot {
                ProtoSlot::Field { field, .. } => {
                    into.insert(&ty.fields[usize::from(*field)].name, into.len() + 1);
                }
                ProtoSlot::Inline { slots, .. } => collect(ty, slots, into),
            }
        }
    }
    let mut order = BTreeMap::new();
    collect(ty, &ty.proto, &mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::{Reached, write};
    use kubelith_codec::json;
    use kubelith_meta::{GroupVersionKind, Value};

    fn parse(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn pointers_are_followed_as_deep_as_objects_go() {
        let long = "/a".repeat(2_000_000);
        std::thread::Builder::new()
            .stack_size(64 << 20)
            .spawn(move || drop(Reached::by_pointers([long.as_str()])))
            .unwrap()
            .join()
            .unwrap();
    }

    #[test]
    fn only_what_a_patch_reaches_is_sorted() {
        let kind = GroupVersionKind::new("", "v1", "ConfigMap");
        let schema = kubelith_catalog::builtin().kind_schema(&kind).unwrap();
        let live =
            parse(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"labels":{"b":"x","a":"y"},"name":"c"}}"#);
        let untouched =
            r#"{"apiVersion":"v1","data":[],"kind":"ConfigMap","metadata":{"name":"c","labels":{"a":"y","b":"x"}}}"#;
        let touched =
            r#"{"apiVersion":"v1","data":[],"kind":"ConfigMap","metadata":{"labels":{"a":"y","b":"x"},"name":"c"}}"#;
        for (patch, pointers, want) in [
            (r#"{"data":[]}"#, &["/data"][..], untouched),
            (r#"{"data":[],"metadata":{"labels":{"a":"y"}}}"#, &["/data", "/metadata/labels/a"], touched),
        ] {
            for reached in [Reached::by_merge(&live, &parse(patch)), Reached::by_pointers(pointers.iter().copied())] {
                let text = write(&parse(touched), &reached, Some(&schema));
                assert_eq!(String::from_utf8(text).unwrap(), want, "{reached:?}");
            }
        }
    }
}
