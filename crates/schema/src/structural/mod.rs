//! Structural schemas: what a CustomResourceDefinition says about the objects of one version.
//!
//! `parse` reads the OpenAPI form once; the walks over objects (`prune`, `defaults`, `lists`, `validate`) take the
//! tree. `shape` makes the [`Schema`](crate::Schema) of a descriptor from it, which server-side apply merges by.
//! Descriptions and examples are not kept: documents are written from the definition itself.

mod check;
mod defaults;
pub mod formats;
mod lists;
mod parse;
mod pattern;
mod prune;
mod shape;
mod validate;

pub use defaults::{apply_defaults, drop_nulls};
pub use lists::validate_lists;
pub use pattern::Pattern;
pub use prune::{prune, prune_reporting};
pub use shape::object_schema;
pub use validate::{Old, validate, validate_update};

use kubelith_meta::{Str, Value};

/// The schema of one value.
#[derive(Debug, Clone, Default)]
pub struct Structural {
    /// `None`: any type.
    pub kind: Option<Type>,
    pub nullable: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    pub default: Option<Box<Value>>,
    /// Sorted by name.
    pub properties: Vec<(Str, Structural)>,
    pub additional: Option<Box<Additional>>,
    pub items: Option<Box<Structural>>,
    pub list: Option<List>,
    pub map: Option<MapKind>,
    pub rules: Option<Box<Rules>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// `additionalProperties`.
#[derive(Debug, Clone)]
pub enum Additional {
    Allowed(bool),
    Of(Structural),
}

/// `x-kubernetes-list-type` with its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum List {
    Atomic,
    Set,
    Map(Vec<Str>),
}

/// `x-kubernetes-map-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapKind {
    Granular,
    Atomic,
}

/// What a value must fulfil beyond its type.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    pub format: Str,
    pub pattern: Option<Pattern>,
    pub enumeration: Vec<Value>,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub exclusive_minimum: bool,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<f64>,
    pub min_length: Option<i64>,
    pub max_length: Option<i64>,
    pub min_items: Option<i64>,
    pub max_items: Option<i64>,
    pub unique_items: bool,
    pub min_properties: Option<i64>,
    pub max_properties: Option<i64>,
    pub required: Vec<Str>,
    pub all_of: Vec<Structural>,
    pub any_of: Vec<Structural>,
    pub one_of: Vec<Structural>,
    pub not: Option<Box<Structural>>,
    /// `x-kubernetes-validations`, as they were written: rules in CEL.
    pub cel: Vec<Value>,
}

impl Rules {
    /// No rules at all.
    pub const NONE: Rules = Rules {
        format: Str::const_new(""),
        pattern: None,
        enumeration: Vec::new(),
        minimum: None,
        maximum: None,
        exclusive_minimum: false,
        exclusive_maximum: false,
        multiple_of: None,
        min_length: None,
        max_length: None,
        min_items: None,
        max_items: None,
        unique_items: false,
        min_properties: None,
        max_properties: None,
        required: Vec::new(),
        all_of: Vec::new(),
        any_of: Vec::new(),
        one_of: Vec::new(),
        not: None,
        cel: Vec::new(),
    };
}

impl Type {
    pub fn parse(text: &str) -> Option<Type> {
        Some(match text {
            "object" => Type::Object,
            "array" => Type::Array,
            "string" => Type::String,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "boolean" => Type::Boolean,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Type::Object => "object",
            Type::Array => "array",
            Type::String => "string",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Boolean => "boolean",
        }
    }
}

impl Structural {
    pub fn property(&self, name: &str) -> Option<&Structural> {
        let found = self.properties.binary_search_by(|(n, _)| n.as_str().cmp(name));
        found.ok().map(|i| &self.properties[i].1)
    }

    /// The schema of a member: that of the property, else that of additional ones if they have one.
    fn member(&self, name: &str) -> Option<&Structural> {
        self.property(name).or_else(|| self.additional_schema())
    }

    /// The schema of additional properties, if they have one.
    pub fn additional_schema(&self) -> Option<&Structural> {
        match self.additional.as_deref() {
            Some(Additional::Of(schema)) => Some(schema),
            _ => None,
        }
    }

    /// The same with unknown fields preserved in all objects.
    pub fn preserving(&self) -> Structural {
        let mut copy = self.clone();
        copy.preserve();
        copy
    }

    fn preserve(&mut self) {
        let is_object = matches!(self.kind, None | Some(Type::Object));
        self.preserve_unknown |= is_object;
        self.properties.iter_mut().for_each(|(_, property)| property.preserve());
        if let Some(items) = &mut self.items {
            items.preserve();
        }
        if let Some(Additional::Of(schema)) = self.additional.as_deref_mut() {
            schema.preserve();
        }
    }

    /// Whether there are rules in CEL anywhere in this schema.
    pub fn has_cel(&self) -> bool {
        let nested = |rules: &Rules| {
            let parts = rules.all_of.iter().chain(&rules.any_of).chain(&rules.one_of).chain(rules.not.as_deref());
            !rules.cel.is_empty() || parts.into_iter().any(Structural::has_cel)
        };
        self.any(&|s| s.rules.as_deref().is_some_and(nested))
    }

    /// Whether any schema in this one fulfils `wanted`, nested rules aside.
    pub fn any(&self, wanted: &dyn Fn(&Structural) -> bool) -> bool {
        wanted(self)
            || self.properties.iter().any(|(_, p)| p.any(wanted))
            || self.items.as_deref().is_some_and(|i| i.any(wanted))
            || self.additional_schema().is_some_and(|a| a.any(wanted))
    }
}

#[cfg(test)]
mod tests;
