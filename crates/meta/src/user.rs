//! The identity behind a request.

use crate::Str;
use std::collections::BTreeMap;

pub const ANONYMOUS: &str = "system:anonymous";
pub const GROUP_AUTHENTICATED: &str = "system:authenticated";
pub const GROUP_UNAUTHENTICATED: &str = "system:unauthenticated";
pub const GROUP_MASTERS: &str = "system:masters";
pub const GROUP_NODES: &str = "system:nodes";
/// The server's own loopback client.
pub const API_SERVER: &str = "system:apiserver";
/// Nodes are users named with this prefix, in the group `system:nodes`.
pub const NODE_PREFIX: &str = "system:node:";
/// The extra that names the credential: `JTI=…` of a token, `X509SHA256=…` of a certificate.
pub const EXTRA_CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    pub name: Str,
    pub uid: Str,
    pub groups: Vec<Str>,
    pub extra: BTreeMap<Str, Vec<Str>>,
}

impl User {
    pub fn named(name: impl Into<Str>) -> User {
        User { name: name.into(), ..User::default() }
    }

    pub fn with_groups<S: AsRef<str>>(mut self, groups: &[S]) -> User {
        self.groups = groups.iter().map(|g| g.as_ref().into()).collect();
        self
    }

    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// The first value of an extra, or `""`.
    pub fn extra_first(&self, key: &str) -> &str {
        self.extra.get(key).and_then(|v| v.first()).map_or("", Str::as_str)
    }
}
