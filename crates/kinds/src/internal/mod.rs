//! internal.apiserver.k8s.io

pub mod storage_version;
