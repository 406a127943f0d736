//! The single rules of a schema, and how their failures are worded.

use super::{Rules, Structural, Type, formats};
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::{Value, text};
use std::fmt;

/// Where a value stands, seen from where validation began.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    parent: Option<&'a Site<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Property(&'a str),
    /// The reference puts a dot before these even if nothing comes before it.
    Additional(&'a str),
    Index(usize),
}

impl<'a> Site<'a> {
    pub const ROOT: Site<'static> = Site { parent: None, step: Step::Root };

    pub fn property(&'a self, name: &'a str) -> Site<'a> {
        Site { parent: Some(self), step: Step::Property(name) }
    }

    pub fn additional(&'a self, name: &'a str) -> Site<'a> {
        Site { parent: Some(self), step: Step::Additional(name) }
    }

    pub fn index(&'a self, index: usize) -> Site<'a> {
        Site { parent: Some(self), step: Step::Index(index) }
    }

    pub fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }

    fn write(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.write(out);
        }
        match self.step {
            Step::Root => {}
            Step::Property(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Step::Additional(name) => {
                out.push('.');
                out.push_str(name);
            }
            Step::Index(i) => out.push_str(&format!("[{i}]")),
        }
    }
}

impl fmt::Display for Site<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.write(&mut out);
        f.write_str(&out)
    }
}

/// What a check found. `matches` counts what fits: it chooses whose failures are shown where there are alternatives.
#[derive(Debug, Default)]
pub struct Found {
    pub failures: Vec<Failure>,
    pub matches: usize,
}

/// Something that does not fit.
#[derive(Debug)]
pub struct Failure {
    /// As the validator words it: failures with the same words are shown once.
    message: String,
    /// Where it is; `None` for failures that are said of the whole.
    site: Option<String>,
    kind: SchemaKind,
}

#[derive(Debug)]
enum SchemaKind {
    Required,
    Enumeration { value: Value, allowed: Vec<String> },
    TooLong(i64),
    TooMany { actual: usize, max: i64 },
    Type(Value),
    Invalid(Value),
}

impl Found {
    pub fn count(&mut self) {
        self.matches += 1;
    }

    pub fn fail(&mut self, failure: Failure) {
        if !self.failures.iter().any(|f| f.message == failure.message) {
            self.failures.push(failure);
        }
    }

    pub fn take(&mut self, other: Found) {
        self.matches += other.matches;
        for failure in other.failures {
            self.fail(failure);
        }
    }
}

impl From<Failure> for Found {
    fn from(failure: Failure) -> Found {
        Found { failures: vec![failure], matches: 0 }
    }
}

impl Failure {
    fn at(site: &Site<'_>, says: impl fmt::Display, kind: SchemaKind) -> Failure {
        let site = site.to_string();
        Failure { message: format!("{site} in body {says}"), site: Some(site), kind }
    }

    pub fn composite(message: String) -> Failure {
        Failure { message, site: None, kind: SchemaKind::Invalid("".into()) }
    }

    pub fn required(site: &Site<'_>, key: &str) -> Failure {
        let name = format!("{site}.{key}");
        Failure { message: format!("{name} in body is required"), site: Some(name), kind: SchemaKind::Required }
    }

    pub fn forbidden_property(site: &Site<'_>, key: &str) -> Failure {
        let message = format!("{site}.{key} in body is a forbidden property");
        Failure { message, site: Some(site.to_string()), kind: SchemaKind::Invalid(key.into()) }
    }
}

/// Failures as errors of fields below `path`.
pub fn to_errors(failures: Vec<Failure>, path: Option<&Path<'_>>) -> ErrorList {
    let root = path.unwrap_or(&Path::ROOT);
    let errors = failures.into_iter().map(|failure| {
        let Failure { message, site, kind } = failure;
        let name = site.as_deref().unwrap_or("").trim_start_matches('.');
        let child = root.child(name);
        let path = if name.is_empty() { root } else { &child };
        match kind {
            SchemaKind::Required => Error::required(path, ""),
            SchemaKind::Enumeration { value, allowed } => Error::not_supported(path, &value, allowed),
            SchemaKind::TooLong(max) => Error::too_long(path, usize::try_from(max).unwrap_or_default()),
            SchemaKind::TooMany { actual, max } => {
                Error::too_many(path, actual, usize::try_from(max).unwrap_or_default())
            }
            SchemaKind::Type(value) => Error::type_invalid(path, shown(value), message),
            SchemaKind::Invalid(value) => Error::invalid(path, shown(value), message),
        }
    });
    errors.collect()
}

fn shown(value: Value) -> BadValue {
    if value.is_null() { BadValue::from("") } else { BadValue::from(value) }
}

static NO_RULES: Rules = Rules::NONE;

fn rules(schema: &Structural) -> &Rules {
    schema.rules.as_deref().unwrap_or(&NO_RULES)
}

/// The format, if it is one that means something for the type.
pub fn format(schema: &Structural) -> &str {
    let format = rules(schema).format.as_str();
    let kind = if schema.int_or_string { None } else { schema.kind };
    if !format.is_empty() && formats::is_known(kind, format) { format } else { "" }
}

/// The type of a value, as schemas name it.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Int(_) => "integer",
        Value::Float(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) | Value::Raw(_) => "object",
    }
}

pub fn kind(schema: &Structural, value: &Value, site: &Site<'_>) -> Found {
    let wrong = |wanted: &str, given: &str| {
        let says = format!("must be of type {wanted}: {}", text::quote(given));
        Found::from(Failure::at(site, says, SchemaKind::Type(given.into())))
    };
    let fits = Found { failures: Vec::new(), matches: 1 };
    let given = type_name(value);
    let wanted: &str = match (schema.int_or_string, schema.kind) {
        (true, _) => "integer,string",
        (false, Some(kind)) => kind.name(),
        (false, None) => "",
    };
    if value.is_null() {
        return if wanted.is_empty() || schema.nullable { fits } else { wrong(wanted, given) };
    }
    let has = |name: &str| wanted.split(',').any(|w| w == name);
    let whole = matches!(value, Value::Float(f) if is_whole(*f)) && has("integer");
    let ok = has(given) || whole || (given == "integer" && has("number"));
    let format = format(schema);
    if !format.is_empty() {
        match value {
            Value::String(_) | Value::Array(_) if !has("number") && !has("integer") => return fits,
            Value::String(_) | Value::Array(_) => {}
            _ if !ok => {
                let given = match value {
                    Value::Int(_) => "int64",
                    Value::Float(_) => "float64",
                    _ => "",
                };
                return if given == format { fits } else { wrong(format, given) };
            }
            _ => {}
        }
    }
    if ok { fits } else { wrong(wanted, given) }
}

/// Whether a double is an integer that JSON can carry.
fn is_whole(f: f64) -> bool {
    const MOST: f64 = (1u64 << 53) as f64;
    f.is_finite() && f.abs() <= MOST && f.fract() == 0.0
}

pub fn enumeration(schema: &Structural, value: &Value, site: &Site<'_>) -> Found {
    let allowed = &rules(schema).enumeration;
    let same = |wanted: &Value| match (wanted, value) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => wanted.as_f64() == value.as_f64(),
        _ => wanted == value,
    };
    if allowed.is_empty() || allowed.iter().any(same) {
        return Found::default();
    }
    let texts = allowed.iter().map(|v| v.as_str().map_or_else(|| text::json(v), str::to_owned)).collect();
    Failure::at(site, "should be one of", SchemaKind::Enumeration { value: value.clone(), allowed: texts }).into()
}

pub fn string(schema: &Structural, string: &str, site: &Site<'_>) -> Found {
    let rules = rules(schema);
    let length = || i64::try_from(string.chars().count()).unwrap_or(i64::MAX);
    if let Some(max) = rules.max_length.filter(|max| length() > *max) {
        return Failure::at(site, format!("should be at most {max} chars long"), SchemaKind::TooLong(max)).into();
    }
    let invalid = |says: String| Found::from(Failure::at(site, says, SchemaKind::Invalid(string.into())));
    if let Some(min) = rules.min_length.filter(|min| length() < *min) {
        return invalid(format!("should be at least {min} chars long"));
    }
    match rules.pattern.as_ref().map(|p| (p, p.matches(string))) {
        None | Some((_, Ok(true))) => Found::default(),
        Some((pattern, Ok(false))) => invalid(format!("should match '{}'", pattern.text())),
        Some((pattern, Err(why))) => {
            invalid(format!("should match '{}, but pattern is invalid: {why}'", pattern.text()))
        }
    }
}

pub fn string_format(schema: &Structural, string: &str, site: &Site<'_>) -> Found {
    let format = format(schema);
    if formats::fits(format, string) {
        return Found::default();
    }
    let says = format!("must be of type {format}: {}", text::quote(string));
    Failure::at(site, says, SchemaKind::Type(string.into())).into()
}

pub fn number(schema: &Structural, value: &Value, site: &Site<'_>) -> Found {
    let rules = rules(schema);
    let mut found = Found::default();
    range(schema, value, "Checked", site, &mut found);
    if let Some(factor) = rules.multiple_of {
        multiple(value, factor, site, &mut found);
    }
    if let Some(min) = rules.minimum {
        let below = if rules.exclusive_minimum { at_most(value, min) } else { !at_least(value, min) };
        if below {
            let than = if rules.exclusive_minimum { "greater than" } else { "greater than or equal to" };
            let says = format!("should be {than} {}", bound(value, min));
            found.fail(Failure::at(site, says, SchemaKind::Invalid(value.clone())));
        }
    }
    if let Some(max) = rules.maximum {
        let above = if rules.exclusive_maximum { at_least(value, max) } else { !at_most(value, max) };
        if above {
            let than = if rules.exclusive_maximum { "less than" } else { "less than or equal to" };
            let says = format!("should be {than} {}", bound(value, max));
            found.fail(Failure::at(site, says, SchemaKind::Invalid(value.clone())));
        }
    }
    found.count();
    found
}

/// Integers are compared with the integer part of a bound.
fn at_least(value: &Value, bound: f64) -> bool {
    match value {
        Value::Int(i) => *i >= bound as i64,
        _ => value.as_f64().is_some_and(|f| f >= bound),
    }
}

fn at_most(value: &Value, bound: f64) -> bool {
    match value {
        Value::Int(i) => *i <= bound as i64,
        _ => value.as_f64().is_some_and(|f| f <= bound),
    }
}

fn bound(value: &Value, bound: f64) -> String {
    match value {
        Value::Int(_) => (bound as i64).to_string(),
        _ => text::float_v(bound),
    }
}

fn multiple(value: &Value, factor: f64, site: &Site<'_>, found: &mut Found) {
    let (positive, fits) = match value {
        Value::Int(i) => {
            let factor = factor as i64;
            (factor > 0, factor > 0 && i % factor == 0)
        }
        _ => {
            let data = value.as_f64().unwrap_or_default();
            (factor > 0.0, is_nearly_whole(if factor < 1.0 { 1.0 / factor * data } else { data / factor }))
        }
    };
    if !positive {
        let message = format!("factor MultipleOf declared for {site} must be positive: {}", bound(value, factor));
        let shown = if let Value::Int(_) = value { Value::Int(factor as i64) } else { factor.into() };
        found.fail(Failure { message, site: Some(site.to_string()), kind: SchemaKind::Invalid(shown) });
    } else if !fits {
        let says = format!("should be a multiple of {}", bound(value, factor));
        found.fail(Failure::at(site, says, SchemaKind::Invalid(value.clone())));
    }
}

/// As the reference compares quotients: up to a billionth.
fn is_nearly_whole(f: f64) -> bool {
    const EPSILON: f64 = 1e-9;
    const MOST: f64 = (1u64 << 53) as f64;
    if !f.is_finite() || f.abs() > MOST {
        return false;
    }
    let whole = f.trunc();
    f == whole || (whole != 0.0 && (f - whole).abs() / (f.abs() + whole.abs()) < EPSILON)
}

/// int32, int64 and float have limits.
fn range(schema: &Structural, value: &Value, what: &str, site: &Site<'_>, found: &mut Found) {
    if schema.int_or_string {
        return;
    }
    let (kind, format) = match schema.kind {
        Some(Type::Integer) => ("integer", format(schema)),
        Some(Type::Number) => ("number", format(schema)),
        _ => return,
    };
    let fits = match (kind, value) {
        ("integer", Value::Int(i)) => format != "int32" || i32::try_from(*i).is_ok(),
        ("integer", Value::Float(f)) => {
            is_whole(*f) && (format != "int32" || (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(f))
        }
        (_, v) => format != "float" || v.as_f64().is_none_or(|f| f.abs() <= f64::from(f32::MAX)),
    };
    if !fits {
        let how = if format.is_empty() { "(default format)".to_owned() } else { format!("with format {format}") };
        found.fail(Failure::composite(format!("{what} value must be of type {kind} {how} in {site}")));
    }
}

pub fn items(schema: &Structural, items: &[Value], site: &Site<'_>) -> Found {
    let rules = rules(schema);
    let mut found = Found::default();
    let size = i64::try_from(items.len()).unwrap_or(i64::MAX);
    if let Some(min) = rules.min_items.filter(|min| size < *min) {
        let says = format!("should have at least {min} items");
        found.fail(Failure::at(site, says, SchemaKind::Invalid(size.into())));
    }
    if let Some(max) = rules.max_items.filter(|max| size > *max) {
        let says = format!("should have at most {max} items");
        found.fail(Failure::at(site, says, SchemaKind::TooMany { actual: items.len(), max }));
    }
    if rules.unique_items && items.iter().enumerate().any(|(i, item)| items[..i].contains(item)) {
        found.fail(Failure::at(site, "shouldn't contain duplicates", SchemaKind::Invalid("".into())));
    }
    found
}

/// The number of members of an object.
pub fn size(schema: &Structural, size: usize, site: &Site<'_>) -> Found {
    let rules = rules(schema);
    let mut found = Found::default();
    let count = i64::try_from(size).unwrap_or(i64::MAX);
    if let Some(min) = rules.min_properties.filter(|min| count < *min) {
        let says = format!("should have at least {min} properties");
        found.fail(Failure::at(site, says, SchemaKind::Invalid(count.into())));
    }
    if let Some(max) = rules.max_properties.filter(|max| count > *max) {
        let says = format!("should have at most {max} properties");
        found.fail(Failure::at(site, says, SchemaKind::TooMany { actual: size, max }));
    }
    found
}
