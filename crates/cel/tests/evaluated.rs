//! What the reference makes of thousands of expressions when they are planned and run: errors, values, costs.
//! The facts are in `tests/cel` of the repository, or in the folder that `CEL_FACTS` names.

use base64::Engine;
use kubelith_cel::admission::{self, Sees};
use kubelith_cel::decl::Functions;
use kubelith_cel::declared::{Declared, Root};
use kubelith_cel::env::BASE;
use kubelith_cel::libraries::{AUTHORIZER, Library};
use kubelith_cel::value::{
    Authorizer, AuthorizerHandle, AuthzRequest, Decision, DecisionVal, List, Map, Opaque, Res, Timestamp,
};
use kubelith_cel::{Env, Program, Type, Val};
use kubelith_meta::Value;
use kubelith_meta::text::float_v;
use kubelith_meta::user::User;
use kubelith_schema::structural::Structural;
use serde_json::{Value as Json, json};
use std::path::PathBuf;
use std::sync::Arc;

fn convert(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(b) => (*b).into(),
        Json::Number(n) => n.as_i64().map_or_else(|| n.as_f64().unwrap().into(), Value::from),
        Json::String(s) => s.as_str().into(),
        Json::Array(a) => Value::Array(a.iter().map(convert).collect()),
        Json::Object(o) => {
            Value::Object(o.iter().map(|(k, v)| (kubelith_meta::Str::from(k.as_str()), convert(v))).collect())
        }
    }
}

/// A type as the facts write it.
fn parse_type(text: &str) -> Type {
    if let Some((name, rest)) = text.split_once('(') {
        let inside = rest.strip_suffix(')').unwrap();
        return match name {
            "list" => Type::list(parse_type(inside)),
            "optional" => Type::optional(parse_type(inside)),
            "map" => {
                let (key, value) = inside.split_once(", ").unwrap();
                Type::map(parse_type(key), parse_type(value))
            }
            other => panic!("type {other}"),
        };
    }
    match text {
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "bool" => Type::Bool,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "null" => Type::Null,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "dyn" => Type::Dyn,
        "authorizer" => Type::Named(AUTHORIZER),
        other => panic!("type {other}"),
    }
}

struct Envs {
    base: Env,
    policy: Env,
    mutation: Env,
}

impl Envs {
    fn new() -> Envs {
        let base = Env::base();
        let policy = admission::env(&base, Sees { params: true, authorizer: true });
        let libraries = BASE.iter().chain(&[Library::JsonPatch]);
        let functions = Functions::new(libraries.map(|library| library.functions()));
        let mutation = policy.clone().functions_of(functions).mutation();
        Envs { base, policy, mutation }
    }

    /// The environment of a fact, and the declaration that sizes come from.
    fn of(&self, fact: &Json) -> (Env, Option<Declared>) {
        match fact["mode"].as_str() {
            Some("policy") => (self.policy.clone(), None),
            Some("mutation") => (self.mutation.clone(), None),
            Some("schema") => {
                let schema = Structural::parse(&convert(&fact["schema"]));
                let root = if fact["root"] == true { Root::Resource } else { Root::Value };
                let Some(declared) = Declared::of_schema(&schema, root, "selfType0") else {
                    return (self.base.clone(), None);
                };
                let env = self.base.clone().types(vec![declared.clone()]).declare("self", declared.clone());
                let env = if fact["optionalOldSelf"] == true {
                    env.declare_optional("oldSelf", declared.clone())
                } else {
                    env.declare("oldSelf", declared.clone())
                };
                (env, Some(declared))
            }
            _ => {
                let mut env = self.base.clone();
                for (name, variable) in fact["vars"].as_object().into_iter().flatten() {
                    env = env.variable(name, parse_type(variable["type"].as_str().unwrap()));
                }
                (env, None)
            }
        }
    }
}

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

fn authorizer() -> Val<'static> {
    let user = User::named("alice").with_groups(&["devs"]);
    Val::opaque(Opaque::Authorizer(AuthorizerHandle { authorizer: Arc::new(Stub), user: Arc::new(user) }))
}

/// A value as the facts write it.
fn read(json: &Json) -> Val<'static> {
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
fn write(val: &Val<'_>) -> Json {
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

struct Variables<'a>(Vec<Option<Res<'a>>>);

impl<'a> kubelith_cel::Activation<'a> for Variables<'a> {
    fn variable(&self, slot: usize) -> Option<Res<'a>> {
        self.0.get(slot)?.clone()
    }
}

fn differences(envs: &Envs, fact: &Json) -> Vec<String> {
    let mut found = Vec::new();
    if fact["compileError"].is_string() {
        return found;
    }
    let (env, declared) = envs.of(fact);
    let Ok(checked) = env.compile(fact["expr"].as_str().unwrap()) else { return vec!["does not compile".into()] };
    let program = match (Program::new(&env, &checked), fact["programError"].as_str()) {
        (Ok(program), None) => program,
        (Err(got), Some(wanted)) if got == wanted => return found,
        (Err(got), wanted) => return vec![format!("program\n  wanted {wanted:?}\n  got    {got}")],
        (Ok(_), Some(wanted)) => return vec![format!("program\n  wanted {wanted}\n  got    planned")],
    };
    let json: Vec<(String, Value)> = match fact["mode"].as_str() {
        Some("schema") => {
            ["self", "oldSelf"].iter().filter_map(|n| Some((n.to_string(), convert(fact.get(*n)?)))).collect()
        }
        Some(_) => {
            let vars = fact["vars"].as_object().into_iter().flatten();
            vars.map(|(name, value)| (name.clone(), convert(value))).collect()
        }
        None => Vec::new(),
    };
    if fact["mode"] == "schema" && fact.get("self").is_none() {
        return found;
    }
    let variable = |v: &kubelith_cel::env::Variable| -> Option<Res<'_>> {
        if v.name == "authorizer" {
            return Some(Ok(authorizer()));
        }
        let value = json.iter().find(|(name, _)| *name == v.name.as_str()).map(|(_, value)| value);
        match fact["mode"].as_str() {
            None => Some(Ok(read(&fact["vars"][v.name.as_str()]["value"]))),
            Some("schema") => {
                let is_optional = v.name == "oldSelf" && fact["optionalOldSelf"] == true;
                match (value, is_optional) {
                    (Some(value), true) => Some(Val::typed(value, declared.as_ref()?).map(Val::some)),
                    (None, true) => Some(Ok(Val::Optional(None))),
                    (Some(value), false) => Some(Val::typed(value, declared.as_ref()?)),
                    (None, false) => None,
                }
            }
            Some(_) => match value {
                Some(value) => Some(Ok(Val::json(value))),
                None if v.name == "authorizer.requestResource" => None,
                None => Some(Ok(Val::Null)),
            },
        }
    };
    let variables = Variables(env.variables().iter().map(variable).collect());
    let (result, cost) = program.eval(&variables);
    let mut compare = |what: &str, wanted: String, got: String| {
        if wanted != got {
            found.push(format!("{what}\n  wanted {wanted}\n  got    {got}"));
        }
    };
    match (&result, fact["error"].as_str()) {
        (Err(got), Some(wanted)) => compare("error", wanted.into(), got.to_string()),
        (Ok(val), Some(wanted)) => compare("error", wanted.into(), write(val).to_string()),
        (Err(got), None) => compare("result", fact["result"].to_string(), format!("error: {got}")),
        (Ok(val), None) if fact.get("result").is_some() => {
            let (mut wanted, mut got) = (fact["result"].clone(), write(val));
            if fact["unordered"] == true {
                for list in [&mut wanted, &mut got].into_iter().filter_map(|v| v.pointer_mut("/list")) {
                    if let Some(items) = list.as_array_mut() {
                        items.sort_by_key(Json::to_string);
                    }
                }
            }
            compare("result", wanted.to_string(), got.to_string());
        }
        _ => {}
    }
    if let Some(wanted) = fact["cost"].as_u64() {
        compare("cost", wanted.to_string(), cost.to_string());
    }
    found
}
#[test]
fn evaluated_as_the_reference_evaluates() {
    let default = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/cel");
    let folder = std::env::var_os("CEL_FACTS").map_or(default, PathBuf::from);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let envs = Envs::new();
    let mut files: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    files.sort();
    let (mut right, mut wrong) = (0, 0);
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "jsonl")) {
        let mut bad = 0;
        for line in std::fs::read_to_string(file).unwrap().lines() {
            // Some results nest deeper than JSON may here; they are not looked at.
            let cut = line.find(",\"result\":").zip(line.rfind(",\"estimate\":")).filter(|(a, b)| a < b);
            let fact: Json = match (serde_json::from_str(line), cut) {
                (Ok(fact), _) => fact,
                (Err(_), Some((a, b))) => serde_json::from_str(&[&line[..a], &line[b..]].concat()).unwrap(),
                (Err(why), None) => panic!("{why}"),
            };
            let found = differences(&envs, &fact);
            if found.is_empty() {
                right += 1;
                continue;
            }
            wrong += 1;
            bad += 1;
            if bad <= 200 {
                let expr: String = fact["expr"].as_str().unwrap().chars().take(200).collect();
                eprintln!("{} {expr:?}", fact["id"].as_str().unwrap());
                for difference in found {
                    let shown: String = difference.chars().take(1200).collect();
                    eprintln!("  {shown}");
                }
            }
        }
        if bad > 0 {
            eprintln!("{}: {bad} wrong", file.file_name().unwrap().to_string_lossy());
        }
    }
    eprintln!("{right} passed, {wrong} failed");
    assert_eq!(wrong, 0);
}
