//! What the facts were compiled in.

use kubelith_cel::admission::{self, Sees};
use kubelith_cel::declared::{Declared, Root};
use kubelith_cel::env::Libraries;
use kubelith_cel::libraries::{AUTHORIZER, Library};
use kubelith_cel::{Env, Type};
use kubelith_meta::Value;
use kubelith_schema::structural::Structural;
use serde_json::Value as Json;

pub fn convert(json: &Json) -> Value {
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

pub struct Envs {
    base: Env,
    policy: Env,
    mutation: Env,
}

impl Envs {
    pub fn new() -> Envs {
        let base = Env::base();
        let policy = admission::env(&base, Sees { params: true, authorizer: true });
        let patching = Env::with(Libraries::ALL.iter().chain([Library::JsonPatch]));
        let mutation = policy.clone().functions_of(&patching).mutation();
        Envs { base, policy, mutation }
    }

    /// The environment of a fact, and the declaration that sizes come from.
    pub fn of(&self, fact: &Json) -> (Env, Option<Declared>) {
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
