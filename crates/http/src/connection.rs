//! What is known of the connection that a request came by.

use crate::askers::Askers;
use std::net::SocketAddr;

pub use kubelith_auth::PeerCertificates;

/// What is known of a request's connection.
#[derive(Debug)]
pub struct ConnectionInfo {
    pub remote: SocketAddr,
    pub local: SocketAddr,
    pub peer_certificates: Option<PeerCertificates>,
    /// When more is read from it depends on them.
    pub askers: Askers,
}
