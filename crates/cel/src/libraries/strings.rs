//! More functions of strings (cel-go's extension).

use super::{MAX_ITEMS, MAX_TEXT, Run, global, int, list, member, of, text};
use crate::decl::Function;
use crate::types::Type;
use crate::value::{EvalError, Res, Val};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    V0,
    /// With `format` and `strings.quote`.
    V2,
}

pub fn functions(version: Version) -> Vec<Function> {
    use Type::{Int, String};
    let mut all = vec![
        of("charAt", [member("string_char_at_int", [String, Int], String)]),
        of(
            "indexOf",
            [
                member("string_index_of_string", [String, String], Int),
                member("string_index_of_string_int", [String, String, Int], Int),
            ],
        ),
        of(
            "lastIndexOf",
            [
                member("string_last_index_of_string", [String, String], Int),
                member("string_last_index_of_string_int", [String, String, Int], Int),
            ],
        ),
        of("lowerAscii", [member("string_lower_ascii", [String], String)]),
        of(
            "replace",
            [
                member("string_replace_string_string", [String, String, String], String),
                member("string_replace_string_string_int", [String, String, String, Int], String),
            ],
        ),
        of(
            "split",
            [
                member("string_split_string", [String, String], list(String)),
                member("string_split_string_int", [String, String, Int], list(String)),
            ],
        ),
        of(
            "substring",
            [
                member("string_substring_int", [String, Int], String),
                member("string_substring_int_int", [String, Int, Int], String),
            ],
        ),
        of("trim", [member("string_trim", [String], String)]),
        of("upperAscii", [member("string_upper_ascii", [String], String)]),
    ];
    if version == Version::V2 {
        all.push(of("format", [member("string_format", [String, list(Type::Dyn)], String)]));
        all.push(of("strings.quote", [global("strings_quote", [String], String)]));
    }
    all.push(of(
        "join",
        [member("list_join", [list(String)], String), member("list_join_string", [list(String), String], String)],
    ));
    all
}

pub fn run(id: &str) -> Option<Run> {
    Some(match id {
        "string_char_at_int" => Run::Binary(char_at),
        "string_index_of_string" => Run::Binary(|s, part| index_of(s, part, 0)),
        "string_index_of_string_int" => Run::Many(|a| index_of(&a[0], &a[1], int(&a[2])?)),
        "string_last_index_of_string" => Run::Binary(last_index),
        "string_last_index_of_string_int" => Run::Many(|a| last_index_from(text(&a[0])?, text(&a[1])?, int(&a[2])?)),
        "string_lower_ascii" => Run::Unary(|s| Ok(Val::text(text(s)?.to_ascii_lowercase()))),
        "string_upper_ascii" => Run::Unary(|s| Ok(Val::text(text(s)?.to_ascii_uppercase()))),
        "string_replace_string_string" => Run::Many(|a| replace(text(&a[0])?, text(&a[1])?, text(&a[2])?, -1)),
        "string_replace_string_string_int" => {
            Run::Many(|a| replace(text(&a[0])?, text(&a[1])?, text(&a[2])?, int(&a[3])?))
        }
        "string_split_string" => Run::Binary(|s, by| split(s, by, -1)),
        "string_split_string_int" => Run::Many(|a| split(&a[0], &a[1], int(&a[2])?)),
        "string_substring_int" => Run::Binary(|s, start| substring(s, int(start)?, None)),
        "string_substring_int_int" => Run::Many(|a| substring(&a[0], int(&a[1])?, Some(int(&a[2])?))),
        "string_trim" => Run::Unary(trim),
        "string_format" => Run::Many(super::format_string::format),
        "strings_quote" => Run::Unary(|s| Ok(Val::text(quote(text(s)?)))),
        "list_join" => Run::Unary(|list| join(list, "")),
        "list_join_string" => Run::Binary(|list, by| join(list, text(by)?)),
        _ => return None,
    })
}

fn out_of_range<'a>(index: i64) -> Res<'a> {
    Err(EvalError::new(format!("index out of range: {index}")))
}

/// Where in bytes the character `index` begins; the end if there are exactly as many; `None` if there are fewer.
fn byte_of(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    if text.is_ascii() {
        return (index <= text.len()).then_some(index);
    }
    let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.into_iter().nth(index)
}

/// A part of a text, without a copy where that can be.
fn part<'a>(of: &Val<'a>, start: usize, end: usize) -> Val<'a> {
    match of {
        Val::Str(s) => Val::Str(&s[start..end]),
        other => Val::text(&other.as_str().unwrap_or_default()[start..end]),
    }
}

fn char_at<'a>(s: &Val<'a>, index: &Val<'a>) -> Res<'a> {
    let (string, index) = (text(s)?, int(index)?);
    match byte_of(string, index) {
        Some(at) => {
            let len = string[at..].chars().next().map_or(0, char::len_utf8);
            Ok(part(s, at, at + len))
        }
        None => out_of_range(index),
    }
}

fn chars_before(text: &str, at: usize) -> i64 {
    if text.is_ascii() { at as i64 } else { text[..at].chars().count() as i64 }
}

fn index_of<'a>(s: &Val<'a>, what: &Val<'a>, from: i64) -> Res<'a> {
    let (string, what) = (text(s)?, text(what)?);
    if what.is_empty() {
        return Ok(Val::Int(from));
    }
    if from < 0 {
        return out_of_range(from);
    }
    let Some(start) = byte_of(string, from) else { return Ok(Val::Int(-1)) };
    let found = memchr::memmem::find(&string.as_bytes()[start..], what.as_bytes());
    Ok(Val::Int(found.map_or(-1, |at| chars_before(string, start + at))))
}

fn last_index<'a>(s: &Val<'a>, what: &Val<'a>) -> Res<'a> {
    let (string, what) = (text(s)?, text(what)?);
    let length = chars_before(string, string.len());
    if what.is_empty() {
        return Ok(Val::Int(length));
    }
    if string.len() < what.len() {
        return Ok(Val::Int(-1));
    }
    last_index_from(string, what, length - 1)
}

/// The last place at or before the character `from`.
fn last_index_from<'a>(string: &str, what: &str, from: i64) -> Res<'a> {
    if what.is_empty() {
        return Ok(Val::Int(from));
    }
    if from < 0 {
        return out_of_range(from);
    }
    if from >= chars_before(string, string.len()) {
        return Ok(Val::Int(-1));
    }
    let start = byte_of(string, from).unwrap_or(string.len());
    let end = (start + what.len()).min(string.len());
    let found = memchr::memmem::rfind(&string.as_bytes()[..end], what.as_bytes());
    Ok(Val::Int(found.map_or(-1, |at| chars_before(string, at))))
}

/// Go's `strings.Replace`; a negative number of times is every time.
fn replace<'a>(string: &str, old: &str, new: &str, times: i64) -> Res<'a> {
    let times = usize::try_from(times).unwrap_or(usize::MAX);
    if old == new || times == 0 {
        return Ok(Val::text(string));
    }
    let found = match old.is_empty() {
        true => string.chars().count() + 1,
        false => memchr::memmem::find_iter(string.as_bytes(), old.as_bytes()).count(),
    };
    let times = times.min(found);
    if string.len().saturating_add(times.saturating_mul(new.len())) > MAX_TEXT {
        return Err(EvalError::size());
    }
    Ok(Val::text(string.replacen(old, new, times)))
}

/// Go's `strings.SplitN`; a negative number of parts is all.
fn split<'a>(s: &Val<'a>, by: &Val<'a>, parts: i64) -> Res<'a> {
    let (string, by) = (text(s)?, text(by)?);
    let most = usize::try_from(parts).unwrap_or(usize::MAX);
    if most == 0 {
        return Ok(Val::flat([]));
    }
    let mut items = Vec::new();
    let mut start = 0;
    if by.is_empty() {
        // Into characters; the last part is the rest.
        for (at, c) in string.char_indices() {
            if items.len() + 1 == most {
                break;
            }
            start = at + c.len_utf8();
            items.push(part(s, at, start));
        }
        if start < string.len() {
            items.push(part(s, start, string.len()));
        }
        return bounded(items);
    }
    for at in memchr::memmem::find_iter(string.as_bytes(), by.as_bytes()) {
        if items.len() + 1 >= most {
            break;
        }
        items.push(part(s, start, at));
        start = at + by.len();
    }
    items.push(part(s, start, string.len()));
    bounded(items)
}

fn bounded(items: Vec<Val<'_>>) -> Res<'_> {
    if items.len() > MAX_ITEMS { Err(EvalError::size()) } else { Ok(Val::flat(items)) }
}

fn substring<'a>(s: &Val<'a>, start: i64, end: Option<i64>) -> Res<'a> {
    let string = text(s)?;
    if let Some(end) = end.filter(|end| start > *end) {
        return Err(EvalError::new(format!("invalid substring range. start: {start}, end: {end}")));
    }
    let Some(from) = byte_of(string, start) else { return out_of_range(start) };
    let to = match end {
        None => string.len(),
        Some(end) => match byte_of(string, end) {
            Some(to) => to,
            None => return out_of_range(end),
        },
    };
    Ok(part(s, from, to))
}

fn trim<'a>(s: &Val<'a>) -> Res<'a> {
    let string = text(s)?;
    // Go's white space is that of Unicode.
    let start = string.len() - string.trim_start().len();
    let end = start + string.trim().len();
    Ok(part(s, start, end))
}

fn quote(string: &str) -> String {
    let mut out = String::with_capacity(string.len() + 2);
    out.push('"');
    for c in string.chars() {
        match c {
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

fn join<'a>(list: &Val<'a>, by: &str) -> Res<'a> {
    let list = list.as_list().ok_or_else(EvalError::no_overload)?;
    let mut out = String::new();
    for (i, item) in list.iter().enumerate() {
        if i > 0 {
            out.push_str(by);
        }
        let item = item?;
        match item.as_str() {
            Some(string) => out.push_str(string),
            None => return Err(EvalError::new(format!("join: invalid input: {item}"))),
        }
        if out.len() > MAX_TEXT {
            return Err(EvalError::size());
        }
    }
    Ok(Val::text(out))
}
