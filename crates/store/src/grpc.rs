//! gRPC connections over TCP, TLS and unix sockets, for etcd and for KMS plugins.

use crate::error::{Result, StoreError};
use bytes::{Buf, BufMut, Bytes};
use futures::future::BoxFuture;
use http::Uri;
use hyper_util::rt::TokioIo;
use kubelith_system::sockets::UnixStream;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder, Streaming};
use tonic::transport::{Channel, Endpoint};
use tonic::{IntoStreamingRequest, Request, Status};

/// As kube-apiserver has it: short enough to notice a dead peer soon, long enough to cost nothing.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// TLS on loaded small machines can take seconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A page of a list is megabytes: do not make the peer wait for window updates.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;
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
pub(crate) enum Target {
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

/// A channel that connects on first use and again whenever the connection is lost; straight, unless `dial` does it.
pub(crate) fn channel(target: Target, dial: Option<Arc<dyn Dial>>) -> Result<Channel> {
    let scheme = if matches!(&target, Target::Tcp { tls: Some(_), .. }) { "https" } else { "http" };
    let invalid = |error: &dyn std::fmt::Display| StoreError::Invalid(format!("bad endpoint {target:?}: {error}"));
    let origin: Uri = format!("{scheme}://{}", target.authority()).parse().map_err(|error| invalid(&error))?;
    // The connector below does TLS itself; the origin is what the peer is told.
    let endpoint = Endpoint::from_shared(format!("http://{}", target.authority()))
        .map_err(|error| invalid(&error))?
        .origin(origin)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let target = Arc::new(target);
    let connector = tower::service_fn(move |_: Uri| {
        let (target, dial) = (target.clone(), dial.clone());
        async move {
            match tokio::time::timeout(CONNECT_TIMEOUT, target.connect(dial.as_deref())).await {
                Ok(connected) => connected.map(TokioIo::new),
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
            }
        }
    });
    Ok(endpoint.connect_with_connector_lazy(connector))
}

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

/// One call of a method such as `/etcdserverpb.KV/Range`.
pub(crate) async fn unary<Q, A>(channel: Channel, method: &'static str, request: Q) -> Result<A, Status>
where
    Q: prost::Message,
    A: prost::Message + Default,
{
    let answer = unary_of_bytes(channel, method, request.encode_to_vec().into()).await?;
    A::decode(answer).map_err(|error| Status::internal(error.to_string()))
}

async fn unary_of_bytes(channel: Channel, method: &'static str, request: Bytes) -> Result<Bytes, Status> {
    let mut grpc = client(channel);
    ready(&mut grpc).await?;
    let path = http::uri::PathAndQuery::from_static(method);
    Ok(grpc.unary(Request::new(request), path, Encoded).await?.into_inner())
}

/// Leaves messages as they are on the wire: what tonic does for a call is compiled once, not for each method.
struct Encoded;

impl Codec for Encoded {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Encoded;
    type Decoder = Encoded;

    fn encoder(&mut self) -> Encoded {
        Encoded
    }

    fn decoder(&mut self) -> Encoded {
        Encoded
    }
}

impl Encoder for Encoded {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }
}

impl Decoder for Encoded {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// A call with streams both ways.
pub(crate) async fn streaming<Q, A, S>(
    channel: Channel,
    method: &'static str,
    requests: impl IntoStreamingRequest<Message = Q, Stream = S>,
) -> Result<Streaming<A>, Status>
where
    Q: prost::Message + Send + Sync + 'static,
    A: prost::Message + Default + Send + Sync + 'static,
    S: futures::Stream<Item = Q> + Send + 'static,
{
    let mut grpc = client(channel);
    ready(&mut grpc).await?;
    let codec = tonic_prost::ProstCodec::<Q, A>::default();
    let path = http::uri::PathAndQuery::from_static(method);
    Ok(grpc.streaming(requests.into_streaming_request(), path, codec).await?.into_inner())
}

/// Without tonic's limit of 4 MB: a list's page or a watch's batch may be larger, and the peer is trusted.
fn client(channel: Channel) -> tonic::client::Grpc<Channel> {
    tonic::client::Grpc::new(channel).max_decoding_message_size(usize::MAX).max_encoding_message_size(usize::MAX)
}

async fn ready(grpc: &mut tonic::client::Grpc<Channel>) -> Result<(), Status> {
    grpc.ready().await.map_err(|error| Status::from_error(Box::new(error)))
}

/// Whether the call failed before anything was sent.
pub(crate) fn never_sent(status: &Status) -> bool {
    let mut source = std::error::Error::source(status);
    while let Some(error) = source {
        if error.is::<tonic::ConnectError>() {
            return true;
        }
        source = error.source();
    }
    false
}
