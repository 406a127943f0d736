//! The one place where errors of the store become Statuses.

use kubelith_meta::GroupResource;
use kubelith_meta::status::{Cause, Status};
use kubelith_store::StoreError;
use kubelith_store::cache::{Broken, Malformed, Problem};

/// What a client of etcd sends at most, in bytes.
const MESSAGE_LIMIT: usize = 2 << 20;

/// Unreadable objects that the error of a list names.
const MAX_BROKEN_LISTED: usize = 100;

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
        // More than a message may have never reaches the store.
        StoreError::TooLarge { size, limit } if limit == MESSAGE_LIMIT => Status::unknown(format!(
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max ({size} vs. {limit})"
        )),
        StoreError::TooLarge { .. } => Status::unknown("etcdserver: request is too large"),
        StoreError::TimedOut(_) => {
            Status::timeout("request did not complete within requested timeout - context deadline exceeded", 0)
        }
        StoreError::FutureRevision { current } => too_large(current.0 as u64 + 1, current.0),
        other => Status::internal_error(other),
    }
}

/// 504 for a revision that does not exist yet. The client is told to wait a second.
pub(crate) fn too_large(wanted: u64, current: i64) -> Status {
    Status::too_large_resource_version(wanted, current as u64, 1)
}

/// 410 for a list at a revision that is gone.
pub(crate) fn list_expired() -> Status {
    Status::expired("The resourceVersion for the provided list is too old.")
}

/// 500 for an object that cannot be decrypted or decoded.
pub(crate) fn broken(malformed: Malformed, key: &str, broken: &Broken) -> Status {
    match malformed {
        Malformed::Reported => Status::internal_error(&broken.why),
        Malformed::Deletable => Status::internal_error(corrupt(key, broken)),
    }
}

/// 500 for a list with such objects, by their full keys: the first, or, where they can be deleted, all of them.
pub(crate) fn broken_list<'a>(
    malformed: Malformed,
    resource: &GroupResource,
    mut broken: impl Iterator<Item = (String, &'a Broken)>,
) -> Result<(), Status> {
    let mut causes = Vec::new();
    for (key, problem) in broken.by_ref() {
        if malformed == Malformed::Reported {
            return Err(match problem.problem {
                Problem::Untransformable => {
                    Status::internal_error(format!("unable to transform key {key:?}: {}", problem.why))
                }
                Problem::Undecodable => Status::unknown(&*problem.why),
            });
        }
        if causes.len() == MAX_BROKEN_LISTED {
            causes.push(Cause::new("FieldValueTooMany", "too many errors, the list is truncated", ""));
            break;
        }
        causes.push(Cause::new("UnexpectedServerResponse", corrupt(&key, problem), key));
    }
    if causes.is_empty() { Ok(()) } else { Err(Status::store_read_error(resource, "list", causes)) }
}

/// The reference's storage error, code and all.
fn corrupt(key: &str, broken: &Broken) -> String {
    let problem = match broken.problem {
        Problem::Untransformable => "data from the storage is not transformable",
        Problem::Undecodable => "object not decodable",
    };
    format!(
        "StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {problem} \
         revision=0: {}",
        broken.why
    )
}

/// What strconv.ParseUint says inside the reference's 500.
pub(crate) fn bad_resource_version(text: &str) -> Status {
    let problem = if text.bytes().all(|b| b.is_ascii_digit()) { "value out of range" } else { "invalid syntax" };
    Status::unknown(format!("strconv.ParseUint: parsing {text:?}: {problem}"))
}
