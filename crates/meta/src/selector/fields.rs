//! Field selectors: `metadata.name=a,status.phase!=Running`. Values may escape `\`, `,` and `=`.

use super::SelectorError;
use crate::Str;
use std::fmt;

/// Which objects are meant, by the values of fields.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FieldSelector {
    /// No object at all.
    Nothing,
    /// Every object that meets all terms; with none, every object.
    All(Vec<FieldTerm>),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldTerm {
    pub field: Str,
    pub operator: FieldOperator,
    pub value: Str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldOperator {
    Equals,
    NotEquals,
}

/// Something that has fields to select by. An unknown field is empty.
pub trait Fields {
    fn field(&self, name: &str) -> &str;
}

/// Pairs of field and value; few, so a linear search is best.
impl<K: AsRef<str>, V: AsRef<str>> Fields for [(K, V)] {
    fn field(&self, name: &str) -> &str {
        self.iter().find(|(k, _)| k.as_ref() == name).map_or("", |(_, v)| v.as_ref())
    }
}

impl FieldSelector {
    pub const EVERYTHING: FieldSelector = FieldSelector::All(Vec::new());

    pub fn equals(field: impl Into<Str>, value: impl Into<Str>) -> FieldSelector {
        let term = FieldTerm { field: field.into(), operator: FieldOperator::Equals, value: value.into() };
        FieldSelector::All(vec![term])
    }

    /// Reads a selector. Terms come out sorted by their text, as upstream.
    pub fn parse(text: &str) -> Result<FieldSelector, SelectorError> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::with_capacity(parts.len());
        for part in parts.into_iter().filter(|p| !p.is_empty()) {
            let Some((field, operator, value)) = split_term(part) else {
                return Err(SelectorError::new(format!("invalid selector: '{text}'; can't understand '{part}'")));
            };
            terms.push(FieldTerm { field: field.into(), operator, value: unescape_value(value)?.into() });
        }
        Ok(FieldSelector::All(terms))
    }

    /// Rewrites every term, e.g. to the names of another version. A term whose field and value both become
    /// empty is dropped.
    pub fn transform<E>(self, mut rewrite: impl FnMut(Str, Str) -> Result<(Str, Str), E>) -> Result<FieldSelector, E> {
        let FieldSelector::All(terms) = self else {
            return Ok(self);
        };
        let mut out = Vec::with_capacity(terms.len());
        for FieldTerm { field, operator, value } in terms {
            let (field, value) = rewrite(field, value)?;
            if !(field.is_empty() && value.is_empty()) {
                out.push(FieldTerm { field, operator, value });
            }
        }
        Ok(FieldSelector::All(out))
    }

    pub fn matches(&self, fields: &(impl Fields + ?Sized)) -> bool {
        match self {
            FieldSelector::Nothing => false,
            FieldSelector::All(terms) => terms.iter().all(|t| t.matches(fields)),
        }
    }

    /// Whether it selects every object.
    pub fn is_everything(&self) -> bool {
        matches!(self, FieldSelector::All(terms) if terms.is_empty())
    }

    pub fn terms(&self) -> &[FieldTerm] {
        match self {
            FieldSelector::Nothing => &[],
            FieldSelector::All(terms) => terms,
        }
    }

    /// The value that `field` must have, if a term says so.
    pub fn exact_value(&self, field: &str) -> Option<&str> {
        let term = self.terms().iter().find(|t| t.field == field && t.operator == FieldOperator::Equals)?;
        Some(&term.value)
    }

    /// This selector and more terms.
    pub fn and(self, more: impl IntoIterator<Item = FieldTerm>) -> FieldSelector {
        match self {
            FieldSelector::Nothing => FieldSelector::Nothing,
            FieldSelector::All(mut terms) => {
                terms.extend(more);
                FieldSelector::All(terms)
            }
        }
    }
}

impl FieldTerm {
    pub fn matches(&self, fields: &(impl Fields + ?Sized)) -> bool {
        (fields.field(&self.field) == self.value) == (self.operator == FieldOperator::Equals)
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, term) in self.terms().iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            term.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for FieldTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = match self.operator {
            FieldOperator::Equals => "=",
            FieldOperator::NotEquals => "!=",
        };
        write!(f, "{}{operator}{}", self.field, escape_value(&self.value))
    }
}

/// Splits at commas that no backslash precedes; backslashes stay.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut escaped) = (Vec::new(), 0, false);
    for (i, b) in text.bytes().enumerate() {
        match b {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                terms.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Splits at the first operator; fields cannot be escaped.
fn split_term(term: &str) -> Option<(&str, FieldOperator, &str)> {
    let equals = term.find('=')?;
    let (field, rest) = (&term[..equals], &term[equals + 1..]);
    if let Some(field) = field.strip_suffix('!') {
        return Some((field, FieldOperator::NotEquals, rest));
    }
    Some((field, FieldOperator::Equals, rest.strip_prefix('=').unwrap_or(rest)))
}

/// A value as a term of a selector writes it.
pub fn escape_value(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '\\' | ',' | '=') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// The value that a term of a selector writes.
pub fn unescape_value(text: &str) -> Result<String, SelectorError> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                other => {
                    let sequence: String = other.into_iter().collect();
                    let message = format!("invalid field selector: invalid escape sequence: \\{sequence}");
                    return Err(SelectorError::new(message));
                }
            },
            ',' | '=' => {
                // Upstream prints the character's number.
                let message = format!("invalid field selector: unescaped character in value: {}", c as u32);
                return Err(SelectorError::new(message));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}
