//! rbac.authorization.k8s.io

pub mod bindings;
pub mod cluster_role;
pub mod cluster_role_binding;
pub mod role;
pub mod role_binding;
pub mod roles;
