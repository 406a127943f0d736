//! `kubelith cel …`: looks at expressions in CEL without a server: what is wrong with them, what they may cost and why, and
//! what they say of objects.

mod costs;
mod devices;
mod expressions;
mod files;
mod policies;

use crate::commands::Words;
use expressions::{Expression, expressions_of};
use files::Document;
use kubelith_meta::Value;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

pub const HELP: &str = "\
Looks at expressions in CEL: rules of CustomResourceDefinitions, admission policies, match conditions of
webhooks, selectors of devices. No server is needed.

Usage:
  kubelith cel check FILE...
      Compiles every expression. Shows what is wrong with it, or its type and the most it may cost.
  kubelith cel cost FILE...
      The same, and where the cost comes from: every part of an expression with its least and greatest cost.
  kubelith cel eval FILE... --object FILE [--old-object FILE] [--params FILE]
      What the expressions say of objects: custom resources for definitions, any objects for policies,
      ResourceSlices for selectors of devices.

Files hold YAML or JSON, one or several documents; - is the standard input.

Flags:
      --object FILE        Objects to look at. May be given several times.
      --old-object FILE    What an object was before: the one of the same kind, namespace and name.
      --params FILE        The parameters of a policy.
  -h, --help               Shows this help.

Examples:
  kubelith cel check crd.yaml
  kubelith cel eval policy.yaml --object deployment.yaml

Exit code:
  0  everything is fine
  1  an expression is wrong or may cost too much, or an object breaks a rule
  2  the command or a file cannot be read
";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Check,
    Cost,
    Eval,
}

#[derive(Debug, PartialEq, Eq)]
struct Command {
    action: Action,
    files: Vec<PathBuf>,
    objects: Vec<PathBuf>,
    old: Vec<PathBuf>,
    params: Option<PathBuf>,
}

/// The expressions of an object with their costs, for the console.
pub fn price(of: &Value) -> Vec<kubelith_console::Cost> {
    let priced = |expression: &Expression| kubelith_console::Cost {
        path: expression.path.clone(),
        expression: expression.text.to_string(),
        cost: costs::bounded(expression.max_cost()),
        limit: expression.limit,
        error: expression.compiled.as_ref().err().cloned(),
    };
    expressions::of_object(of).iter().map(priced).collect()
}

/// What is to be shown, and whether all is fine.
struct Report {
    text: String,
    fine: bool,
}

/// Runs the words behind `cel`.
pub fn run(words: &[String]) -> ExitCode {
    let report = match parse(words) {
        Ok(None) => Ok(Report { text: HELP.to_owned(), fine: true }),
        Ok(Some(command)) => execute(&command),
        Err(why) => Err(why),
    };
    match report {
        Ok(report) => {
            print!("{}", report.text);
            if report.fine { ExitCode::SUCCESS } else { ExitCode::from(1) }
        }
        Err(why) => {
            eprintln!("Error: {}", why.trim_end());
            ExitCode::from(2)
        }
    }
}

/// `None`: help is wanted.
fn parse(words: &[String]) -> Result<Option<Command>, String> {
    let (mut rest, mut objects, mut old, mut params): (Vec<&str>, Vec<PathBuf>, Vec<PathBuf>, Option<PathBuf>) =
        Default::default();
    let mut words = Words::new(words);
    while let Some(word) = words.next() {
        match word {
            "-h" | "--help" => return Ok(None),
            "--object" => objects.push(words.value()?.into()),
            "--old-object" => old.push(words.value()?.into()),
            "--params" => params = Some(words.value()?.into()),
            "-" => rest.push(word),
            flag if flag.starts_with('-') => return Err(format!("unknown flag: {flag}\n\n{HELP}")),
            _ => rest.push(word),
        }
    }
    let (action, files) = match rest[..] {
        [] => return Ok(None),
        ["check", ref files @ ..] => (Action::Check, files),
        ["cost", ref files @ ..] => (Action::Cost, files),
        ["eval", ref files @ ..] => (Action::Eval, files),
        _ => return Err(format!("unknown command: cel {}\n\n{HELP}", rest.join(" "))),
    };
    if files.is_empty() {
        return Err("no file is given".to_owned());
    }
    if action == Action::Eval && objects.is_empty() {
        return Err("eval needs --object".to_owned());
    }
    if action != Action::Eval && !(objects.is_empty() && old.is_empty() && params.is_none()) {
        return Err("--object, --old-object and --params are for eval".to_owned());
    }
    let files = files.iter().map(PathBuf::from).collect();
    Ok(Some(Command { action, files, objects, old, params }))
}

fn execute(command: &Command) -> Result<Report, String> {
    let mut report = Report { text: String::new(), fine: true };
    let documents = files::read_all(&command.files)?;
    let (mut count, mut wrong, mut can_run) = (0, 0, true);
    for document in &documents {
        let found = expressions_of(document)?;
        if found.is_empty() {
            continue;
        }
        let _ = writeln!(report.text, "{}", document.title());
        count += found.len();
        for expression in &found {
            can_run &= expression.compiled.is_ok();
            wrong += usize::from(!show(expression, command.action, &mut report.text));
        }
        if let Some(why) = expressions::total_exceeded(&document.value, &found) {
            wrong += 1;
            let _ = writeln!(report.text, "  {why}");
        }
    }
    if count == 0 {
        return Err("there are no expressions in these files".to_owned());
    }
    report.fine = wrong == 0;
    let _ = writeln!(report.text, "{count} expressions, {wrong} wrong");
    // What is only too expensive can be tried all the same.
    if command.action == Action::Eval && can_run {
        evaluate(command, &documents, &mut report)?;
    }
    Ok(report)
}

/// Shows an expression; false if it is wrong.
fn show(expression: &Expression, action: Action, out: &mut String) -> bool {
    let path = &expression.path;
    let compiled = match &expression.compiled {
        Ok(compiled) => compiled,
        Err(why) => {
            let _ = writeln!(out, "  {path}: wrong\n{}", indented(why, 6));
            return false;
        }
    };
    if action == Action::Eval && !expression.is_too_expensive() {
        return true;
    }
    let cost = expression.max_cost();
    let limit = match expression.limit {
        Some(limit) => format!("{} of {limit}", costs::number(cost)),
        None => costs::number(cost),
    };
    let times = match expression.evaluations {
        1 => String::new(),
        n => format!(", evaluated up to {n} times"),
    };
    let verdict = if expression.is_too_expensive() { "too expensive" } else { "ok" };
    let _ = writeln!(out, "  {path}: {verdict}");
    let _ = writeln!(out, "{}", indented(expression.text.trim(), 6));
    let _ = writeln!(out, "      {}, estimated cost {limit}{times}", compiled.checked.result_type());
    if action == Action::Cost {
        costs::show(compiled, out);
    }
    !expression.is_too_expensive()
}

fn indented(text: &str, by: usize) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("{:by$}{line}", "")).collect();
    lines.join("\n")
}

fn evaluate(command: &Command, documents: &[Document], report: &mut Report) -> Result<(), String> {
    let (objects, old) = (files::read_all(&command.objects)?, files::read_all(&command.old)?);
    let params = match &command.params {
        Some(file) => files::read_all(std::slice::from_ref(file))?.into_iter().next().map(|d| d.value),
        None => None,
    };
    let (mut looked_at, mut broken) = (0, 0);
    for object in &objects {
        let before = old.iter().map(|old| &old.value).find(|old| files::is_same(old, &object.value));
        for document in documents {
            let found = outcomes(&document.value, &object.value, before, params.as_ref())?;
            let Some(found) = found else { continue };
            looked_at += 1;
            let is_broken = found.iter().any(|line| !line.fine);
            broken += usize::from(is_broken);
            let verdict = if is_broken { "broken" } else { "ok" };
            let _ = writeln!(report.text, "{} by {}: {verdict}", object.title(), document.name());
            for line in found {
                let _ = writeln!(report.text, "{}", indented(&line.text, 4));
            }
        }
    }
    if looked_at == 0 {
        return Err("none of the objects is one that the expressions are about".to_owned());
    }
    let _ = writeln!(report.text, "{looked_at} looked at, {broken} broken");
    report.fine &= broken == 0;
    Ok(())
}

/// One thing that is said of an object.
struct Line {
    text: String,
    fine: bool,
}

/// `None`: the expressions are not about such an object.
fn outcomes(
    of: &Value,
    object: &Value,
    old: Option<&Value>,
    params: Option<&Value>,
) -> Result<Option<Vec<Line>>, String> {
    match of.str_at(&["kind"]) {
        "CustomResourceDefinition" => {
            if !kubelith_extensions::inspect::is_instance(of, object) {
                return Ok(None);
            }
            let (errors, warnings) = kubelith_extensions::inspect::check(of, object, old);
            let errors = errors.iter().map(|e| Line { text: e.to_string(), fine: false });
            Ok(Some(errors.chain(warnings.into_iter().map(|text| Line { text, fine: true })).collect()))
        }
        "DeviceClass" | "ResourceClaim" | "ResourceClaimTemplate" => Ok(devices::outcomes(of, object)),
        _ => policies::outcomes(of, object, old, params).map(Some),
    }
}

#[cfg(test)]
mod tests;
