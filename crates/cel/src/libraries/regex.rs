//! Finding what a regular expression matches.

use super::{MAX_ITEMS, Run, int, list, member, of, text};
use crate::decl::Function;
use crate::types::Type;
use crate::value::{EvalError, Res, Val};
use kubelith_schema::go_regexp::{self, Matcher};
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
        "string_find_string" => Run::Binary(|s, pattern| find(&Finder::compile(text(pattern)?)?, s)),
        "string_find_all_string" => Run::Binary(|s, pattern| find_all(&Finder::compile(text(pattern)?)?, s, -1)),
        "string_find_all_string_int" => Run::Many(|a| find_all(&Finder::compile(text(&a[1])?)?, &a[0], int(&a[2])?)),
        _ => return None,
    })
}

/// A pattern that tells where it matches.
#[derive(Debug)]
pub enum Finder {
    Regex(Regex),
    /// It is too large for that: all that can be told is that it does not match.
    Large(Matcher),
}

impl Finder {
    /// The error is Go's.
    pub fn new(pattern: &str) -> Result<Finder, String> {
        match go_regexp::compile(pattern) {
            Ok(regex) => Ok(Finder::Regex(regex)),
            Err(_) => Matcher::new(pattern).map(Finder::Large),
        }
    }

    fn compile(pattern: &str) -> Result<Finder, EvalError> {
        Finder::new(pattern).map_err(|e| EvalError::new(format!("Illegal regex: {e}")))
    }

    fn find(&self, text: &str, most: usize) -> Result<Vec<Range<usize>>, EvalError> {
        match self {
            Finder::Regex(regex) => Ok(regex.find_iter(text).take(most).map(|found| found.range()).collect()),
            Finder::Large(matcher) => match matcher.is_match(text) {
                Ok(false) => Ok(Vec::new()),
                Ok(true) => Err(EvalError::fixed("expression too large to be found")),
                Err(why) => Err(EvalError::new(why)),
            },
        }
    }
}

fn part<'a>(of: &Val<'a>, range: Range<usize>) -> Val<'a> {
    match of {
        Val::Str(s) => Val::Str(&s[range]),
        other => Val::text(&other.as_str().unwrap_or_default()[range]),
    }
}

pub fn find<'a>(finder: &Finder, s: &Val<'a>) -> Res<'a> {
    let found = finder.find(text(s)?, 1)?.pop();
    Ok(found.map_or(Val::Str(""), |range| part(s, range)))
}

/// A negative number is all; none are an empty list.
pub fn find_all<'a>(finder: &Finder, s: &Val<'a>, most: i64) -> Res<'a> {
    let most = usize::try_from(most).unwrap_or(MAX_ITEMS + 1);
    let found = finder.find(text(s)?, most)?;
    if found.len() > MAX_ITEMS {
        return Err(EvalError::size());
    }
    Ok(Val::flat(found.into_iter().map(|range| part(s, range))))
}
