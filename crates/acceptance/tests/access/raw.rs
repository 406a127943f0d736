//! A client that sends what it is told, byte by byte: paths are not cleaned, headers are not checked.

use kubelith_conformance::http::tls_config;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// A client certificate and its key, PEM.
#[derive(Clone)]
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e} in {}: {}", self.status, self.body))
    }

    pub fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or_default().to_owned()
    }
}

/// Sends one request on a connection of its own. Status 0: the server closed without an answer.
pub fn send(
    address: SocketAddr,
    identity: Option<&Identity>,
    method: &str,
    path: &str,
    headers: &[(String, String)],
    body: &str,
) -> Answer {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() && !headers.iter().any(|(name, _)| name == "content-type") {
        head.push_str("content-type: application/json\r\n");
    }
    head.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    let mut stream = connect(address, identity);
    // A server that refuses early may close before all is written.
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.flush();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    parse(&String::from_utf8_lossy(&bytes))
}

/// The certificate that the server shows, DER.
pub fn served(address: SocketAddr) -> Vec<u8> {
    let mut stream = connect(address, None);
    let _ = stream.conn.complete_io(&mut stream.sock);
    stream.conn.peer_certificates().map(|chain| chain[0].to_vec()).unwrap_or_default()
}

/// Sends bytes on a connection of its own, and says all that came back. The server closes after a request it cannot read;
/// where it does not, it has so long.
pub fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = connect(address, None);
    stream.sock.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let _ = stream.write_all(bytes);
    let _ = stream.flush();
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard);
    String::from_utf8_lossy(&heard).into_owned()
}

/// A connection on which one of these protocols is spoken.
pub fn connect_with(address: SocketAddr, protocols: &[&[u8]]) -> StreamOwned<ClientConnection, TcpStream> {
    let tcp = TcpStream::connect(address).unwrap();
    let mut config = tls_config();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let name = ServerName::try_from("localhost").unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), tcp)
}

fn connect(address: SocketAddr, identity: Option<&Identity>) -> StreamOwned<ClientConnection, TcpStream> {
    let tcp = TcpStream::connect(address).unwrap();
    tcp.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut config = tls_config();
    if let Some(identity) = identity {
        config = with_identity(config, identity);
    }
    let name = ServerName::try_from("localhost").unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), tcp)
}

fn with_identity(mut config: ClientConfig, identity: &Identity) -> ClientConfig {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(identity.certificate.as_bytes()).collect();
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
    let signer = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).unwrap();
    let certified = Arc::new(rustls::sign::CertifiedKey::new(chain.unwrap(), signer));
    config.client_auth_cert_resolver = Arc::new(rustls::sign::SingleCertAndKey::from(certified));
    config
}

fn parse(text: &str) -> Answer {
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return Answer { status: 0, head: text.to_owned(), body: String::new() };
    };
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { unchunked(body) } else { body.to_owned() };
    Answer { status, head: head.to_owned(), body }
}

fn unchunked(mut body: &str) -> String {
    let mut out = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let Some(chunk) = rest.get(..size).filter(|_| size > 0) else { break };
        out.push_str(chunk);
        body = rest.get(size + 2..).unwrap_or("");
    }
    out
}
