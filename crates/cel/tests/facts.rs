//! What the reference makes of thousands of expressions before they run: issues, types, estimates, cardinalities.
//! The facts are in `tests/cel` of the repository, or in the folder that `CEL_FACTS` names.

use kubelith_cel::admission::{self, Sees};
use kubelith_cel::decl::Functions;
use kubelith_cel::declared::{Declared, Root};
use kubelith_cel::env::BASE;
use kubelith_cel::libraries::{AUTHORIZER, Library};
use kubelith_cel::{Env, Type, estimate};
use kubelith_meta::Value;
use kubelith_schema::structural::Structural;
use serde_json::Value as Json;
use std::path::PathBuf;

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

fn differences(envs: &Envs, fact: &Json) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: &str, wanted: String, got: String| {
        if wanted != got {
            found.push(format!("{what}\n  wanted {wanted}\n  got    {got}"));
        }
    };
    let (env, declared) = envs.of(fact);
    if let (Some(wanted), Some(declared)) = (fact["cardinality"].as_u64(), &declared) {
        compare("cardinality", wanted.to_string(), declared.cardinality().to_string());
    }
    let text = fact["expr"].as_str().unwrap();
    let compiled = env.compile(text);
    match (fact["compileError"].as_str(), compiled) {
        (Some(wanted), Err(issues)) => compare("issues", wanted.to_owned(), issues.to_string()),
        (Some(wanted), Ok(_)) => compare("issues", wanted.to_owned(), "compiled".to_owned()),
        (None, Err(issues)) => compare("issues", "none".to_owned(), issues.to_string()),
        (None, Ok(checked)) => {
            if let Some(wanted) = fact["type"].as_str() {
                compare("type", wanted.to_owned(), checked.result_type().to_string());
            }
            if let Some(wanted) = fact["estimate"].as_object() {
                let cost = estimate::cost(&checked, declared.as_ref());
                compare(
                    "estimate",
                    format!("{}..{}", wanted["min"], wanted["max"]),
                    format!("{}..{}", cost.min, cost.max),
                );
            }
        }
    }
    found
}

#[test]
fn compiled_as_the_reference_compiles() {
    let default = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/cel");
    let folder = std::env::var_os("CEL_FACTS").map_or(default, PathBuf::from);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let envs = Envs::new();
    let mut files: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    // Texts with mistakes of all kinds, made by chance.
    files.push(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes.jsonl"));
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
