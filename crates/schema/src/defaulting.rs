//! Fills in what objects leave out: the defaults that schemas declare, and rules for what depends on other fields.
//!
//! A rule belongs to a named type and runs wherever a value of that type stands. Parents come before children, and
//! a type's plain defaults before its rules, so that a rule sees `type: ClusterIP` rather than nothing, and what it
//! adds is completed on the way down. A plan made once for all types leads the walk past everything that has no
//! defaults below; an object that lacks nothing costs no allocation.

use crate::{Field, Schema, Shape, StructType, TypeId, TypeTable};
use kubelith_meta::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Completes a value of one type. Running it again changes nothing.
pub type Rule = fn(&mut Map);

/// The defaulting of all types of a table.
pub struct Defaulting {
    table: Arc<TypeTable>,
    /// By type. `None` where there is nothing to do in a value or below.
    plans: Vec<Option<Plan>>,
}

/// Where a struct needs work. Fields are given by their index.
#[derive(Debug, Default)]
struct Plan {
    /// With a default of their own.
    own: Vec<u16>,
    rules: Vec<Rule>,
    /// With something to do inside of them.
    below: Vec<u16>,
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.own.is_empty() && self.rules.is_empty() && self.below.is_empty()
    }
}

impl Defaulting {
    /// `rules` by the OpenAPI names of their types. Names that the table does not have are left aside.
    pub fn new(table: Arc<TypeTable>, rules: impl IntoIterator<Item = (&'static str, Rule)>) -> Defaulting {
        let mut by_type: HashMap<TypeId, Vec<Rule>> = HashMap::new();
        for (name, rule) in rules {
            if let Some(id) = table.find(name) {
                by_type.entry(id).or_default().push(rule);
            }
        }
        let types = || table.iter().zip(0..).map(|(t, i)| (t, TypeId(i)));
        let mut plans: Vec<Plan> = types()
            .map(|(t, id)| Plan {
                own: indices(t, has_own_default),
                rules: by_type.remove(&id).unwrap_or_default(),
                below: Vec::new(),
            })
            .collect();
        // Types refer to each other in circles: repeat until no further type turns out to have something below.
        loop {
            let mut grown = false;
            for (t, TypeId(i)) in types() {
                let below = indices(t, |f| leads_to(&f.schema).is_some_and(|id| !plans[id.0 as usize].is_empty()));
                grown |= below.len() > plans[i as usize].below.len();
                plans[i as usize].below = below;
            }
            if !grown {
                break;
            }
        }
        let plans = plans.into_iter().map(|p| (!p.is_empty()).then_some(p)).collect();
        Defaulting { table, plans }
    }

    /// Whether values of this schema can lack anything.
    pub fn concerns(&self, schema: &Schema) -> bool {
        match leads_to(schema) {
            Some(id) => self.plan(id).is_some(),
            None => false,
        }
    }

    /// Completes `value`, of the shape `schema`.
    pub fn fill(&self, schema: &Schema, value: &mut Value) {
        match (&schema.shape, value) {
            (Shape::Named(id), Value::Object(map)) => self.fill_struct(*id, map),
            (Shape::List(item), Value::Array(items)) => {
                for v in items {
                    self.fill(item, v);
                }
            }
            (Shape::Map(item), Value::Object(map)) => {
                for (_, v) in map.iter_mut() {
                    self.fill(item, v);
                }
            }
            _ => {}
        }
    }

    fn fill_struct(&self, id: TypeId, map: &mut Map) {
        let Some(plan) = self.plan(id) else { return };
        let fields = &self.table.get(id).fields;
        for i in &plan.own {
            fill_field(&fields[usize::from(*i)], map);
        }
        for rule in &plan.rules {
            rule(map);
        }
        for i in &plan.below {
            let field = &fields[usize::from(*i)];
            match map.get_mut(&field.name) {
                Some(value) if !value.is_null() => self.fill(&field.schema, value),
                // A Go struct that is no pointer is always there, and gets its defaults.
                _ if !field.presence.nilable => {
                    let mut made = Value::object();
                    self.fill(&field.schema, &mut made);
                    if !made.is_empty() {
                        map.insert(field.name.clone(), made);
                    }
                }
                _ => {}
            }
        }
    }

    fn plan(&self, id: TypeId) -> Option<&Plan> {
        self.plans.get(id.0 as usize)?.as_ref()
    }
}

fn indices(t: &StructType, wanted: impl Fn(&Field) -> bool) -> Vec<u16> {
    t.fields.iter().zip(0u16..).filter(|(f, _)| wanted(f)).map(|(_, i)| i).collect()
}

/// The zero value of a field that is no pointer is what it has anyway: such a default is only published.
fn has_own_default(field: &Field) -> bool {
    field.schema.default.as_ref().is_some_and(|v| field.presence.pointer || !v.is_empty())
}

/// The struct that is, or is in the elements of, a value of this schema.
fn leads_to(schema: &Schema) -> Option<TypeId> {
    match &schema.shape {
        Shape::Named(id) => Some(*id),
        Shape::List(item) | Shape::Map(item) => leads_to(item),
        _ => None,
    }
}

/// A pointer is missing if it is absent, any other field also if it has its zero value.
fn fill_field(field: &Field, map: &mut Map) {
    let Some(default) = &field.schema.default else { return };
    match map.get_mut(&field.name) {
        None => {
            map.insert(field.name.clone(), default.clone());
        }
        Some(value) if value.is_null() || (!field.presence.pointer && value.is_empty()) => *value = default.clone(),
        Some(_) => {}
    }
}

#[cfg(test)]
#[path = "defaulting_tests.rs"]
mod tests;
