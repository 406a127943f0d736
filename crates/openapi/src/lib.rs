//! OpenAPI: what can be asked of this server, in words for machines. `/openapi/v3` has a document for each group
//! version, `/openapi/v2` one for all of them.
//!
//! A `Subject` (a group version with its descriptors) becomes `model::Paths` and the schemas of the types that these
//! name. `v3` and `v2` write both as JSON, `gnostic` as protobuf. Documents are made when they are first asked for and
//! kept compressed (`documents`); `serve` is the link of the server chain that answers with them.

pub mod discovery;
mod documents;
mod foreign;
mod gnostic;
mod library;
mod meta;
mod model;
mod names;
mod parameters;
mod published;
mod resources;
mod scalars;
mod schemas;
mod serve;
mod subject;
mod upgraded;
mod v2;
mod v3;
mod words;

#[cfg(test)]
mod tests;

pub use foreign::Foreign;
pub use library::Library;
pub use published::{DeleteAnswer, Detail, Published, Renamed, Written};
pub use serve::{OpenApi, SharedDocuments};
pub use subject::Subject;
pub use words::Words;

use kubelith_meta::GroupVersion;

/// Which version of OpenAPI a schema is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    V2,
    V3,
}

impl Dialect {
    /// How one schema refers to another.
    pub fn reference(self, name: &str) -> String {
        match self {
            Dialect::V2 => format!("#/definitions/{name}"),
            Dialect::V3 => format!("#/components/schemas/{name}"),
        }
    }
}

/// `api/v1`, `apis/apps/v1`.
fn path_of(gv: &GroupVersion) -> String {
    match gv.group.is_empty() {
        true => format!("api/{}", gv.version),
        false => format!("apis/{}/{}", gv.group, gv.version),
    }
}
