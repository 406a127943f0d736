//! Replays facts: what the reference makes of expressions (issues, types, estimates, values, costs). The format is told in
//! `tests/cel` of the repository; the test of this crate and `cargo xtask cel-facts` run the same code.

mod envs;
mod values;

use envs::{Envs, convert};
use kubelith_cel::declared::Declared;
use kubelith_cel::value::Res;
use kubelith_cel::{Checked, Env, Program, Val, estimate};
use kubelith_meta::Value;
use serde_json::Value as Json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// How much of a difference is shown, in characters.
const SHOWN: usize = 1200;
/// Facts nest deeply, and are run in debug builds.
const STACK: usize = 256 << 20;

/// How many facts hold, and how many do not.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    pub passed: usize,
    pub failed: usize,
}

/// The files of facts in a folder, in order.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let told = |e: std::io::Error| format!("{}: {e}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(told)?;
    let mut files = entries.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>().map_err(told)?;
    files.retain(|file| file.extension().is_some_and(|e| e == "jsonl"));
    files.sort();
    if files.is_empty() { Err(format!("{}: no facts (*.jsonl)", folder.display())) } else { Ok(files) }
}

/// Replays all facts, and tells each difference.
pub fn replay(files: &[PathBuf]) -> Result<Tally, String> {
    let run = || {
        let envs = Envs::new();
        let mut tally = Tally::default();
        for file in files {
            replay_file(&envs, file, &mut tally)?;
        }
        Ok(tally)
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run);
        thread.map_err(|e| e.to_string())?.join().map_err(|_| "the replay panicked".to_owned())?
    })
}

fn replay_file(envs: &Envs, file: &Path, tally: &mut Tally) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let before = tally.failed;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let fact = Fact::parse(line).map_err(|why| format!("{}:{}: {why}", file.display(), number + 1))?;
        let found =
            catch_unwind(AssertUnwindSafe(|| differences(envs, &fact))).unwrap_or_else(|_| vec!["panicked".to_owned()]);
        if found.is_empty() {
            tally.passed += 1;
            continue;
        }
        tally.failed += 1;
        let expr: String = fact.json["expr"].as_str().unwrap_or_default().chars().take(200).collect();
        println!("{} {expr:?}", fact.json["id"].as_str().unwrap_or("?"));
        for difference in found {
            println!("  {}", difference.chars().take(SHOWN).collect::<String>());
        }
    }
    if tally.failed > before {
        println!("{}: {} failed", file.display(), tally.failed - before);
    }
    Ok(())
}

struct Fact<'a> {
    json: Json,
    /// A result that is nested deeper than JSON is read here, as it is written.
    deep_result: Option<&'a str>,
}

impl<'a> Fact<'a> {
    fn parse(line: &'a str) -> Result<Fact<'a>, String> {
        let failed = match serde_json::from_str(line) {
            Ok(json) => return Ok(Fact { json, deep_result: None }),
            Err(e) => e.to_string(),
        };
        const RESULT: &str = ",\"result\":";
        let cut = line.find(RESULT).zip(line.rfind(",\"estimate\":")).filter(|(a, b)| a < b);
        let (start, end) = cut.ok_or(failed)?;
        let json = serde_json::from_str(&[&line[..start], &line[end..]].concat()).map_err(|e| e.to_string())?;
        Ok(Fact { json, deep_result: Some(&line[start + RESULT.len()..end]) })
    }
}

/// What differs, one text for each.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn compare(&mut self, what: &str, wanted: impl Into<String>, got: impl Into<String>) {
        let (wanted, got) = (wanted.into(), got.into());
        if wanted != got {
            self.0.push(format!("{what}\n    wanted {wanted}\n    got    {got}"));
        }
    }
}

fn differences(envs: &Envs, fact: &Fact<'_>) -> Vec<String> {
    let mut found = Differences::default();
    let (env, declared) = envs.of(&fact.json);
    if let (Some(wanted), Some(declared)) = (fact.json["cardinality"].as_u64(), &declared) {
        found.compare("cardinality", wanted.to_string(), declared.cardinality().to_string());
    }
    let compiled = env.compile(fact.json["expr"].as_str().unwrap_or_default());
    match (fact.json["compileError"].as_str(), compiled) {
        (Some(wanted), Err(issues)) => found.compare("issues", wanted, issues.to_string()),
        (Some(wanted), Ok(_)) => found.compare("issues", wanted, "compiled"),
        (None, Err(issues)) => found.compare("issues", "none", issues.to_string()),
        (None, Ok(checked)) => {
            compiled_differences(&fact.json, &checked, declared.as_ref(), &mut found);
            evaluated_differences(fact, &env, &checked, declared.as_ref(), &mut found);
        }
    }
    found.0
}

fn compiled_differences(fact: &Json, checked: &Checked, declared: Option<&Declared>, found: &mut Differences) {
    if let Some(wanted) = fact["type"].as_str() {
        found.compare("type", wanted, checked.result_type().to_string());
    }
    if let Some(wanted) = fact["estimate"].as_object() {
        let cost = estimate::cost(checked, declared);
        let wanted = format!("{}..{}", wanted["min"], wanted["max"]);
        found.compare("estimate", wanted, format!("{}..{}", cost.min, cost.max));
    }
}

fn evaluated_differences(
    fact: &Fact<'_>,
    env: &Env,
    checked: &Checked,
    declared: Option<&Declared>,
    found: &mut Differences,
) {
    let json = &fact.json;
    let program = match (Program::new(env, checked), json["programError"].as_str()) {
        (Ok(program), None) => program,
        (Err(got), wanted) => return found.compare("program", wanted.unwrap_or("planned"), got),
        (Ok(_), Some(wanted)) => return found.compare("program", wanted, "planned"),
    };
    // Without an object a schema's expression is only compiled, and mistakes alone are facts without more.
    let is_run = json["result"] != Json::Null || json.get("result").is_some() || json["error"].is_string();
    if !is_run && fact.deep_result.is_none() && json["cost"].is_null() {
        return;
    }
    let inputs = inputs(json);
    let variable = |v: &kubelith_cel::env::Variable| value_of(json, v.name.as_str(), &inputs, declared);
    let variables: Vec<Option<Res<'_>>> = env.variables().iter().map(variable).collect();
    let (result, cost) = program.eval(&variables);
    match (&result, json["error"].as_str()) {
        (Err(got), Some(wanted)) => found.compare("error", wanted, got.to_string()),
        (Ok(val), Some(wanted)) => found.compare("error", wanted, values::write(val).to_string()),
        (Err(got), None) => found.compare("result", json["result"].to_string(), format!("error: {got}")),
        (Ok(val), None) => compare_result(fact, val, found),
    }
    if let Some(wanted) = json["cost"].as_u64() {
        found.compare("cost", wanted.to_string(), cost.to_string());
    }
}

fn compare_result(fact: &Fact<'_>, val: &Val<'_>, found: &mut Differences) {
    let mut got = values::write(val);
    if let Some(wanted) = fact.deep_result {
        return found.compare("result", wanted, got.to_string());
    }
    let mut wanted = fact.json["result"].clone();
    if fact.json["unordered"] == true {
        for list in [&mut wanted, &mut got].into_iter().filter_map(|v| v.pointer_mut("/list")) {
            if let Some(items) = list.as_array_mut() {
                items.sort_by_key(Json::to_string);
            }
        }
    }
    found.compare("result", wanted.to_string(), got.to_string());
}

/// The variables that are plain JSON.
fn inputs(fact: &Json) -> Vec<(String, Value)> {
    match fact["mode"].as_str() {
        Some("schema") => {
            ["self", "oldSelf"].iter().filter_map(|n| Some(((*n).to_owned(), convert(fact.get(*n)?)))).collect()
        }
        Some(_) => {
            let vars = fact["vars"].as_object().into_iter().flatten();
            vars.map(|(name, value)| (name.clone(), convert(value))).collect()
        }
        None => Vec::new(),
    }
}

fn value_of<'a>(
    fact: &Json,
    name: &str,
    inputs: &'a [(String, Value)],
    declared: Option<&'a Declared>,
) -> Option<Res<'a>> {
    if name == "authorizer" {
        return Some(Ok(values::authorizer()));
    }
    let value = inputs.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    match fact["mode"].as_str() {
        None => Some(Ok(values::read(&fact["vars"][name]["value"]))),
        Some("schema") => {
            let is_optional = name == "oldSelf" && fact["optionalOldSelf"] == true;
            match (value, is_optional) {
                (Some(value), true) => Some(Val::typed(value, declared?).map(Val::some)),
                (None, true) => Some(Ok(Val::Optional(None))),
                (Some(value), false) => Some(Val::typed(value, declared?)),
                (None, false) => None,
            }
        }
        Some(_) => match value {
            Some(value) => Some(Ok(Val::json(value))),
            None if name == "authorizer.requestResource" => None,
            None => Some(Ok(Val::Null)),
        },
    }
}
