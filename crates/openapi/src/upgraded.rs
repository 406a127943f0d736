//! Documents of version 2 as version 3, for servers that have nothing better. They are other servers' documents: what has
//! not the form that it should have is left out or stays as it is.

use kubelith_meta::{Map, Value};

const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// The whole document.
pub fn upgraded(document: &Value) -> Value {
    let mut out = Map::new();
    out.insert("openapi", "3.0.0");
    copy(document, &["info", "externalDocs"], &mut out);
    out.insert("paths", map_of(document.get("paths"), path_item));
    let mut components = Map::new();
    for (from, to, part) in [
        ("definitions", "schemas", schema as fn(&Value) -> Value),
        ("securityDefinitions", "securitySchemes", security_scheme),
    ] {
        if document.get(from).is_some() {
            components.insert(to, map_of(document.get(from), part));
        }
    }
    if let Some(responses) = document.get("responses") {
        let produces = texts(document, "produces");
        components.insert("responses", map_of(Some(responses), |r| response(r, &produces)));
    }
    out.insert("components", components);
    Value::Object(out)
}

fn copy(from: &Value, keys: &[&'static str], to: &mut Map) {
    for key in keys {
        if let Some(value) = from.get(key) {
            to.insert(*key, value.clone());
        }
    }
}

/// What vendors add.
fn copy_extensions(from: &Value, to: &mut Map) {
    for (key, value) in from.as_object().into_iter().flat_map(Map::iter).filter(|(key, _)| key.starts_with("x-")) {
        to.insert(key, value.clone());
    }
}

fn map_of(members: Option<&Value>, part: impl Fn(&Value) -> Value) -> Value {
    let members = members.and_then(Value::as_object).into_iter().flat_map(Map::iter);
    Value::Object(members.map(|(name, value)| (name, part(value))).collect())
}

fn texts<'a>(value: &'a Value, key: &str) -> Vec<&'a str> {
    value.get(key).and_then(Value::as_array).unwrap_or(&[]).iter().filter_map(Value::as_str).collect()
}

fn path_item(item: &Value) -> Value {
    let mut out = Map::new();
    copy(item, &["$ref"], &mut out);
    for method in METHODS {
        if let Some(given) = item.get(method) {
            out.insert(method, operation(given));
        }
    }
    put_parameters(item, &mut out);
    copy_extensions(item, &mut out);
    Value::Object(out)
}

fn put_parameters(from: &Value, to: &mut Map) {
    let parameters = from.get("parameters").and_then(Value::as_array).unwrap_or(&[]);
    let kept: Vec<Value> = parameters.iter().filter(|p| !is_body(p)).map(parameter).collect();
    if !kept.is_empty() {
        to.insert("parameters", kept);
    }
}

fn is_body(parameter: &Value) -> bool {
    parameter.str_at(&["name"]) == "body" && parameter.get("schema").is_some()
}

fn operation(operation: &Value) -> Value {
    let mut out = Map::new();
    copy(operation, &["description", "externalDocs", "tags", "summary", "deprecated", "operationId"], &mut out);
    put_parameters(operation, &mut out);
    let parameters = operation.get("parameters").and_then(Value::as_array).unwrap_or(&[]);
    if let Some(body) = parameters.iter().find(|p| is_body(p)).and_then(|p| p.get("schema")) {
        let content = content(body, &texts(operation, "consumes"));
        out.insert("requestBody", Value::from([("content", content)]));
    }
    let produces = texts(operation, "produces");
    out.insert("responses", map_of(operation.get("responses"), |r| response(r, &produces)));
    copy_extensions(operation, &mut out);
    Value::Object(out)
}

/// The same schema for every media type.
fn content(body: &Value, media_types: &[&str]) -> Value {
    let schema = schema(body);
    let of = |media_type: &&str| (kubelith_meta::Str::from(*media_type), Value::from([("schema", schema.clone())]));
    Value::Object(media_types.iter().map(of).collect())
}

fn response(response: &Value, produces: &[&str]) -> Value {
    let mut out = Map::new();
    put_reference(response, "#/responses/", "#/components/responses/", &mut out);
    copy(response, &["description"], &mut out);
    if let Some(body) = response.get("schema") {
        out.insert("content", content(body, produces));
    }
    copy_extensions(response, &mut out);
    Value::Object(out)
}

fn put_reference(from: &Value, old: &str, new: &str, to: &mut Map) {
    if let Some(target) = from.get("$ref").and_then(Value::as_str) {
        to.insert("$ref", target.replacen(old, new, 1));
    }
}

fn parameter(parameter: &Value) -> Value {
    let mut out = Map::new();
    put_reference(parameter, "#/parameters/", "#/components/parameters/", &mut out);
    copy(parameter, &["name", "in", "description", "required", "allowEmptyValue"], &mut out);
    match parameter.get("schema") {
        Some(given) => drop(out.insert("schema", schema(given))),
        // Version 2 says of parameters but bodies what they are right there.
        None if parameter.get("$ref").is_none() => {
            let mut simple = Map::new();
            copy(parameter, &["type", "format", "uniqueItems"], &mut simple);
            out.insert("schema", simple);
        }
        None => {}
    }
    copy_extensions(parameter, &mut out);
    Value::Object(out)
}

fn schema(given: &Value) -> Value {
    let Some(members) = given.as_object() else { return given.clone() };
    let mut out = Map::new();
    for (key, value) in members.iter() {
        let value = match key {
            "properties" => map_of(Some(value), schema),
            "items" | "additionalProperties" | "additionalItems" => match value {
                Value::Array(schemas) => Value::Array(schemas.iter().map(schema).collect()),
                one => schema(one),
            },
            "$ref" => continue,
            _ => value.clone(),
        };
        out.insert(key, value);
    }
    let Some(target) = given.get("$ref").and_then(Value::as_str) else { return Value::Object(out) };
    // A target elsewhere is none that the document has.
    let name = target.split_once("#/definitions/").map_or(target, |(_, name)| name);
    let reference = Value::from([("$ref", format!("#/components/schemas/{name}"))]);
    if out.is_empty() {
        return reference;
    }
    // Beside a reference nothing else counts, so that it is wrapped.
    out.insert("allOf", Value::Array(vec![reference]));
    Value::Object(out)
}

fn security_scheme(scheme: &Value) -> Value {
    let mut out = Map::new();
    copy(scheme, &["description", "type", "name", "in"], &mut out);
    if let Some(flow) = scheme.get("flow").and_then(Value::as_str).filter(|f| !f.is_empty()) {
        let mut details = Map::new();
        copy(scheme, &["authorizationUrl", "tokenUrl", "scopes"], &mut details);
        out.insert("flows", Value::Object([(flow, Value::Object(details))].into_iter().collect()));
    }
    copy_extensions(scheme, &mut out);
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_codec::json;

    #[test]
    fn a_document_of_version_two_says_the_same_in_version_three() {
        let given = br##"{"swagger":"2.0","info":{"title":"T","version":"1"},
            "paths":{"/apis/g.io/v1/things":{
                "parameters":[{"name":"pretty","in":"query","type":"string","uniqueItems":true}],
                "post":{"operationId":"create","consumes":["application/json"],"produces":["application/json","application/yaml"],
                    "parameters":[{"name":"body","in":"body","required":true,"schema":{"$ref":"#/definitions/io.g.v1.Thing"}},
                                  {"$ref":"#/parameters/dryRun"}],
                    "responses":{"201":{"description":"Created","schema":{"$ref":"#/definitions/io.g.v1.Thing"}},
                                 "401":{"description":"Unauthorized"}},
                    "x-kubernetes-action":"post"}}},
            "definitions":{"io.g.v1.Thing":{"type":"object","properties":{
                "metadata":{"description":"m","$ref":"#/definitions/io.k8s.Meta"},
                "parts":{"type":"array","items":{"$ref":"#/definitions/io.g.v1.Part"}},
                "by":{"type":"object","additionalProperties":{"$ref":"#/definitions/io.g.v1.Part"}}},
                "x-kubernetes-group-version-kind":[{"group":"g.io","kind":"Thing","version":"v1"}]}},
            "securityDefinitions":{"BearerToken":{"type":"apiKey","in":"header","name":"authorization"}}}"##;
        let wanted = br##"{"openapi":"3.0.0","info":{"title":"T","version":"1"},
            "paths":{"/apis/g.io/v1/things":{
                "parameters":[{"name":"pretty","in":"query","schema":{"type":"string","uniqueItems":true}}],
                "post":{"operationId":"create",
                    "parameters":[{"$ref":"#/components/parameters/dryRun"}],
                    "requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/io.g.v1.Thing"}}}},
                    "responses":{"201":{"description":"Created","content":{
                            "application/json":{"schema":{"$ref":"#/components/schemas/io.g.v1.Thing"}},
                            "application/yaml":{"schema":{"$ref":"#/components/schemas/io.g.v1.Thing"}}}},
                        "401":{"description":"Unauthorized"}},
                    "x-kubernetes-action":"post"}}},
            "components":{"schemas":{"io.g.v1.Thing":{"type":"object","properties":{
                "metadata":{"description":"m","allOf":[{"$ref":"#/components/schemas/io.k8s.Meta"}]},
                "parts":{"type":"array","items":{"$ref":"#/components/schemas/io.g.v1.Part"}},
                "by":{"type":"object","additionalProperties":{"$ref":"#/components/schemas/io.g.v1.Part"}}},
                "x-kubernetes-group-version-kind":[{"group":"g.io","kind":"Thing","version":"v1"}]}},
            "securitySchemes":{"BearerToken":{"type":"apiKey","in":"header","name":"authorization"}}}}"##;
        assert_eq!(upgraded(&json::parse(given).unwrap()), json::parse(wanted).unwrap());
    }

    #[test]
    fn anything_can_be_upgraded() {
        for text in [
            "null",
            "[]",
            r#"{"paths":[],"definitions":7,"responses":{"a":1},"securityDefinitions":{"x":null}}"#,
            r#"{"paths":{"/":{"get":5,"parameters":[null,{"name":"body","schema":3}]}},"definitions":{"a":true}}"#,
            r#"{"definitions":{"a":{"$ref":7},"b":{"$ref":"elsewhere","items":[1,{"$ref":""}]}}}"#,
        ] {
            upgraded(&json::parse(text.as_bytes()).unwrap());
        }
    }
}
