//! What is known of the connection that a request came by.

use rustls_pki_types::CertificateDer;
use std::net::SocketAddr;
use std::sync::Arc;

/// What is known of a request's connection.
#[derive(Debug)]
pub struct ConnectionInfo {
    pub remote: SocketAddr,
    pub local: SocketAddr,
    pub peer_certificates: Option<PeerCertificates>,
}

/// The chain a client sent, leaf first, unverified. The same for every request of its connection.
#[derive(Debug, Clone)]
pub struct PeerCertificates(pub Arc<[CertificateDer<'static>]>);
