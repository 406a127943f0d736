//! Defaults must be what their schema asks for.

use crate::rules::{Budget, RuleTree};
use crate::serving::embedded;
use crate::serving::schemas::Embedded;
use kubelith_cel::declared::Root;
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_schema::structural::{self, Structural};
use std::sync::Arc;

/// Whether defaults may have fields that the schema does not know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    Refused,
    AsBefore,
}

pub fn validate(schema: &Value, unknown: Unknown, path: &Path<'_>) -> ErrorList {
    let mut walk = Walk { unknown, budget: Some(Budget::OBJECT), errors: ErrorList::default() };
    // The resource itself has metadata as embedded ones do.
    let root = Structural { embedded: true, ..Structural::parse(schema) };
    walk.schema(&root, Root::Resource, &Place::Value, path);
    walk.errors
}

/// Brings the metadata of resources within defaults into form, below the schema of one version.
pub fn tidy(schema: &mut Value) {
    if Structural::parse(schema)
        .any(&|s| s.embedded && s.default.is_some() || s.default.is_some() && s.any(&|s| s.embedded))
    {
        tidy_below(schema, true);
    }
}

fn tidy_below(schema: &mut Value, is_resource: bool) {
    let own = Structural::parse(schema);
    if let Some(default) = schema.get_mut("default") {
        Embedded::tidy(&own, default);
    }
    if let Some(items) = schema.get_mut("items") {
        tidy_below(items, false);
    }
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (name, property) in properties.iter_mut() {
        if !((is_resource || own.embedded) && OF_RESOURCES.contains(&name)) {
            tidy_below(property, false);
        }
    }
}

/// Members of resources, which are checked as what they are part of.
const OF_RESOURCES: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Where a default stands.
#[derive(Clone)]
enum Place {
    Value,
    /// In what every resource has, by these steps from the resource.
    Metadata(Vec<String>),
}

impl Place {
    fn child(&self, name: &str, of_resource: bool) -> Place {
        match self {
            Place::Metadata(steps) => Place::Metadata(steps.iter().cloned().chain([name.to_owned()]).collect()),
            Place::Value if of_resource && OF_RESOURCES.contains(&name) => Place::Metadata(vec![name.to_owned()]),
            Place::Value => Place::Value,
        }
    }
}

/// A resource with nothing in it but this.
fn resource_with(steps: &[String], value: &Value) -> Value {
    let mut resource = Value::from([("apiVersion", "validation/v1"), ("kind", "Validation")]);
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    resource.set_at(&steps, value.clone());
    resource
}

pub fn has_unpruned(schema: &Value) -> bool {
    let parsed = Structural::parse(schema);
    parsed.any(&|s| s.default.as_deref().is_some_and(|default| pruned(s, default) != *default))
}

fn pruned(schema: &Structural, default: &Value) -> Value {
    let mut copy = schema.clone();
    copy.default = Some(Box::new(default.clone()));
    copy.prune_defaults();
    copy.default.map(|d| *d).unwrap_or_default()
}

struct Walk {
    unknown: Unknown,
    /// What rules may still cost. When it is used up, nothing more is looked at.
    budget: Option<Budget>,
    errors: ErrorList,
}

impl Walk {
    fn schema(&mut self, schema: &Structural, root: Root, place: &Place, path: &Path<'_>) {
        let place = if schema.embedded { &Place::Value } else { place };
        if let Some(default) = schema.default.as_deref() {
            match place {
                Place::Value => self.default(schema, default, root, &path.child("default")),
                Place::Metadata(steps) => self.metadata(schema, default, steps, root, &path.child("default")),
            }
        }
        // An item has no name, so nothing below is found from the resource.
        if let Some(items) = &schema.items {
            self.below(items, &Place::Value, &path.child("items"));
        }
        for (name, property) in &schema.properties {
            self.below(property, &place.child(name, schema.embedded), &path.entry("properties", name));
        }
    }

    fn below(&mut self, schema: &Structural, place: &Place, path: &Path<'_>) {
        if self.budget.is_some() {
            self.schema(schema, Root::of(schema), place, path);
        }
    }

    /// A default of a part of metadata makes good metadata by itself.
    fn metadata(&mut self, schema: &Structural, default: &Value, steps: &[String], root: Root, at: &Path<'_>) {
        let resource = Structural { embedded: true, ..Structural::default() };
        let whole = resource_with(steps, default);
        let wrong = match Embedded::check(&resource, &whole, &Path::ROOT) {
            Ok(()) => embedded::validate_at(&resource, &whole, &Path::ROOT),
            Err(unreadable) => ErrorList::from_iter([unreadable]),
        };
        if !wrong.is_empty() {
            let detail = format!("must result in valid metadata: {wrong}");
            return self.errors.push(Error::invalid(at, default, detail));
        }
        let found = structural::validate(schema, default, Some(at));
        let found = if found.is_empty() { self.rules(schema, default, root, at) } else { found };
        self.errors.extend(found);
    }

    fn default(&mut self, schema: &Structural, default: &Value, root: Root, at: &Path<'_>) {
        if self.unknown == Unknown::Refused && pruned(schema, default) != *default {
            self.errors.push(Error::invalid(at, default, "must not have unknown fields"));
        }
        let mut found = match Embedded::check(schema, default, at) {
            Ok(()) => embedded::validate_at(schema, default, at),
            Err(unreadable) => ErrorList::from_iter([unreadable]),
        };
        if found.is_empty() {
            found = structural::validate(schema, default, Some(at));
        }
        if found.is_empty() {
            found = self.rules(schema, default, root, at);
        }
        self.errors.extend(found);
    }

    /// A default must pass the rules both as it stays and as it comes to be.
    fn rules(&mut self, schema: &Structural, default: &Value, root: Root, at: &Path<'_>) -> ErrorList {
        let (Some(rules), Some(budget)) = (RuleTree::new(&Arc::new(schema.clone()), root), self.budget) else {
            return ErrorList::default();
        };
        let (mut found, mut left) = rules.check_default(default, Some(default), at, budget);
        if found.is_empty() {
            let (new, left_of_new) = rules.check_default(default, None, at, budget);
            found = new;
            left = left.zip(left_of_new).map(|(a, b)| a.min(b));
        }
        self.budget = left;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_codec::json;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    /// Each was given to kube-apiserver v1.36.
    #[test]
    fn defaults_of_metadata_make_good_metadata() {
        const LABELS: &str = "properties[tpl].properties[metadata].properties[labels].default: Invalid value: {\"a b\":\"c\"}: must \
             result in valid metadata: metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric \
             characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or \
             'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        let cases = [
            (r#"{"properties":{"metadata":{"type":"object","default":{"creationTimestamp":null,"name":"x"}}}}"#, ""),
            (
                r#"{"properties":{"metadata":{"type":"object","properties":{"labels":{"type":"object","default":{"a b":"c"}}}}}}"#,
                LABELS,
            ),
        ];
        for (part, expected) in cases {
            let mut part = value(part);
            for (key, is) in [("type", Value::from("object")), ("x-kubernetes-embedded-resource", true.into())] {
                part.set_at(&[key], is);
            }
            part.set_at(&["x-kubernetes-preserve-unknown-fields"], true.into());
            let mut schema = value(r#"{"type":"object"}"#);
            schema.set_at(&["properties", "tpl"], part);
            let errors = validate(&schema, Unknown::Refused, &Path::ROOT);
            let found = if errors.is_empty() { String::new() } else { errors.to_string() };
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn metadata_within_defaults_is_tidied() {
        let embedded = |default: &str| {
            let text = r#"{"type":"object","properties":{"tpl":{"type":"object","x-kubernetes-embedded-resource":true,
                "x-kubernetes-preserve-unknown-fields":true,"default":{"apiVersion":"v1","kind":"Pod","metadata":M}}}}"#;
            value(&text.replace('M', default))
        };
        let cases = [
            (r#"{"name":"x","creationTimestamp":null}"#, r#"{"name":"x"}"#),
            (r#"{"name":"x","foo":1}"#, r#"{"name":"x"}"#),
            ("null", "{}"),
            (r#"{"labels":null}"#, "{}"),
            (r#"{"name":null}"#, "{}"),
            (r#"{"name":5}"#, r#"{"name":5}"#),
        ];
        for (given, expected) in cases {
            let mut schema = embedded(given);
            tidy(&mut schema);
            assert_eq!(schema, embedded(expected), "{given}");
        }
    }
}
