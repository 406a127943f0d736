//! Tables: what `kubectl get` shows. Columns and most cells come from the descriptor; cells that no path gives
//! come from functions of the layer above.

use crate::cells::Cells;
use crate::{Context, Query, views};
use kubelith_meta::time::Time;
use kubelith_meta::{Status, Str, Value};
use kubelith_schema::jsonpath::JsonPath;
use kubelith_schema::{Cell, Column};

/// What each row carries of its object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Include {
    None,
    Metadata,
    Object,
}

/// What rows carry, as the client asked.
fn include(query: &Query) -> Result<Include, Status> {
    match query.get("includeObject").unwrap_or("") {
        "" | "Metadata" => Ok(Include::Metadata),
        "None" => Ok(Include::None),
        "Object" => Ok(Include::Object),
        other => Err(Status::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', \
             'Object', 'None', or empty",
            kubelith_meta::text::quote(other)
        ))),
    }
}

/// Whether a table can be made as it was asked for.
pub fn check_options(cx: &Context) -> Result<(), Status> {
    include(&cx.query).map(drop)
}

pub fn of_object(cx: &Context, object: &Value, version: &str) -> Result<Value, Status> {
    let meta = match object.at(&["metadata", "resourceVersion"]) {
        Some(revision) => Value::from([("resourceVersion", revision.clone())]),
        None => Value::object(),
    };
    of_list(cx, std::slice::from_ref(object), meta, version)
}

pub fn of_list(cx: &Context, objects: &[Value], meta: Value, version: &str) -> Result<Value, Status> {
    let now = cx.endpoint.resource.clock.now();
    let printer = Printer { columns: cx.endpoint.columns(), cells: &*cx.endpoint.cells, now, version };
    printer.print(&cx.query, objects, meta)
}

/// What a table is made with.
pub struct Printer<'a> {
    pub columns: &'a [Column],
    pub cells: &'a dyn Cells,
    pub now: Time,
    /// Of `meta.k8s.io`.
    pub version: &'a str,
}

impl Printer<'_> {
    pub fn print(&self, query: &Query, objects: &[Value], meta: Value) -> Result<Value, Status> {
        let include = include(query)?;
        let columns = self.columns;
        let paths = parsed(columns);
        let mut objects: Vec<&Value> = objects.iter().collect();
        objects.sort_by(|a, b| self.cells.compare(a, b));
        let rows: Vec<Value> = objects.into_iter().map(|o| self.row(&paths, o, include)).collect();
        // The columns of kinds that have none of their own come from another place, which leaves no rows as nil.
        let is_nil = rows.is_empty() && matches!(columns, [_, created] if created.name == "Created At");
        let rows = if is_nil { Value::Null } else { Value::Array(rows) };
        // A cell may be there that no column is named for.
        let definitions: Vec<Value> = columns.iter().filter(|c| !c.name.is_empty()).map(definition).collect();
        Ok(Value::from([
            ("kind", Value::from("Table")),
            ("apiVersion", Value::from(format!("meta.k8s.io/{}", self.version))),
            ("metadata", meta),
            ("columnDefinitions", Value::Array(definitions)),
            ("rows", rows),
        ]))
    }

    fn row(&self, paths: &[Vec<JsonPath>], object: &Value, include: Include) -> Value {
        let cells = self.columns.iter().zip(paths).map(|(column, path)| self.cell(column, path, object)).collect();
        let conditions = self.cells.row_conditions(object);
        let object = match include {
            Include::None => Value::Null,
            Include::Metadata => views::metadata_of(self.cells, object, self.version),
            Include::Object => object.clone(),
        };
        let mut row = Value::from([("cells", Value::Array(cells))]);
        row.set_at(&["object"], object);
        if let Some(conditions) = conditions {
            row.set_at(&["conditions"], conditions);
        }
        row
    }

    fn cell(&self, column: &Column, paths: &[JsonPath], object: &Value) -> Value {
        let found: Vec<Option<&Value>> = paths.iter().map(|p| p.find(object).into_iter().next()).collect();
        let value = match &column.cell {
            Cell::Function(name) => self.cells.cell(name, object, &found, self.now),
            Cell::Path(_) => found.first().copied().flatten().map(|v| self.cells.path_cell(column, v, self.now)),
        };
        value.unwrap_or_else(|| column.absent.clone())
    }
}

/// The paths of each column: of its cell, or of its function's arguments.
fn parsed(columns: &[Column]) -> Vec<Vec<JsonPath>> {
    columns
        .iter()
        .map(|c| match &c.cell {
            Cell::Path(path) => JsonPath::parse(path).into_iter().collect(),
            Cell::Function(_) => c.arguments.iter().filter_map(|path| JsonPath::parse(path).ok()).collect(),
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

/// How long ago a time was, for people.
pub fn age(text: &str, now: Time) -> Str {
    match Time::parse(text) {
        Ok(at) => at.age(now).into(),
        Err(_) => "<invalid>".into(),
    }
}
