//! Calls of gRPC over TCP, TLS and unix sockets: streams of one connection of HTTP/2, and nothing between.

mod call;
mod channel;
mod pongs;

pub use call::{Call, unary};
pub use channel::{Channel, never_sent};

use futures::future::BoxFuture;
use kubelith_system::sockets::UnixStream;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Where distributions keep the certificates they trust; used when no CA file is given.
const SYSTEM_CA_FILES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Files of a TLS client. They are read anew for each connection, so that renewed certificates are used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    pub ca: Option<PathBuf>,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

impl TlsFiles {
    /// Whether the files can be used as they are now.
    pub fn check(&self) -> io::Result<()> {
        client_config(self).map(drop)
    }
}

/// Makes the connections below TLS for targets that cannot be reached straight.
pub trait Dial: Send + Sync + std::fmt::Debug {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Io>>>;
}

/// Where to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Tcp { host: String, port: u16, tls: Option<TlsFiles> },
    Unix(PathBuf),
}

impl Target {
    /// The name that the peer sees as `:authority`.
    fn authority(&self) -> String {
        match self {
            Target::Tcp { host, port, .. } if host.contains(':') => format!("[{host}]:{port}"),
            Target::Tcp { host, port, .. } => format!("{host}:{port}"),
            Target::Unix(_) => "localhost".into(),
        }
    }

    async fn connect(&self, dial: Option<&dyn Dial>) -> io::Result<Box<dyn Io>> {
        match self {
            Target::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
            Target::Tcp { host, port, tls } => {
                let stream: Box<dyn Io> = match dial {
                    Some(dial) => dial.dial(host, *port).await?,
                    None => {
                        let stream = TcpStream::connect((host.as_str(), *port)).await?;
                        stream.set_nodelay(true)?;
                        Box::new(stream)
                    }
                };
                let Some(files) = tls else { return Ok(stream) };
                let config = client_config(files)?;
                let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
                let tls = tokio_rustls::TlsConnector::from(Arc::new(config));
                Ok(Box::new(tls.connect(name, stream).await?))
            }
        }
    }
}

/// A connection's two ways.
pub trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

fn client_config(files: &TlsFiles) -> io::Result<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    let system = || SYSTEM_CA_FILES.iter().map(PathBuf::from).find(|path| path.exists());
    if let Some(ca) = files.ca.clone().or_else(system) {
        for certificate in certificates(&ca)? {
            roots.add(certificate).map_err(|error| named(&ca, error))?;
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots);
    let mut config = match (&files.certificate, &files.key) {
        (Some(certificate), Some(key)) => {
            let chain = certificates(certificate)?;
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| named(key, error))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| named(certificate, error))?
        }
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| named(path, error))?;
    read.collect::<std::result::Result<_, _>>().map_err(|error| named(path, error))
}

fn named(path: &Path, error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
