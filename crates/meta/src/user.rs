//! The identity behind a request.

use crate::Str;
use std::collections::BTreeMap;

pub const ANONYMOUS: &str = "system:anonymous";
pub const GROUP_AUTHENTICATED: &str = "system:authenticated";
pub const GROUP_UNAUTHENTICATED: &str = "system:unauthenticated";
pub const GROUP_MASTERS: &str = "system:masters";
/// The server's own loopback client.
pub const API_SERVER: &str = "system:apiserver";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    pub name: Str,
    pub uid: Str,
    pub groups: Vec<Str>,
    pub extra: BTreeMap<Str, Vec<Str>>,
}

impl User {
    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}
