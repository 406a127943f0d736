//! What is counted of an issuer.

use crate::traits::Authentication;
use std::time::Duration;

pub trait IssuerMetrics: Send + Sync {
    /// A token of the issuer was looked at.
    fn checked(&self, issuer: &str, outcome: &Authentication, took: Duration);

    /// The issuer was asked for its keys: its answer, if it was one.
    fn asked_for_keys(&self, issuer: &str, keys: Option<&[u8]>);
}

/// Nobody wants to know.
pub struct Uncounted;

impl IssuerMetrics for Uncounted {
    fn checked(&self, _: &str, _: &Authentication, _: Duration) {}

    fn asked_for_keys(&self, _: &str, _: Option<&[u8]>) {}
}
