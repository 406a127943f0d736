//! The one place where errors of the store become Statuses.

use kubelith_meta::GroupResource;
use kubelith_meta::status::Status;
use kubelith_store::StoreError;

/// An error of a write, or of the read before it.
pub(crate) fn from_store(error: StoreError, resource: &GroupResource, name: &str) -> Status {
    match error {
        StoreError::Conflict { current: None } => Status::not_found(resource, name),
        StoreError::Conflict { current: Some(_) } => {
            Status::conflict(resource, name, "the object was written meanwhile")
        }
        other => from_read(other),
    }
}

pub(crate) fn from_read(error: StoreError) -> Status {
    match error {
        StoreError::Compacted { .. } => list_expired(),
        StoreError::TooLarge { .. } => Status::request_entity_too_large("etcdserver: request is too large"),
        StoreError::FutureRevision { current } => too_large(current.0 + 1, current.0),
        other => Status::internal_error(other),
    }
}

/// 504 for a revision that does not exist yet. The client is told to wait a second.
pub(crate) fn too_large(wanted: i64, current: i64) -> Status {
    Status::too_large_resource_version(wanted as u64, current as u64, 1)
}

/// 410 for a list at a revision that is gone.
pub(crate) fn list_expired() -> Status {
    Status::expired("The resourceVersion for the provided list is too old.")
}

pub(crate) fn broken(why: &str) -> Status {
    Status::internal_error(format!("unable to decode a stored object: {why}"))
}

/// What strconv.ParseUint says inside the reference's 500.
pub(crate) fn bad_resource_version(text: &str) -> Status {
    let problem = if text.bytes().all(|b| b.is_ascii_digit()) { "value out of range" } else { "invalid syntax" };
    Status::unknown(format!("strconv.ParseUint: parsing {text:?}: {problem}"))
}
