//! Values as the facts write them.

use base64::Engine;
use kubelith_cel::Val;
use kubelith_cel::value::{
    Authorizer, AuthorizerHandle, AuthzRequest, Decision, DecisionVal, List, Map, Opaque, Timestamp,
};
use kubelith_meta::text::float_v;
use kubelith_meta::user::User;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// Allows `get`, fails at `fail`, denies the rest, as the reference's did when the facts were made.
#[derive(Debug)]
struct Stub;

impl Authorizer for Stub {
    fn authorize(&self, user: &User, request: AuthzRequest<'_>) -> DecisionVal {
        let (verb, what) = match request {
            AuthzRequest::Path { path, verb } => (verb, format!("////{path}")),
            AuthzRequest::Resource { check, verb } => {
                let parts = [&*check.group, &check.resource, &check.subresource, &check.namespace, &check.name];
                (verb, parts.join("/"))
            }
        };
        match verb {
            "get" => DecisionVal {
                decision: Decision::Allow,
                reason: format!("get allowed for {} on {what}", user.name),
                error: None,
            },
            "fail" => DecisionVal {
                decision: Decision::NoOpinion,
                reason: String::new(),
                error: Some("authorization failed".into()),
            },
            _ => DecisionVal { decision: Decision::Deny, reason: "denied".into(), error: None },
        }
    }
}

pub fn authorizer() -> Val<'static> {
    let user = User::named("alice").with_groups(&["devs"]);
    Val::opaque(Opaque::Authorizer(AuthorizerHandle { authorizer: Arc::new(Stub), user: Arc::new(user) }))
}

/// A value as the facts write it.
pub fn read(json: &Json) -> Val<'static> {
    match json {
        Json::Null => Val::Null,
        Json::Bool(b) => Val::Bool(*b),
        Json::String(s) => Val::text(s.as_str()),
        Json::Object(o) => {
            let (kind, v) = o.iter().next().unwrap();
            match kind.as_str() {
                "int" => Val::Int(v.as_i64().unwrap()),
                "uint" => Val::Uint(v.as_u64().unwrap()),
                "double" => Val::Double(match v.as_str().unwrap() {
                    "+Inf" => f64::INFINITY,
                    "-Inf" => f64::NEG_INFINITY,
                    text => text.parse().unwrap(),
                }),
                "bytes" => {
                    let bytes = base64::engine::general_purpose::STANDARD.decode(v.as_str().unwrap()).unwrap();
                    Val::Blob(bytes.into())
                }
                "duration" => Val::Duration(v.as_i64().unwrap()),
                "timestamp" => Val::Timestamp(Timestamp::parse(v.as_str().unwrap()).unwrap()),
                "list" => Val::List(Arc::new(List::new(v.as_array().unwrap().iter().map(read).collect()).unwrap())),
                "map" => {
                    let mut map = Map::with_capacity(0);
                    for entry in v.as_array().unwrap() {
                        map.insert(read(&entry[0]), read(&entry[1])).unwrap();
                    }
                    Val::Map(Arc::new(map))
                }
                "optional" if v == "none" => Val::Optional(None),
                "optional" => Val::some(read(&v["of"])),
                "authorizer" => authorizer(),
                other => panic!("value {other}"),
            }
        }
        other => panic!("value {other}"),
    }
}

/// A result as the facts write it.
pub fn write(val: &Val<'_>) -> Json {
    match val {
        Val::Null => Json::Null,
        Val::Bool(b) => json!(b),
        Val::Int(i) => json!({"int": i}),
        Val::Uint(u) => json!({"uint": u}),
        Val::Double(d) => json!({"double": float_v(*d)}),
        Val::Duration(d) => json!({"duration": d}),
        Val::Timestamp(t) => json!({"timestamp": Timestamp { offset: 0, ..*t }.rfc3339()}),
        Val::Type(name) => json!({"type": &**name}),
        Val::Optional(None) => json!({"optional": "none"}),
        Val::Optional(Some(of)) => json!({"optional": {"of": write(of)}}),
        Val::Opaque(opaque) => match &**opaque {
            Opaque::Quantity { amount, .. } => json!({"quantity": amount.to_string()}),
            Opaque::Ip(_) => json!({"ip": opaque.to_string()}),
            Opaque::Cidr(_) => json!({"cidr": opaque.to_string()}),
            Opaque::Url(_) => json!({"url": opaque.to_string()}),
            Opaque::Semver(_) => json!({"semver": opaque.to_string()}),
            Opaque::Format(_) => json!({"format": opaque.to_string()}),
            other => json!({"opaque": other.type_name()}),
        },
        Val::Patch(patch) => {
            let mut fields = serde_json::Map::new();
            fields.insert("op".into(), json!(&*patch.op));
            fields.insert("path".into(), json!(&*patch.path));
            fields.insert("from".into(), json!(&*patch.from));
            if let Some(value) = &patch.value {
                fields.insert("value".into(), write(value));
            }
            json!({"jsonpatch": fields})
        }
        Val::Object(object) => {
            let value = object.to_json().unwrap();
            let value: Json = serde_json::from_str(&kubelith_meta::text::json(&value)).unwrap();
            let problem = object.misplaced_types().join("\n");
            json!({"applyobject": {"type": &*object.type_name, "typeNamesError": problem, "value": value}})
        }
        Val::Preserved(value) => write(&Val::json(value)),
        _ => {
            if let Some(text) = val.as_str() {
                return json!(text);
            }
            if let Some(bytes) = val.as_bytes() {
                return json!({"bytes": base64::engine::general_purpose::STANDARD.encode(bytes)});
            }
            if let Some(list) = val.as_list() {
                let items: Vec<Json> = list.iter().map(|v| write(&v.unwrap())).collect();
                return json!({"list": items});
            }
            let entries = val.as_map().unwrap().entries().into_iter();
            let mut entries: Vec<(String, Json)> = entries
                .map(|(k, v)| {
                    let key = write(&k);
                    // The facts show what is in an optional here.
                    let value = match v.unwrap() {
                        Val::Optional(Some(of)) => (*of).clone(),
                        other => other,
                    };
                    (key.to_string(), json!([key, write(&value)]))
                })
                .collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            json!({"map": entries.into_iter().map(|e| e.1).collect::<Vec<_>>()})
        }
    }
}
