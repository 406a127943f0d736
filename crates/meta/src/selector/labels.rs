//! Label selectors as they are matched: a conjunction of requirements on keys.

use crate::field::{BadValue, Error, ErrorList, Path};
use crate::{Map, Str, Value, names};
use std::collections::BTreeMap;
use std::fmt;

/// Which objects are meant, by their labels. Requirements are sorted by key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LabelSelector {
    /// No object at all: what an absent LabelSelector object means.
    Nothing,
    /// Every object that meets all requirements; with none, every object.
    All(Vec<Requirement>),
}

impl LabelSelector {
    pub const EVERYTHING: LabelSelector = LabelSelector::All(Vec::new());

    /// Requirements in any order.
    pub fn new(mut requirements: Vec<Requirement>) -> LabelSelector {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        LabelSelector::All(requirements)
    }

    /// Every label of `labels` with its value, unchecked.
    pub fn from_labels(labels: &Map) -> LabelSelector {
        let equals = |(key, value): (&str, &Value)| Requirement {
            key: key.into(),
            operator: Operator::Equals,
            values: vec![value.as_str().unwrap_or("").into()],
            bound: 0,
        };
        LabelSelector::All(labels.iter().map(equals).collect())
    }

    pub fn matches(&self, labels: &(impl Labels + ?Sized)) -> bool {
        match self {
            LabelSelector::Nothing => false,
            LabelSelector::All(requirements) => requirements.iter().all(|r| r.matches(labels)),
        }
    }

    /// Whether it selects every object.
    pub fn is_everything(&self) -> bool {
        matches!(self, LabelSelector::All(requirements) if requirements.is_empty())
    }

    pub fn is_nothing(&self) -> bool {
        matches!(self, LabelSelector::Nothing)
    }

    pub fn requirements(&self) -> &[Requirement] {
        match self {
            LabelSelector::Nothing => &[],
            LabelSelector::All(requirements) => requirements,
        }
    }

    /// This selector and more requirements.
    pub fn and(self, more: impl IntoIterator<Item = Requirement>) -> LabelSelector {
        match self {
            LabelSelector::Nothing => LabelSelector::Nothing,
            LabelSelector::All(mut requirements) => {
                requirements.extend(more);
                LabelSelector::new(requirements)
            }
        }
    }

    /// The only value that `key` may have, if the first requirement on it says so.
    pub fn exact_value(&self, key: &str) -> Option<&str> {
        let requirement = self.requirements().iter().find(|r| r.key == key)?;
        match (requirement.operator, requirement.values.as_slice()) {
            (Operator::Equals | Operator::DoubleEquals | Operator::In, [value]) => Some(value),
            _ => None,
        }
    }
}

/// The canonical text, which parses to the same selector. Nothing has none and gives "".
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements().iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    In,
    NotIn,
    Equals,
    DoubleEquals,
    NotEquals,
    GreaterThan,
    LessThan,
    Exists,
    DoesNotExist,
}

impl Operator {
    /// How the selector syntax writes it. Existence is written `exists` only in messages.
    pub const fn symbol(self) -> &'static str {
        match self {
            Operator::In => "in",
            Operator::NotIn => "notin",
            Operator::Equals => "=",
            Operator::DoubleEquals => "==",
            Operator::NotEquals => "!=",
            Operator::GreaterThan => "gt",
            Operator::LessThan => "lt",
            Operator::Exists => "exists",
            Operator::DoesNotExist => "!",
        }
    }
}

/// What the label of one key must be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: Str,
    operator: Operator,
    values: Vec<Str>,
    /// The value of `GreaterThan` and `LessThan` as a number.
    bound: i64,
}

impl Requirement {
    /// Checks key, values and their number. Errors are under `path`.
    pub fn new(key: Str, operator: Operator, values: Vec<Str>, path: &Path<'_>) -> Result<Requirement, ErrorList> {
        let mut errors = ErrorList::new();
        errors.extend(check_key(&key, &path.child("key")));
        let path = path.child("values");
        let mut bound = 0;
        let wrong_number = match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if values.len() != 1 => {
                Some("exact-match compatibility requires one single value")
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                Some("values set must be empty for exists and does not exist")
            }
            Operator::GreaterThan | Operator::LessThan if values.len() != 1 => {
                Some("for 'Gt', 'Lt' operators, exactly one value is required")
            }
            _ => None,
        };
        if let Some(detail) = wrong_number {
            // The reference passes an absent list on, and prints it as such.
            let shown = if values.is_empty() { BadValue::from(Value::Null) } else { BadValue::from(values.clone()) };
            errors.push(Error::invalid(&path, shown, detail));
        }
        if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
            for (i, value) in values.iter().enumerate() {
                match parse_int(value) {
                    Some(n) => bound = n,
                    None => errors.push(Error::invalid(
                        &path.index(i),
                        value.as_str(),
                        "for 'Gt', 'Lt' operators, the value must be an integer",
                    )),
                }
            }
        }
        for (i, value) in values.iter().enumerate() {
            let wrong = names::is_label_value(value);
            if !wrong.is_empty() {
                errors.push(Error::invalid(&path.index(i).key(&key), value.as_str(), wrong.join("; ")));
            }
        }
        errors.into_result()?;
        Ok(Requirement { key, operator, values, bound })
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn operator(&self) -> Operator {
        self.operator
    }

    pub fn values(&self) -> &[Str] {
        &self.values
    }

    pub fn matches(&self, labels: &(impl Labels + ?Sized)) -> bool {
        let value = labels.lookup(&self.key);
        let has = |value: &str| self.values.iter().any(|v| v == value);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => value.is_some_and(has),
            Operator::NotIn | Operator::NotEquals => !value.is_some_and(has),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => value.and_then(parse_int).is_some_and(|v| v > self.bound),
            Operator::LessThan => value.and_then(parse_int).is_some_and(|v| v < self.bound),
        }
    }
}

/// A label key that is wrong, as one error.
pub(super) fn check_key(key: &str, path: &Path<'_>) -> Option<Error> {
    let wrong = names::is_qualified_name(key);
    (!wrong.is_empty()).then(|| Error::invalid(path, key, wrong.join("; ")))
}

/// Decimal with an optional sign, as Go's `ParseInt`.
fn parse_int(s: &str) -> Option<i64> {
    s.parse().ok()
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let operator = match self.operator {
            Operator::Exists => return f.write_str(key),
            Operator::DoesNotExist => return write!(f, "!{key}"),
            Operator::In | Operator::NotIn => {
                let mut values: Vec<&str> = self.values.iter().map(Str::as_str).collect();
                values.sort_unstable();
                return write!(f, "{key} {} ({})", self.operator.symbol(), values.join(","));
            }
            Operator::GreaterThan => ">",
            Operator::LessThan => "<",
            other => other.symbol(),
        };
        write!(f, "{key}{operator}{}", self.values.join(","))
    }
}

/// Something that has labels.
pub trait Labels {
    fn lookup(&self, key: &str) -> Option<&str>;
}

/// A JSON object of strings, such as `metadata.labels`.
impl Labels for Map {
    fn lookup(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Value::as_str)
    }
}

/// Labels sorted by key.
impl Labels for [(Str, Str)] {
    fn lookup(&self, key: &str) -> Option<&str> {
        let i = self.binary_search_by(|(k, _)| k.as_str().cmp(key)).ok()?;
        Some(&self[i].1)
    }
}

impl<S: AsRef<str>> Labels for BTreeMap<Str, S> {
    fn lookup(&self, key: &str) -> Option<&str> {
        self.get(key).map(AsRef::as_ref)
    }
}

/// Absent labels are no labels.
impl<L: Labels + ?Sized> Labels for Option<&L> {
    fn lookup(&self, key: &str) -> Option<&str> {
        self.and_then(|labels| labels.lookup(key))
    }
}

impl<L: Labels + ?Sized> Labels for &L {
    fn lookup(&self, key: &str) -> Option<&str> {
        (**self).lookup(key)
    }
}
