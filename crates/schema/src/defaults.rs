//! Fills in what a client left out: the defaults that schemas declare, and rules for what depends on other fields.
//!
//! `apply_defaults` knows the schema alone. `Defaulting` also has rules, each of a named type: it runs wherever a value
//! of that type stands. Parents come before children, and a type's plain defaults before its rules, so that a rule sees
//! `type: ClusterIP` rather than nothing, and what it adds is completed on the way down. A plan made once for all types
//! leads the walk past everything that has no defaults below.
//!
//! An object that lacks nothing costs no allocation. One that was canonical stays so. Objects that are shared with what is
//! stored lack nothing and are passed over.

use crate::{Field, Schema, Shape, StructType, TypeId, TypeTable};
use kubelith_meta::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Completes a value of one type. Running it again changes nothing.
pub type Rule = fn(&mut Map);

/// Fills in the defaults of `schema` below `value`.
pub fn apply_defaults(table: &TypeTable, schema: &Schema, value: &mut Value) {
    Walk { table, plans: None }.value(schema, value);
}

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
    /// For each field, whether it is one of those.
    is_below: Vec<bool>,
    /// Those that are made if they are absent: a Go struct that is no pointer is always there, and gets its defaults.
    made: Vec<u16>,
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
                own: indices(t, |f| own_default(f).is_some()),
                rules: by_type.remove(&id).unwrap_or_default(),
                ..Plan::default()
            })
            .collect();
        // Types refer to each other in circles: who has something to do tells those that lead to it, once.
        let mut led_to: Vec<Vec<(TypeId, u16)>> = vec![Vec::new(); plans.len()];
        for (t, from) in types() {
            for (field, i) in t.fields.iter().zip(0..) {
                if let Some(TypeId(to)) = leads_to(&field.schema) {
                    led_to[to as usize].push((from, i));
                }
            }
        }
        let mut telling: Vec<usize> = (0..plans.len()).filter(|i| !plans[*i].is_empty()).collect();
        while let Some(told) = telling.pop() {
            for (TypeId(from), field) in std::mem::take(&mut led_to[told]) {
                let plan = &mut plans[from as usize];
                if plan.is_empty() {
                    telling.push(from as usize);
                }
                plan.below.push(field);
            }
        }
        for (t, TypeId(i)) in types() {
            let plan = &mut plans[i as usize];
            plan.below.sort_unstable();
            plan.is_below = vec![false; t.fields.len()];
            plan.below.iter().for_each(|i| plan.is_below[usize::from(*i)] = true);
            plan.made = plan.below.iter().copied().filter(|i| !t.fields[usize::from(*i)].presence.nilable).collect();
        }
        let plans = plans.into_iter().map(|p| (!p.is_empty()).then_some(p)).collect();
        Defaulting { table, plans }
    }

    /// Whether values of this schema can lack anything.
    pub fn concerns(&self, schema: &Schema) -> bool {
        leads_to(schema).is_some_and(|id| self.plans[id.0 as usize].is_some())
    }

    /// Completes `value`, of the shape `schema`.
    pub fn fill(&self, schema: &Schema, value: &mut Value) {
        Walk { table: &self.table, plans: Some(&self.plans) }.value(schema, value);
    }
}

struct Walk<'a> {
    table: &'a TypeTable,
    /// Without plans every field is looked at.
    plans: Option<&'a [Option<Plan>]>,
}

impl Walk<'_> {
    fn value(&self, schema: &Schema, value: &mut Value) {
        match (&schema.shape, value) {
            (_, Value::Object(map)) if map.is_sealed() => {}
            (Shape::Named(id), Value::Object(map)) => match self.plans {
                Some(plans) => {
                    if let Some(plan) = &plans[id.0 as usize] {
                        self.planned(plan, self.table.get(*id), map);
                    }
                }
                None => self.unplanned(self.table.get(*id), map),
            },
            (Shape::Struct(t), Value::Object(map)) => self.unplanned(t, map),
            (Shape::List(item), Value::Array(items)) if has_structs(item) => {
                items.iter_mut().for_each(|v| self.value(item, v));
            }
            (Shape::Map(item), Value::Object(map)) if has_structs(item) => {
                map.iter_mut().for_each(|(_, v)| self.value(item, v));
            }
            _ => {}
        }
    }

    fn planned(&self, plan: &Plan, t: &StructType, map: &mut Map) {
        for (i, left) in plan.own.iter().zip((1..=plan.own.len()).rev()) {
            fill_field(t, usize::from(*i), map, left);
        }
        for rule in &plan.rules {
            rule(map);
        }
        if plan.below.is_empty() {
            return;
        }
        let mut fields = t.fields.in_order(map.len());
        for (key, value) in map.entries_mut() {
            if let Some(i) = fields.find(key.head(), key).filter(|i| plan.is_below[*i]) {
                self.value(&t.fields[i].schema, value);
            }
        }
        for i in plan.made.iter().map(|i| usize::from(*i)) {
            let field = &t.fields[i];
            if map.get_with(t.fields.head(i), &field.name).is_none_or(Value::is_null) {
                self.make(t, i, map);
            }
        }
    }

    fn unplanned(&self, t: &StructType, map: &mut Map) {
        for (i, field) in t.fields.iter().enumerate() {
            fill_field(t, i, map, 1);
            if has_structs(&field.schema) {
                self.below(t, i, map);
            }
        }
    }

    fn below(&self, t: &StructType, index: usize, map: &mut Map) {
        let field = &t.fields[index];
        match map.get_mut_with(t.fields.head(index), &field.name) {
            Some(value) if !value.is_null() => self.value(&field.schema, value),
            _ if !field.presence.nilable => self.make(t, index, map),
            _ => {}
        }
    }

    /// Sets a struct that is absent, if it has any defaults.
    fn make(&self, t: &StructType, index: usize, map: &mut Map) {
        let mut made = Value::object();
        self.value(&t.fields[index].schema, &mut made);
        if !made.is_empty() {
            map.insert_at(t.fields.key(index), made);
        }
    }
}

/// The default that is filled in. The zero value of a field that is no pointer is what it has anyway.
pub(crate) fn own_default(field: &Field) -> Option<&Value> {
    field.schema.default.as_deref().filter(|d| field.presence.pointer || !d.is_empty())
}

/// `left` is how many fields are to be filled in, at most: where one is missing, others are.
fn fill_field(t: &StructType, index: usize, map: &mut Map, left: usize) {
    let field = &t.fields[index];
    if let Some(default) = own_default(field)
        && map.get_with(t.fields.head(index), &field.name).is_none_or(|v| is_absent(field, v))
    {
        map.reserve(left);
        map.insert_at(t.fields.key(index), default.clone());
    }
}

/// A value that means that none was given: null, and the zero value of a Go field that is no pointer.
fn is_absent(field: &Field, value: &Value) -> bool {
    match value {
        Value::Null => !field.schema.nullable,
        value => !field.presence.pointer && value.is_empty(),
    }
}

fn indices(t: &StructType, wanted: impl Fn(&Field) -> bool) -> Vec<u16> {
    t.fields.iter().zip(0u16..).filter(|(f, _)| wanted(f)).map(|(_, i)| i).collect()
}

/// The named struct that is, or is in the elements of, a value of this schema.
fn leads_to(schema: &Schema) -> Option<TypeId> {
    match &schema.shape {
        Shape::Named(id) => Some(*id),
        Shape::List(item) | Shape::Map(item) => leads_to(item),
        _ => None,
    }
}

/// Whether there can be anything to fill in below.
fn has_structs(schema: &Schema) -> bool {
    match &schema.shape {
        Shape::Named(_) | Shape::Struct(_) => true,
        Shape::List(item) | Shape::Map(item) => has_structs(item),
        _ => false,
    }
}

#[cfg(test)]
#[path = "defaults_tests.rs"]
mod tests;
