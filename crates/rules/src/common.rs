//! What rules share: reading fields, metadata, names, numbers and quantities.

use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{self, Messages, NameRule, NameUse};
use kubelith_meta::object::{
    Namespacing, validate_finalizer_name, validate_immutable, validate_kube_finalizers, validate_object_meta,
    validate_object_meta_update,
};
use kubelith_meta::quantity::Quantity;
use kubelith_meta::{Map, Value};

pub const METADATA: Path<'static> = Path::new("metadata");
pub const SPEC: Path<'static> = Path::new("spec");

pub const IMMUTABLE: &str = "field is immutable";
pub const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
pub const POSITIVE: &str = "must be greater than zero";

/// Fields of objects that have passed their schema: what is absent reads as Go's zero value.
pub trait Fields {
    fn text(&self, key: &str) -> &str;
    fn int(&self, key: &str) -> Option<i64>;
    fn number(&self, key: &str) -> i64;
    fn flag(&self, key: &str) -> bool;
    fn list(&self, key: &str) -> &[Value];
    fn map(&self, key: &str) -> Option<&Map>;
    /// An absent map is an empty one.
    fn entries<'a>(&'a self, key: &str) -> Box<dyn Iterator<Item = (&'a str, &'a Value)> + 'a>;
    /// A member that is there and not null.
    fn some(&self, key: &str) -> Option<&Value>;
    fn has(&self, key: &str) -> bool;
    fn texts(&self, key: &str) -> Vec<&str>;
}

impl Fields for Value {
    fn text(&self, key: &str) -> &str {
        self.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn int(&self, key: &str) -> Option<i64> {
        self.get(key).and_then(Value::as_i64)
    }

    fn number(&self, key: &str) -> i64 {
        self.int(key).unwrap_or_default()
    }

    fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(Value::as_bool).unwrap_or_default()
    }

    fn list(&self, key: &str) -> &[Value] {
        self.get(key).and_then(Value::as_array).unwrap_or_default()
    }

    fn map(&self, key: &str) -> Option<&Map> {
        self.get(key).and_then(Value::as_object)
    }

    fn entries<'a>(&'a self, key: &str) -> Box<dyn Iterator<Item = (&'a str, &'a Value)> + 'a> {
        Box::new(self.map(key).into_iter().flat_map(Map::iter))
    }

    fn some(&self, key: &str) -> Option<&Value> {
        self.get(key).filter(|v| !v.is_null())
    }

    fn has(&self, key: &str) -> bool {
        self.some(key).is_some()
    }

    fn texts(&self, key: &str) -> Vec<&str> {
        self.list(key).iter().filter_map(Value::as_str).collect()
    }
}

/// A null for reading through what is absent.
pub static NULL: Value = Value::Null;

/// The member, or null.
pub fn member<'a>(value: &'a Value, key: &str) -> &'a Value {
    value.get(key).unwrap_or(&NULL)
}

/// Metadata of a new object of a built-in kind.
pub fn meta(object: &Value, namespaced: Namespacing, rule: impl Fn(&str, NameUse) -> Messages) -> ErrorList {
    let mut errors = validate_object_meta(object.meta(), namespaced, rule, &METADATA);
    errors.extend(validate_kube_finalizers(object.meta(), &METADATA.child("finalizers")));
    errors
}

/// Metadata of an object of a built-in kind that replaces another.
pub fn meta_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = validate_object_meta_update(new.meta(), old.meta(), &METADATA);
    errors.extend(validate_kube_finalizers(new.meta(), &METADATA.child("finalizers")));
    errors
}

/// Names of kinds whose rule is declared with their type: other words for the length, and nothing is asked of a prefix.
pub fn declared_long_name(name: &str, name_use: NameUse) -> Messages {
    if name_use == NameUse::Prefix {
        return Messages::new();
    }
    let mut messages = names::is_dns1123_subdomain(name);
    for message in messages.iter_mut().filter(|message| message.starts_with("must be no more than")) {
        *message = message.replace("characters", "bytes");
    }
    messages
}

/// A finalizer in a namespace's spec.
pub fn finalizer_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    errors.extend(validate_finalizer_name(name, path));
    if !name.contains('/') && !["kubernetes", "orphan", "foregroundDeletion"].contains(&name) {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(Error::invalid(path, name, detail));
    }
}

/// `messages` about `value`, each an error.
#[inline]
pub fn invalid_all(messages: Messages, path: &Path<'_>, value: &str, errors: &mut ErrorList) {
    errors.push_messages(messages, path, value);
}

pub fn name_full(rule: NameRule, name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    invalid_all(rule(name, NameUse::Full), path, name, errors);
}

pub fn dns_label(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    invalid_all(names::is_dns1123_label(name), path, name, errors);
}

pub fn dns_subdomain(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    invalid_all(names::is_dns1123_subdomain(name), path, name, errors);
}

pub fn qualified_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    invalid_all(names::is_qualified_name(name), path, name, errors);
}

pub fn not_negative(number: i64, path: &Path<'_>, errors: &mut ErrorList) {
    if number < 0 {
        errors.push(Error::invalid(path, number, NOT_NEGATIVE));
    }
}

pub fn positive(number: i64, path: &Path<'_>, errors: &mut ErrorList) {
    if number <= 0 {
        errors.push(Error::invalid(path, number, POSITIVE));
    }
}

pub fn port(number: i64, path: &Path<'_>, errors: &mut ErrorList) {
    if (1..=65535).contains(&number) {
        return;
    }
    errors.extend(names::is_port_number(number).into_iter().map(|m| Error::invalid(path, number, m)));
}

/// A value of a named string type that must be one of `known`; absent is required.
pub fn one_of(value: &str, known: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    if value.is_empty() {
        errors.push(Error::required(path, ""));
    } else {
        supported(value, known, path, errors);
    }
}

pub fn supported(value: &str, known: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    if !known.contains(&value) {
        errors.push(Error::not_supported(path, BadValue::json(value), known));
    }
}

pub fn immutable(new: Option<&Value>, old: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    errors.extend(validate_immutable(new, old, path));
}

pub fn immutable_member(new: &Value, old: &Value, key: &str, path: &Path<'_>, errors: &mut ErrorList) {
    immutable(new.get(key), old.get(key), &path.child(key), errors);
}

/// As `immutable_member`, for a text: an absent one is shown as the empty one that it is.
pub fn immutable_text(new: &Value, old: &Value, key: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if new.text(key) != old.text(key) {
        errors.push(Error::invalid(&path.child(key), BadValue::json(new.text(key)), IMMUTABLE));
    }
}

/// Same for Go: absent, null and empty are one.
pub fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    let empty = |v: Option<&Value>| v.is_none_or(Value::is_empty);
    a == b || (empty(a) && empty(b))
}

pub fn same_member(a: &Value, b: &Value, key: &str) -> bool {
    same(a.get(key), b.get(key))
}

pub fn quantity(value: &Value) -> Option<Quantity> {
    Quantity::from_value(value).ok()
}

/// Thousandths of a quantity, if it is as most are: a few digits with a suffix.
pub fn plain_milli(value: &Value) -> Option<i64> {
    // With the largest suffix these fit.
    const FEW: usize = 6;
    let text = value.as_str()?;
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    if count == 0 || count > FEW {
        return None;
    }
    let factor = match &text[count..] {
        "m" => 1,
        "" => 1000,
        "k" => 1000 * 1000,
        "M" => 1000 * 1_000_000,
        "G" => 1000 * 1_000_000_000,
        "Ki" => 1000 << 10,
        "Mi" => 1000 << 20,
        "Gi" => 1000 << 30,
        _ => return None,
    };
    Some(text.bytes().take(count).fold(0, |n, digit| n * 10 + i64::from(digit - b'0')) * factor)
}

/// How messages show a quantity.
pub fn quantity_text(value: &Value) -> String {
    quantity(value).map(|q| q.canonical()).unwrap_or_default()
}

/// A quantity as a bad value: its canonical text, quoted.
pub fn bad_quantity(value: &Value) -> BadValue {
    BadValue::json(quantity_text(value))
}

pub fn quantity_not_negative(value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    // What begins with a digit need not be read to be known.
    let is_unsigned = value.or_empty().starts_with(|c: char| c.is_ascii_digit());
    if !is_unsigned && quantity(value).is_some_and(|q| q.signum() < 0) {
        errors.push(Error::invalid(path, bad_quantity(value), NOT_NEGATIVE));
    }
}

pub fn quantity_positive(value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if quantity(value).is_none_or(|q| q.signum() <= 0) {
        errors.push(Error::invalid(path, bad_quantity(value), POSITIVE));
    }
}

/// A port by its number or its name; absent is number 0.
pub fn port_or_name(value: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    match value {
        Some(Value::String(name)) => invalid_all(names::is_port_name(name), path, name, errors),
        other => port(other.and_then(Value::as_i64).unwrap_or_default(), path, errors),
    }
}

/// A path below something: relative, and never up.
pub fn descending_path(text: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if text.starts_with('/') {
        errors.push(Error::invalid(path, text, "must be a relative path"));
    }
    no_backsteps(text, path, errors);
}

pub fn no_backsteps(text: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if text.split('/').any(|part| part == "..") {
        errors.push(Error::invalid(path, text, "must not contain '..'"));
    }
}

/// A descending path whose first part does not start with two dots, which atomic writers use.
pub fn unreserved_path(text: &str, path: &Path<'_>, errors: &mut ErrorList) {
    descending_path(text, path, errors);
    if text.starts_with("..") && !text.starts_with("../") {
        errors.push(Error::invalid(path, text, "must not start with '..'"));
    }
}

/// A LabelSelector, if there is one.
pub fn label_selector(selector: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(selector) = selector.filter(|s| !s.is_null()) {
        let rules = kubelith_meta::selector::LabelSelectorRules::default();
        errors.extend(kubelith_meta::selector::validate_label_selector(selector, rules, path));
    }
}
