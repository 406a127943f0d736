//! A group version as a whole.

use kubelith_meta::{GroupVersion, Str};

/// One group version: one text of the catalogue.
#[derive(Debug, Clone, PartialEq)]
pub struct Api {
    pub gv: GroupVersion,
    pub serve: Serve,
    /// Where the group stands in discovery: higher comes first. Also an APIService's groupPriorityMinimum.
    pub group_priority: i32,
    /// Where the version stands in its group. Also an APIService's versionPriority.
    pub version_priority: i32,
    /// What the OpenAPI names of its types begin with: `io.k8s.api.apps.v1`.
    pub models: Str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Serve {
    /// Served unless `--runtime-config` says otherwise.
    Default,
    /// Served if `--runtime-config` asks for it.
    OnRequest,
    /// Only known: versions that are gone but can be met in storage, and types that are no resources.
    Never,
}
