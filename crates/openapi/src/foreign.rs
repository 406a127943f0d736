//! What other servers say of their group versions, for the document of version 2: cut down to what is theirs, and joined
//! with ours. A type that both have in the same words is there once; one that differs gets another name.

use kubelith_meta::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const DEFINITIONS: &str = "#/definitions/";
const PARAMETERS: &str = "#/parameters/";
const KINDS: &str = "x-kubernetes-group-version-kind";

/// A part of another server's document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Foreign {
    paths: BTreeMap<String, Value>,
    definitions: BTreeMap<String, Value>,
    parameters: BTreeMap<String, Value>,
}

impl Foreign {
    /// The paths below `prefix` and what they refer to.
    pub fn below(prefix: &str, document: &Value) -> Foreign {
        let members = |key: &str| document.get(key).and_then(Value::as_object);
        let mut part = Foreign::default();
        for (path, item) in members("paths").into_iter().flat_map(Map::iter).filter(|(p, _)| p.starts_with(prefix)) {
            part.paths.insert(path.to_owned(), item.clone());
        }
        let mut names = BTreeSet::new();
        part.paths.values().for_each(|item| references(item, &mut names));
        let mut seen = BTreeSet::new();
        while let Some(reference) = names.pop_first() {
            if !seen.insert(reference.clone()) {
                continue;
            }
            let kinds = [(DEFINITIONS, "definitions"), (PARAMETERS, "parameters")];
            for (start, key) in kinds {
                let Some(name) = reference.strip_prefix(start) else { continue };
                let Some(found) = members(key).and_then(|m| m.get(name)) else { continue };
                references(found, &mut names);
                let kept = if key == "definitions" { &mut part.definitions } else { &mut part.parameters };
                kept.insert(name.to_owned(), found.clone());
            }
        }
        part
    }
}

/// Adds every reference in a value.
fn references(value: &Value, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter() {
                match value.as_str() {
                    Some(target) if key == "$ref" => drop(out.insert(target.to_owned())),
                    _ => references(value, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, out)),
        _ => {}
    }
}

/// Makes references point to new names.
fn rename(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if key == "$ref"
                    && let Some(new) = value.as_str().and_then(|target| names.get(target))
                {
                    *value = new.as_str().into();
                    continue;
                }
                rename(value, names);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        _ => {}
    }
}

/// All foreign parts, ready to stand beside our own.
#[derive(Debug, Default)]
pub struct Joined {
    pub paths: BTreeMap<String, Value>,
    pub definitions: BTreeMap<String, Value>,
    pub parameters: BTreeMap<String, Value>,
    /// Kinds that one of our own definitions also stands for.
    pub kinds: BTreeMap<String, Vec<Value>>,
}

/// What we have ourselves, by name.
pub trait Own {
    fn has_path(&self, path: &str) -> bool;
    fn definition(&self, name: &str) -> Option<Value>;
    fn parameter(&self, name: &str) -> Option<Value>;
}

impl Joined {
    /// Earlier parts come first: their names stay, and so do their paths.
    pub fn new(parts: &[Arc<Foreign>], own: &impl Own) -> Joined {
        let mut joined = Joined::default();
        for part in parts {
            joined.add(part, own);
        }
        joined
    }

    fn add(&mut self, part: &Foreign, own: &impl Own) {
        let mut names = BTreeMap::new();
        let mut added = Vec::new();
        for (name, definition) in &part.definitions {
            let known = |name: &str| self.definitions.get(name).cloned().or_else(|| own.definition(name));
            match place(name, definition, known) {
                Place::New(new) => {
                    names.insert(format!("{DEFINITIONS}{name}"), format!("{DEFINITIONS}{new}"));
                    added.push((new, definition.clone()));
                }
                Place::Shared(with) => {
                    names.insert(format!("{DEFINITIONS}{name}"), format!("{DEFINITIONS}{with}"));
                    self.share(&with, definition, own);
                }
            }
        }
        let mut parameters = Vec::new();
        for (name, parameter) in &part.parameters {
            let known = |name: &str| self.parameters.get(name).cloned().or_else(|| own.parameter(name));
            let (Place::New(new) | Place::Shared(new)) = place(name, parameter, known);
            names.insert(format!("{PARAMETERS}{name}"), format!("{PARAMETERS}{new}"));
            parameters.push((new, parameter.clone()));
        }
        names.retain(|old, new| old != new);
        let renamed = |mut value: Value| {
            if !names.is_empty() {
                rename(&mut value, &names);
            }
            value
        };
        for (name, definition) in added {
            self.definitions.insert(name, renamed(definition));
        }
        for (name, parameter) in parameters {
            if own.parameter(&name).is_none() {
                self.parameters.entry(name).or_insert_with(|| renamed(parameter));
            }
        }
        for (path, item) in &part.paths {
            if !own.has_path(path) && !self.paths.contains_key(path) {
                self.paths.insert(path.clone(), renamed(item.clone()));
            }
        }
    }

    /// A definition that is there already stands for the kinds of both.
    fn share(&mut self, name: &str, definition: &Value, own: &impl Own) {
        let list = |v: &Value| v.get(KINDS).and_then(Value::as_array).map(<[Value]>::to_vec).unwrap_or_default();
        let more = list(definition);
        if more.is_empty() {
            return;
        }
        if let Some(mine) = self.definitions.get_mut(name) {
            let mut kinds = list(mine);
            let new: Vec<Value> = more.into_iter().filter(|k| !kinds.contains(k)).collect();
            kinds.extend(new);
            mine.set_at(&[KINDS], Value::Array(kinds));
            return;
        }
        let known = own.definition(name).map(|d| list(&d)).unwrap_or_default();
        let kinds = self.kinds.entry(name.to_owned()).or_default();
        for kind in more {
            if !known.contains(&kind) && !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
}

enum Place {
    /// Under this name, which is free.
    New(String),
    /// The same is there under this name.
    Shared(String),
}

/// `name`, `name_v2`, `name_v3` …: the first that is free, or holds the same.
fn place(name: &str, value: &Value, known: impl Fn(&str) -> Option<Value>) -> Place {
    let mut candidate = name.to_owned();
    for i in 2_u64.. {
        match known(&candidate) {
            None => break,
            Some(there) if same_but_for_kinds(&there, value) => return Place::Shared(candidate),
            Some(_) => candidate = format!("{name}_v{i}"),
        }
    }
    Place::New(candidate)
}

fn same_but_for_kinds(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return a == b };
    let rest = |map: &Map| map.keys().filter(|k| *k != KINDS).count();
    rest(a) == rest(b) && a.iter().filter(|(k, _)| *k != KINDS).all(|(k, v)| b.get(k) == Some(v))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_codec::json;

    struct Ours;

    impl Own for Ours {
        fn has_path(&self, path: &str) -> bool {
            path == "/apis/g/v1/taken"
        }
        fn definition(&self, name: &str) -> Option<Value> {
            let text = match name {
                "Meta" => r#"{"type":"object","x-kubernetes-group-version-kind":[{"kind":"A"}]}"#,
                "Other" => r#"{"type":"string"}"#,
                _ => return None,
            };
            Some(json::parse(text.as_bytes()).unwrap())
        }
        fn parameter(&self, _: &str) -> Option<Value> {
            None
        }
    }

    fn part() -> Arc<Foreign> {
        let document = br##"{"paths":{
            "/apis/g/v1/taken":{},
            "/apis/g/v1/things":{"get":{"parameters":[{"$ref":"#/parameters/p"}],
                "responses":{"200":{"schema":{"$ref":"#/definitions/Thing"}}}}},
            "/apis/other/v1/x":{"get":{"schema":{"$ref":"#/definitions/Unused"}}}},
          "definitions":{
            "Thing":{"properties":{"meta":{"$ref":"#/definitions/Meta"},"o":{"$ref":"#/definitions/Other"},
                "self":{"$ref":"#/definitions/Thing"}}},
            "Meta":{"type":"object","x-kubernetes-group-version-kind":[{"kind":"B"}]},
            "Other":{"type":"integer"},
            "Unused":{}},
          "parameters":{"p":{"name":"p"}}}"##;
        Arc::new(Foreign::below("/apis/g/v1/", &json::parse(document).unwrap()))
    }

    #[test]
    fn only_what_is_theirs_is_kept() {
        let part = part();
        assert_eq!(part.paths.keys().collect::<Vec<_>>(), ["/apis/g/v1/taken", "/apis/g/v1/things"]);
        assert_eq!(part.definitions.keys().collect::<Vec<_>>(), ["Meta", "Other", "Thing"]);
        assert_eq!(part.parameters.keys().collect::<Vec<_>>(), ["p"]);
    }

    #[test]
    fn the_same_is_shared_and_the_different_renamed() {
        let joined = Joined::new(&[part(), part()], &Ours);
        assert_eq!(joined.paths.keys().collect::<Vec<_>>(), ["/apis/g/v1/things"]);
        // The reference compares with what is there after renaming: a definition that refers to a renamed one is new.
        assert_eq!(joined.definitions.keys().collect::<Vec<_>>(), ["Other_v2", "Thing", "Thing_v2"]);
        let thing = json::to_string(&joined.definitions["Thing"]);
        assert!(thing.contains("#/definitions/Other_v2") && thing.contains("#/definitions/Meta\""), "{thing}");
        assert_eq!(joined.kinds["Meta"], [Value::from([("kind", "B")])]);
        assert_eq!(joined.parameters.len(), 1);
    }

    #[test]
    fn garbage_is_nothing() {
        for text in ["[]", "{\"paths\":7}", "{\"paths\":{\"/apis/g/v1/a\":{\"$ref\":7}}}", "null"] {
            let part = Foreign::below("/apis/g/v1/", &json::parse(text.as_bytes()).unwrap());
            assert!(part.definitions.is_empty());
        }
    }
}
