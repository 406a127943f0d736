//! This server as plugins ask things of it.

use futures::future::BoxFuture;
use kubelith_meta::{Status, Value};

/// Requests of the server to itself, with all rights.
pub trait Loopback: Send + Sync + 'static {
    /// Writes the status of a quota, as long as nobody else changed it. Answers the quota as it was written.
    fn update_quota_status<'a>(&'a self, quota: &'a Value) -> BoxFuture<'a, Result<Value, Status>>;

    fn create_namespace<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Status>>;

    /// The APIResourceList of a group version, whoever serves it.
    fn resources<'a>(&'a self, group_version: &'a str) -> BoxFuture<'a, Result<Value, Status>>;
}
