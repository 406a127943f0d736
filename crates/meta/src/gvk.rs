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

/// Orders API versions as Kubernetes prefers them: v2 over v1 over v1beta2 over v1alpha1, and those that are no such
/// version last, by name. Greater is preferred.
pub fn compare_versions(a: &str, b: &str) -> std::cmp::Ordering {
    match (version_rank(a), version_rank(b)) {
        (Some(x), Some(y)) => x.cmp(&y),
        (Some(_), None) => std::cmp::Ordering::Greater,
        (None, Some(_)) => std::cmp::Ordering::Less,
        (None, None) => b.cmp(a),
    }
}

/// Stability, major, minor.
fn version_rank(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let major = positive(&rest[..end])?;
    let rest = &rest[end..];
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    let (stability, minor) = match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
        (Some(minor), _) => (1, minor),
        (_, Some(minor)) => (0, minor),
        _ => return None,
    };
    Some((stability, major, positive(minor)?))
}

/// A number without leading zeros, from 1 on.
fn positive(digits: &str) -> Option<u64> {
    if digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit()) { None } else { digits.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_by_stability() {
        let mut versions =
            ["v1alpha1", "foo10", "v1", "v10", "v2beta1", "v1beta2", "foo1", "v11alpha2", "v3beta1", "v2"];
        versions.sort_by(|a, b| compare_versions(b, a));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v3beta1", "v2beta1", "v1beta2", "v11alpha2", "v1alpha1", "foo1", "foo10"]
        );
    }
}
