//! Names of APIs: group, version, kind, resource.

use crate::Str;
use std::fmt;

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersion {
    /// Empty for the core group.
    pub group: Str,
    pub version: Str,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind {
    pub group: Str,
    pub kind: Str,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    pub group: Str,
    /// The plural in lower case, as in URLs.
    pub resource: Str,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind {
    pub group: Str,
    pub version: Str,
    pub kind: Str,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionResource {
    pub group: Str,
    pub version: Str,
    pub resource: Str,
}

impl GroupVersion {
    pub fn new(group: impl Into<Str>, version: impl Into<Str>) -> GroupVersion {
        GroupVersion { group: group.into(), version: version.into() }
    }

    /// Reads an `apiVersion`: `v1` or `group/version`. `None` if it has more than one slash.
    pub fn parse(api_version: &str) -> Option<GroupVersion> {
        match api_version.split_once('/') {
            None => Some(GroupVersion::new("", api_version)),
            Some((_, v)) if v.contains('/') => None,
            Some((g, v)) => Some(GroupVersion::new(g, v)),
        }
    }

    pub fn with_kind(&self, kind: impl Into<Str>) -> GroupVersionKind {
        GroupVersionKind { group: self.group.clone(), version: self.version.clone(), kind: kind.into() }
    }

    pub fn with_resource(&self, resource: impl Into<Str>) -> GroupVersionResource {
        GroupVersionResource { group: self.group.clone(), version: self.version.clone(), resource: resource.into() }
    }
}

impl GroupVersionKind {
    pub fn new(group: impl Into<Str>, version: impl Into<Str>, kind: impl Into<Str>) -> GroupVersionKind {
        GroupVersionKind { group: group.into(), version: version.into(), kind: kind.into() }
    }

    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(self.group.clone(), self.version.clone())
    }

    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group.clone(), kind: self.kind.clone() }
    }

    /// The `apiVersion` field of an object of this kind.
    pub fn api_version(&self) -> String {
        self.group_version().to_string()
    }
}

impl GroupVersionResource {
    pub fn new(group: impl Into<Str>, version: impl Into<Str>, resource: impl Into<Str>) -> GroupVersionResource {
        GroupVersionResource { group: group.into(), version: version.into(), resource: resource.into() }
    }

    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(self.group.clone(), self.version.clone())
    }

    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.group.clone(), resource: self.resource.clone() }
    }
}

impl GroupResource {
    pub fn new(group: impl Into<Str>, resource: impl Into<Str>) -> GroupResource {
        GroupResource { group: group.into(), resource: resource.into() }
    }
}

/// `v1`, `apps/v1`: the form of `apiVersion`.
impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { f.write_str(&self.version) } else { write!(f, "{}/{}", self.group, self.version) }
    }
}

/// `pods`, `deployments.apps`: the form of error messages.
impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { f.write_str(&self.resource) } else { write!(f, "{}.{}", self.resource, self.group) }
    }
}

/// `Pod`, `Deployment.apps`: the form of error messages.
impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { f.write_str(&self.kind) } else { write!(f, "{}.{}", self.kind, self.group) }
    }
}

/// `apps/v1, Kind=Deployment`: the form of error messages.
impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// `apps/v1, Resource=deployments`: the form of error messages.
impl fmt::Display for GroupVersionResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Resource={}", self.group, self.version, self.resource)
    }
}
