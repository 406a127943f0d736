//! Tables: what `kubectl get` shows. Columns and most cells come from the descriptor; cells that no path gives
//! come from functions of the layer above.

use crate::handlers::{Context, views};
use kubelith_meta::time::Time;
use kubelith_meta::{Status, Str, Value};
use kubelith_schema::jsonpath::JsonPath;
use kubelith_schema::{Cell, Column};

/// Computed cells, by name.
pub trait Cells: Send + Sync + 'static {
    /// `None` if there is no such function.
    fn cell(&self, function: &str, object: &Value, now: Time) -> Option<Value>;
}

/// No computed cells.
pub struct NoCells;

impl Cells for NoCells {
    fn cell(&self, _: &str, _: &Value, _: Time) -> Option<Value> {
        None
    }
}

/// What each row carries of its object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Include {
    None,
    Metadata,
    Object,
}

pub fn of_object(cx: &Context, object: &Value, version: &str) -> Result<Value, Status> {
    let meta = match object.at(&["metadata", "resourceVersion"]) {
        Some(revision) => Value::from([("resourceVersion", revision.clone())]),
        None => Value::object(),
    };
    of_list(cx, std::slice::from_ref(object), meta, version)
}

pub fn of_list(cx: &Context, objects: &[Value], meta: Value, version: &str) -> Result<Value, Status> {
    let include = match cx.query.get("includeObject").unwrap_or("") {
        "" | "Metadata" => Include::Metadata,
        "None" => Include::None,
        "Object" => Include::Object,
        other => return Err(Status::bad_request(format!("unrecognized includeObject value: {}", kubelith_meta::text::quote(other)))),
    };
    let columns = &cx.endpoint.version().columns;
    let paths = parsed(columns);
    let now = cx.endpoint.resource.clock.now();
    let rows: Vec<Value> = objects.iter().map(|o| row(cx, columns, &paths, o, include, version, now)).collect();
    let definitions: Vec<Value> = columns.iter().map(definition).collect();
    Ok(Value::from([
        ("kind", Value::from("Table")),
        ("apiVersion", Value::from(format!("meta.k8s.io/{version}"))),
        ("metadata", meta),
        ("columnDefinitions", Value::Array(definitions)),
        ("rows", Value::Array(rows)),
    ]))
}

fn parsed(columns: &[Column]) -> Vec<Option<JsonPath>> {
    columns
        .iter()
        .map(|c| match &c.cell {
            Cell::Path(path) => JsonPath::parse(path).ok(),
            Cell::Function(_) => None,
        })
        .collect()
}

fn definition(column: &Column) -> Value {
    Value::from([
        ("name", Value::String(column.name.clone())),
        ("type", Value::String(column.kind.clone())),
        ("format", Value::String(column.format.clone())),
        ("description", Value::String(column.description.clone())),
        ("priority", Value::from(column.priority)),
    ])
}

fn row(
    cx: &Context,
    columns: &[Column],
    paths: &[Option<JsonPath>],
    object: &Value,
    include: Include,
    version: &str,
    now: Time,
) -> Value {
    let cells = columns.iter().zip(paths).map(|(column, path)| cell(cx, column, path.as_ref(), object, now)).collect();
    let object = match include {
        Include::None => Value::Null,
        Include::Metadata => views::partial_metadata(object, version),
        Include::Object => object.clone(),
    };
    let mut row = Value::from([("cells", Value::Array(cells))]);
    row.set_at(&["object"], object);
    row
}

fn cell(cx: &Context, column: &Column, path: Option<&JsonPath>, object: &Value, now: Time) -> Value {
    match &column.cell {
        Cell::Function(name) => cx.endpoint.cells.cell(name, object, now).unwrap_or(Value::Null),
        Cell::Path(_) => {
            let found = path.and_then(|p| p.find(object).into_iter().next().cloned());
            printed(&column.kind, found, now)
        }
    }
}

/// A value as its column's type shows it.
pub fn printed(kind: &str, found: Option<Value>, now: Time) -> Value {
    let Some(value) = found else { return Value::Null };
    match (kind, value) {
        ("date", Value::String(text)) => Value::String(age(&text, now)),
        (_, value) => value,
    }
}

/// How long ago a time was, for people.
pub fn age(text: &str, now: Time) -> Str {
    match Time::parse(text) {
        Some(at) => kubelith_meta::time::human_duration(now.since(at)).into(),
        None => "<invalid>".into(),
    }
}
