//! Who owns which field: managedFields of every write.

use super::context::Context;
use super::options::WriteOptions;
use kubelith_meta::{Status, Value};

impl Context {
    /// Notes the creator's fields. `object` is at the request's version.
    pub(super) fn track_create(&self, object: Value, options: &WriteOptions) -> Result<Value, Status> {
        let Some(fields) = &self.endpoint.fields else { return Ok(object) };
        let manager = self.manager(&options.field_manager);
        Ok(fields.update(&Value::Null, object, &manager, self.endpoint.resource.clock.now()))
    }

    /// Notes what changed between `live` and `object`, both at the request's version.
    pub(super) fn track_update(&self, live: &Value, object: Value, options: &WriteOptions) -> Result<Value, Status> {
        let Some(fields) = &self.endpoint.fields else { return Ok(object) };
        let manager = self.manager(&options.field_manager);
        Ok(fields.update(live, object, &manager, self.endpoint.resource.clock.now()))
    }
}
