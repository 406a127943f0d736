//! Cells of tables that no path gives, by the names that the catalogue calls them.
//!
//! A function sees the object in the version that the request asked for, and what its arguments lead to. `None` leaves
//! the cell to the column's `or`. Numbers are numbers where the reference prints them so, whatever the column's type.

mod admission;
mod apiservices;
mod autoscaling;
mod certificates;
mod cluster;
mod devices;
mod events;
mod generic;
mod network;
mod pods;
mod rbac;
mod storage;
mod workloads;

use crate::annotations;
use kubelith_handlers::cells::Cells;
use kubelith_meta::time::Time;
use kubelith_meta::{Str, Value};
use kubelith_schema::Column;
use std::cmp::Ordering;

/// The cell functions of the built-in kinds.
pub struct BuiltinCells;

/// What a function sees.
struct Row<'a> {
    object: &'a Value,
    arguments: &'a [Option<&'a Value>],
    now: Time,
}

type CellFn = fn(&Row<'_>) -> Option<Value>;

/// The function of this name.
fn find(name: &str) -> Option<CellFn> {
    generic::find(name)
        .or_else(|| pods::find(name))
        .or_else(|| workloads::find(name))
        .or_else(|| network::find(name))
        .or_else(|| storage::find(name))
        .or_else(|| events::find(name))
        .or_else(|| rbac::find(name))
        .or_else(|| cluster::find(name))
        .or_else(|| autoscaling::find(name))
        .or_else(|| admission::find(name))
        .or_else(|| certificates::find(name))
        .or_else(|| devices::find(name))
        .or_else(|| apiservices::find(name))
}

impl Cells for BuiltinCells {
    fn cell(&self, function: &str, object: &Value, arguments: &[Option<&Value>], now: Time) -> Option<Value> {
        find(function)?(&Row { object, arguments, now })
    }

    /// As it is: the reference prints fields of built-in objects without regard to the column's type.
    fn path_cell(&self, _column: &Column, value: &Value, _now: Time) -> Value {
        value.clone()
    }

    fn row_conditions(&self, object: &Value) -> Option<Value> {
        pods::completion(object)
    }

    fn field_annotations(&self, object: &Value) -> &'static [&'static str] {
        match (object.str_at(&["apiVersion"]), object.str_at(&["kind"])) {
            ("apps/v1", "DaemonSet") => &[annotations::TEMPLATE_GENERATION],
            ("apps/v1", "Deployment") => &[annotations::ROLLBACK_TO],
            ("autoscaling/v1", "HorizontalPodAutoscaler") => &annotations::AUTOSCALER,
            _ => &[],
        }
    }

    fn compare(&self, a: &Value, b: &Value) -> Ordering {
        cluster::flow_schema_order(a, b)
    }
}

impl<'a> Row<'a> {
    /// What the first argument leads to, unless it is null.
    fn first(&self) -> Option<&'a Value> {
        self.arguments.first().copied().flatten().filter(|v| !v.is_null())
    }

    fn at(&self, path: &[&str]) -> Option<&'a Value> {
        self.object.at(path).filter(|v| !v.is_null())
    }

    fn text(&self, path: &[&str]) -> &'a str {
        self.object.str_at(path)
    }

    fn int(&self, path: &[&str]) -> i64 {
        self.at(path).and_then(Value::as_i64).unwrap_or(0)
    }

    fn list(&self, path: &[&str]) -> &'a [Value] {
        self.at(path).and_then(Value::as_array).unwrap_or(&[])
    }

    fn is_deleted(&self) -> bool {
        self.at(&["metadata", "deletionTimestamp"]).is_some()
    }

    /// `status.conditions`.
    fn conditions(&self) -> &'a [Value] {
        self.list(&["status", "conditions"])
    }

    /// How long ago a time was; nothing if there is none.
    fn age(&self, time: Option<&Value>) -> Option<Str> {
        age(time?.as_str()?, self.now)
    }
}

/// How long ago a time was; nothing for the zero time.
fn age(time: &str, now: Time) -> Option<Str> {
    if time.is_empty() {
        return None;
    }
    match Time::parse_micro(time).or_else(|_| Time::parse(time)) {
        Ok(time) if time.is_zero() => None,
        Ok(time) => Some(time.age(now).into()),
        Err(_) => Some("<invalid>".into()),
    }
}

fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    value.at(path).and_then(Value::as_array).unwrap_or(&[])
}

fn int(value: &Value, path: &[&str]) -> i64 {
    value.at(path).and_then(Value::as_i64).unwrap_or(0)
}

/// Text members of all elements, with commas between them.
fn joined<'a>(texts: impl IntoIterator<Item = &'a str>, separator: &str) -> String {
    texts.into_iter().collect::<Vec<_>>().join(separator)
}

fn strings(values: &[Value]) -> impl Iterator<Item = &str> {
    values.iter().map(|v| v.as_str().unwrap_or(""))
}

/// The first condition of a type.
fn condition<'a>(conditions: &'a [Value], kind: &str) -> Option<&'a Value> {
    conditions.iter().find(|c| c.str_at(&["type"]) == kind)
}

/// Whether a condition is True.
fn holds(condition: &Value) -> bool {
    condition.str_at(&["status"]) == "True"
}

/// The first few of many, and how many more there are.
fn with_more(shown: &[impl AsRef<str>], more: usize) -> String {
    let shown = joined(shown.iter().map(AsRef::as_ref), ",");
    if more > 0 { format!("{shown} + {more} more...") } else { shown }
}

#[cfg(test)]
mod tests;
