//! Writes of the server itself that are no update by a client: the object is read, changed and put back, and neither the
//! strategy nor admission is asked.

use crate::error;
use crate::resource::{Known, Resource, set_resource_version};
use kubelith_meta::Value;
use kubelith_meta::call::Call;
use kubelith_meta::status::Status;
use kubelith_schema::lifecycle::Preconditions;
use kubelith_store::cache::EventKind;
use kubelith_store::{Expect, Revision, StoreError};

impl Resource {
    /// Changes the object that the call names. `change` is run again on the fresh object if a write overtakes it; the
    /// object has its resourceVersion, before and after.
    pub async fn rewrite(
        &self,
        call: &Call,
        preconditions: &Preconditions,
        change: &mut (dyn FnMut(&mut Value) -> Result<(), Status> + Send),
    ) -> Result<Value, Status> {
        let key = self.key(&call.namespace, &call.name)?;
        let mut current = self.current(call, &key).await?;
        loop {
            let Some(found) = current else { return Err(Status::not_found(&call.resource, &call.name)) };
            self.check_preconditions(call, preconditions, Some(&found.object))?;
            let mut object = found.object.clone();
            change(&mut object)?;
            if call.dry_run() || (object == found.object && !found.stale) {
                return Ok(object);
            }
            let before = Some(&found);
            let known = Known { text: None, kind: EventKind::Modified, is_judged: false, before };
            let encoded = self.encode(&mut object, known).await?;
            let ttl = self.strategy.time_to_live(&object);
            let expect = Expect::At(Revision(found.revision));
            match self.put(&key, encoded, expect, ttl).await {
                Ok(revision) => {
                    set_resource_version(&mut object, revision.0);
                    return Ok(object);
                }
                Err(StoreError::Conflict { current: Some(kv) }) => current = Some(self.current_of_kv(call, &kv).await?),
                Err(StoreError::Conflict { current: None }) => current = None,
                Err(e) => return Err(error::from_store(e, &call.resource, &call.name)),
            }
        }
    }
}
