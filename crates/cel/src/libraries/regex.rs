//! Finding what a regular expression matches.

use super::{MAX_ITEMS, Run, int, list, member, of, text};
use crate::decl::Function;
use crate::types::Type;
use crate::value::{EvalError, Res, Val};
use kubelith_schema::go_regexp;
use regex::Regex;
use std::ops::Range;

pub fn functions() -> Vec<Function> {
    use Type::{Int, String};
    vec![
        of("find", [member("string_find_string", [String, String], String)]),
        of(
            "findAll",
            [
                member("string_find_all_string", [String, String], list(String)),
                member("string_find_all_string_int", [String, String, Int], list(String)),
            ],
        ),
    ]
}

pub fn run(id: &str) -> Option<Run> {
    Some(match id {
        "string_find_string" => Run::Binary(|s, pattern| find(&compile(text(pattern)?)?, s)),
        "string_find_all_string" => Run::Binary(|s, pattern| find_all(&compile(text(pattern)?)?, s, -1)),
        "string_find_all_string_int" => Run::Many(|a| find_all(&compile(text(&a[1])?)?, &a[0], int(&a[2])?)),
        _ => return None,
    })
}

fn compile(pattern: &str) -> Result<Regex, EvalError> {
    go_regexp::compile(pattern).map_err(|e| EvalError::new(format!("Illegal regex: {e}")))
}

fn part<'a>(of: &Val<'a>, range: Range<usize>) -> Val<'a> {
    match of {
        Val::Str(s) => Val::Str(&s[range]),
        other => Val::text(&other.as_str().unwrap_or_default()[range]),
    }
}

pub fn find<'a>(regex: &Regex, s: &Val<'a>) -> Res<'a> {
    Ok(regex.find(text(s)?).map_or(Val::Str(""), |m| part(s, m.range())))
}

/// A negative number is all; none are an empty list.
pub fn find_all<'a>(regex: &Regex, s: &Val<'a>, most: i64) -> Res<'a> {
    let most = usize::try_from(most).unwrap_or(MAX_ITEMS + 1);
    let found: Vec<Val<'a>> = regex.find_iter(text(s)?).take(most).map(|m| part(s, m.range())).collect();
    if found.len() > MAX_ITEMS { Err(EvalError::size()) } else { Ok(Val::flat(found)) }
}
