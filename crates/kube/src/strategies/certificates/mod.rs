//! The kinds of certificates.k8s.io.

pub mod signing_request;
