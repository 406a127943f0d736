//! Discovery documents of other servers, read with care: they may hold anything.

use super::content_type;
use http::HeaderMap;
use kubelith_codec::json;
use kubelith_meta::{GroupVersion, Map, Str, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// An APIVersionDiscovery for each group version of a server.
pub type Versions = HashMap<GroupVersion, Arc<Value>>;

/// What we understand; the two versions have the same form.
pub const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// The kind of an aggregated discovery document.
pub const V2: &str = "APIGroupDiscoveryList";

/// Says what a body is, if it is aggregated discovery in a version that we know.
pub fn kind(headers: &HeaderMap) -> Option<&'static str> {
    let mut parts = content_type(headers).split(';').map(str::trim);
    if !parts.next()?.eq_ignore_ascii_case("application/json") {
        return None;
    }
    let parameters: HashMap<&str, &str> = parts.filter_map(|p| p.split_once('=')).collect();
    let is = |key: &str, values: &[&str]| parameters.get(key).is_some_and(|v| values.contains(v));
    (is("g", &["apidiscovery.k8s.io"]) && is("v", &["v2", "v2beta1"]) && is("as", &[V2])).then_some(V2)
}

/// A version of which nothing is known but that it is there.
pub fn nothing() -> Value {
    Value::object()
}

/// Reads an APIGroupDiscoveryList.
pub fn versions(body: &[u8]) -> Result<Versions, String> {
    let document = json::parse(body).map_err(|e| e.to_string())?;
    let mut versions = Versions::new();
    for group in list(&document, "items") {
        let name = Str::from(group.str_at(&["metadata", "name"]));
        for version in list(group, "versions") {
            let gv = GroupVersion::new(name.clone(), version.str_at(&["version"]));
            let resources = list(version, "resources").iter().map(resource).collect();
            versions.insert(gv, Arc::new(Value::from([("resources", Value::Array(resources))])));
        }
    }
    Ok(versions)
}

/// An APIResourceDiscovery with the members that it may have. Old clients stumble over a missing kind.
fn resource(resource: &Value) -> Value {
    let mut out = members(resource, &["resource", "scope", "singularResource", "verbs", "shortNames", "categories"]);
    out.insert("responseKind", response_kind(resource.get("responseKind")));
    let subresources: Vec<Value> = list(resource, "subresources")
        .iter()
        .map(|sub| {
            let mut out = members(sub, &["subresource", "acceptedTypes", "verbs"]);
            out.insert("responseKind", response_kind(sub.get("responseKind")));
            Value::Object(out)
        })
        .collect();
    if !subresources.is_empty() {
        out.insert("subresources", Value::Array(subresources));
    }
    Value::Object(out)
}

fn response_kind(kind: Option<&Value>) -> Value {
    let text = |key: &str| kind.map_or("", |k| k.str_at(&[key]));
    Value::from([("group", text("group")), ("version", text("version")), ("kind", text("kind"))])
}

fn members(value: &Value, keys: &[&str]) -> Map {
    keys.iter().filter_map(|key| Some((Str::from(*key), value.get(key)?.clone()))).collect()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).unwrap_or(&[])
}

/// Makes of an APIResourceList what aggregated discovery says of a version: subresources stand below their resource.
pub fn of_resource_list(body: &[u8]) -> Result<Value, String> {
    let document = json::parse(body).map_err(|e| e.to_string())?;
    let mut resources: BTreeMap<&str, Map> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    let mut below: HashMap<&str, Vec<Value>> = HashMap::new();
    for entry in list(&document, "resources") {
        let name = entry.str_at(&["name"]);
        let (parent, sub) = name.split_once('/').map_or((name, None), |(p, s)| (p, Some(s)));
        if !resources.contains_key(parent) {
            order.push(parent);
        }
        let namespaced = entry.get("namespaced").and_then(Value::as_bool).unwrap_or(false);
        let scope = if namespaced { "Namespaced" } else { "Cluster" };
        let at = resources
            .entry(parent)
            .or_insert_with(|| Map::from_iter([("resource", Value::from(parent)), ("scope", scope.into())]));
        let verbs = entry.get("verbs").cloned().unwrap_or(Value::Array(Vec::new()));
        match sub {
            None => {
                at.insert("singularResource", entry.str_at(&["singularName"]));
                at.insert("responseKind", response_kind(Some(entry)));
                at.insert("verbs", verbs);
                for key in ["shortNames", "categories"] {
                    if let Some(names) = entry.get(key) {
                        at.insert(key, names.clone());
                    }
                }
            }
            Some(sub) => below.entry(parent).or_default().push(Value::from([
                ("subresource", Value::from(sub)),
                ("responseKind", response_kind(Some(entry))),
                ("verbs", verbs),
            ])),
        }
    }
    let whole = order.into_iter().filter_map(|name| {
        let mut resource = resources.remove(name)?;
        if let Some(subresources) = below.remove(name) {
            resource.insert("subresources", Value::Array(subresources));
        }
        Some(Value::Object(resource))
    });
    Ok(Value::from([("resources", Value::Array(whole.collect()))]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use http::header::CONTENT_TYPE;

    #[test]
    fn documents_are_known_by_their_type() {
        for (text, want) in [
            ("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", true),
            ("application/json; as=APIGroupDiscoveryList; v=v2beta1; g=apidiscovery.k8s.io", true),
            ("application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList", false),
            ("application/json", false),
            ("text/html", false),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(text))]);
            assert_eq!(kind(&headers).is_some(), want, "{text}");
        }
    }

    #[test]
    fn aggregated_documents_are_cleaned() {
        let body = br#"{"items":[{"metadata":{"name":"g"},"versions":[{"version":"v1","resources":[
            {"resource":"things","scope":"Namespaced","verbs":["get"],"evil":{},"subresources":[{"subresource":"status"}]}
            ]}]},7,{"versions":"x"}]}"#;
        let versions = versions(body).unwrap();
        let things = &versions[&GroupVersion::new("g", "v1")].at(&["resources"]).unwrap().as_array().unwrap()[0];
        assert_eq!(things.get("evil"), None);
        assert_eq!(things.str_at(&["responseKind", "kind"]), "");
        assert!(things.get("responseKind").is_some());
        assert!(self::versions(b"<html>").is_err());
    }

    #[test]
    fn subresources_stand_below_their_resource() {
        let body = br#"{"resources":[
            {"name":"things/status","namespaced":true,"kind":"Thing","verbs":["get"]},
            {"name":"things","singularName":"thing","namespaced":true,"kind":"Thing","verbs":["get","list"],"shortNames":["t"]}]}"#;
        let document = of_resource_list(body).unwrap();
        let resources = document.at(&["resources"]).unwrap().as_array().unwrap();
        assert_eq!(resources.len(), 1);
        assert_eq!(resources[0].str_at(&["resource"]), "things");
        assert_eq!(resources[0].str_at(&["scope"]), "Namespaced");
        assert_eq!(
            resources[0].at(&["subresources"]).unwrap().as_array().unwrap()[0].str_at(&["subresource"]),
            "status"
        );
    }
}
