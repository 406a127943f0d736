//! Semantic versions.

use super::{Run, SEMVER, global, member, of, text};
use crate::decl::Function;
use crate::types::Type;
use crate::value::{EvalError, Opaque, Res, Val};
use kubelith_meta::text::quote;
use std::cmp::Ordering;
use std::fmt;

const THIS: Type = Type::Named(SEMVER);

pub fn functions() -> Vec<Function> {
    use Type::{Bool, Int, String};
    let part = |name, id| of(name, [member(id, [THIS], Int)]);
    vec![
        of(
            "semver",
            [global("string_to_semver", [String], THIS), global("string_bool_to_semver", [String, Bool], THIS)],
        ),
        of(
            "isSemver",
            [global("is_semver_string", [String], Bool), global("is_semver_string_bool", [String, Bool], Bool)],
        ),
        of("isGreaterThan", [member("semver_is_greater_than", [THIS, THIS], Bool)]),
        of("isLessThan", [member("semver_is_less_than", [THIS, THIS], Bool)]),
        of("compareTo", [member("semver_compare_to", [THIS, THIS], Int)]),
        part("major", "semver_major"),
        part("minor", "semver_minor"),
        part("patch", "semver_patch"),
    ]
}

pub fn run(id: &str) -> Option<Run> {
    Some(match id {
        "string_to_semver" => Run::Unary(|s| semver(s, false)),
        "string_bool_to_semver" => Run::Binary(|s, normalize| semver(s, is_true(normalize)?)),
        "is_semver_string" => Run::Unary(|s| Ok(Val::Bool(Version::parse(text(s)?).is_ok()))),
        "is_semver_string_bool" => {
            Run::Binary(|s, normalize| Ok(Val::Bool(read(text(s)?, is_true(normalize)?).is_ok())))
        }
        "semver_is_greater_than" => Run::Binary(|a, b| Ok(Val::Bool(version(a)?.compare(version(b)?).is_gt()))),
        "semver_is_less_than" => Run::Binary(|a, b| Ok(Val::Bool(version(a)?.compare(version(b)?).is_lt()))),
        "semver_compare_to" => Run::Binary(|a, b| Ok(Val::Int(version(a)?.compare(version(b)?) as i64))),
        "semver_major" => Run::Unary(|v| Ok(Val::Int(version(v)?.major as i64))),
        "semver_minor" => Run::Unary(|v| Ok(Val::Int(version(v)?.minor as i64))),
        "semver_patch" => Run::Unary(|v| Ok(Val::Int(version(v)?.patch as i64))),
        _ => return None,
    })
}

fn is_true(val: &Val<'_>) -> Result<bool, EvalError> {
    if let Val::Bool(b) = val { Ok(*b) } else { Err(EvalError::no_overload()) }
}

fn version<'v>(val: &'v Val<'_>) -> Result<&'v Version, EvalError> {
    match val.as_opaque() {
        Some(Opaque::Semver(version)) => Ok(version),
        _ => Err(EvalError::no_overload()),
    }
}

fn semver<'a>(s: &Val<'a>, normalize: bool) -> Res<'a> {
    read(text(s)?, normalize).map(|v| Val::opaque(Opaque::Semver(v))).map_err(EvalError::new)
}

fn read(text: &str, normalize: bool) -> Result<Version, String> {
    if normalize { Version::parse(&normalized(text)?) } else { Version::parse(text) }
}

/// Without a `v`, without leading zeros, with three parts.
fn normalized(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(str::to_owned).collect();
    for part in &mut parts {
        if part.len() > 1 {
            let trimmed = part.trim_start_matches('0');
            let needs_zero = !trimmed.starts_with(|c: char| c.is_ascii_digit());
            *part = if needs_zero { format!("0{trimmed}") } else { trimmed.to_owned() };
        }
    }
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".into());
        }
        parts.resize(3, "0".into());
    }
    Ok(parts.join("."))
}

/// A semantic version, read as strictly as the reference's library does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub major: u64,
    pub minor: u64,
    pub patch: u64,
    before: Vec<Before>,
    build: Vec<String>,
}

/// A part of what stands behind the dash. Numbers come before words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Before {
    Number(u64),
    Word(String),
}

impl Version {
    pub fn parse(text: &str) -> Result<Version, String> {
        if text.is_empty() {
            return Err("Version string empty".into());
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts[..] else { return Err("No Major.Minor.Patch elements found".into()) };
        let (major, minor) = (number(major, "major", "Major")?, number(minor, "minor", "Minor")?);
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, build.split('.').collect()),
            None => (rest, Vec::new()),
        };
        let (patch, before) = match rest.split_once('-') {
            Some((patch, before)) => (patch, before.split('.').collect()),
            None => (rest, Vec::new()),
        };
        let patch = number(patch, "patch", "Patch")?;
        let before = before.into_iter().map(before_part).collect::<Result<_, _>>()?;
        for part in &build {
            if part.is_empty() {
                return Err("Build meta data is empty".into());
            }
            if !is_word(part) {
                return Err(format!("Invalid character(s) found in build meta data {}", quote(part)));
            }
        }
        Ok(Version { major, minor, patch, before, build: build.into_iter().map(str::to_owned).collect() })
    }

    pub fn compare(&self, other: &Version) -> Ordering {
        let numbers = |v: &Version| (v.major, v.minor, v.patch);
        // A version comes before the release it leads to.
        let release = |v: &Version| v.before.is_empty();
        numbers(self)
            .cmp(&numbers(other))
            .then_with(|| release(self).cmp(&release(other)))
            .then_with(|| self.before.cmp(&other.before))
    }
}

fn number(text: &str, name: &str, title: &str) -> Result<u64, String> {
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {name} number {}", quote(text)));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{title} number must not contain leading zeroes {}", quote(text)));
    }
    parse_uint(text)
}

/// Go's `strconv.ParseUint` of digits.
fn parse_uint(text: &str) -> Result<u64, String> {
    let why = if text.is_empty() { "invalid syntax" } else { "value out of range" };
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {}: {why}", quote(text)))
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn before_part(text: &str) -> Result<Before, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".into());
    }
    if text.bytes().all(|b| b.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!("Numeric PreRelease version must not contain leading zeroes {}", quote(text)));
        }
        return parse_uint(text).map(Before::Number);
    }
    if !is_word(text) {
        return Err(format!("Invalid character(s) found in prerelease {}", quote(text)));
    }
    Ok(Before::Word(text.into()))
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        for (i, part) in self.before.iter().enumerate() {
            f.write_str(if i == 0 { "-" } else { "." })?;
            match part {
                Before::Number(n) => write!(f, "{n}")?,
                Before::Word(word) => f.write_str(word)?,
            }
        }
        for (i, part) in self.build.iter().enumerate() {
            f.write_str(if i == 0 { "+" } else { "." })?;
            f.write_str(part)?;
        }
        Ok(())
    }
}
