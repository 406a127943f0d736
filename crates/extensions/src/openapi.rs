//! Custom resources in OpenAPI. Schemas are written from the stored definition when a document is asked for.

use crate::controllers::Known;
use crate::definition::{self, Definition};
use kubelith_meta::{GroupVersion, Str, Value};
use kubelith_server::openapi::{DeleteAnswer, Detail, Dialect, Published};
use kubelith_store::cache::CachedObject;
use std::sync::Arc;

/// A definition as one of its group versions publishes it; `None` if it has no part in it.
pub fn published(known: &Known, gv: &GroupVersion) -> Option<Published> {
    let descriptor = known.published.as_ref().filter(|d| d.group == gv.group)?;
    let index = descriptor.versions.iter().position(|v| v.name == gv.version && v.served)?;
    let (object, version) = (known.object.clone(), gv.version.clone());
    Some(Published {
        descriptor: descriptor.clone(),
        version_index: index,
        delete_answer: DeleteAnswer::Status,
        detail: Detail::Brief,
        written: Some(Arc::new(move |dialect| schema(&object, &version, dialect))),
    })
}

fn schema(object: &CachedObject, version: &Str, _dialect: Dialect) -> Value {
    let Ok(object) = definition::read(object) else { return Value::object() };
    let definition = Definition(&object);
    let found = definition.versions().find(|v| v.name() == version).and_then(|v| v.schema()).cloned();
    found.unwrap_or_else(|| Value::from([("type", "object")]))
}
