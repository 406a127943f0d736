//! A server for tests: on a free loopback port, with real TLS, in this process.

use crate::chain::ChainConfig;
use crate::filters::authentication::AuthenticationOptions;
use crate::lifecycle::Lifecycle;
use crate::loopback::LoopbackClient;
use crate::server::{ServerBuilder, ServerConfig, ServerFailed};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use kubelith_auth::authn::anonymous::Anonymous;
use kubelith_auth::authn::bearer::BearerToken;
use kubelith_auth::authn::groups::AuthenticatedGroupAdder;
use kubelith_auth::authn::token_file::TokenFile;
use kubelith_auth::authn::union::{OnError, Union};
use kubelith_auth::authn::x509::{CaPool, ClientCertificate};
use kubelith_auth::authz::builtin::PrivilegedGroup;
use kubelith_auth::clock::SystemClock;
use kubelith_auth::user::GROUP_MASTERS;
use kubelith_auth::{Authenticator, User};
use kubelith_features::VersionInfo;
use kubelith_listen::{BindOptions, HttpOptions, ListenStats, Listener, Sharing, bind};
use kubelith_observe::metrics::Metrics;
use kubelith_tls::{CertKeyFiles, DynamicTls, Pki, PkiOptions, TlsOptions, TlsPolicy};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

/// The token of user `admin` in system:masters.
pub const ADMIN_TOKEN: &str = "admintoken";
/// The token of user `alice` in `devs`.
pub const USER_TOKEN: &str = "usertoken";

pub struct TestServer {
    pub address: SocketAddr,
    pub loopback: LoopbackClient,
    pub tls: Arc<DynamicTls>,
    pub lifecycle: Lifecycle,
    pub stats: Arc<ListenStats>,
    /// The chain's filters in request order.
    pub filter_names: Vec<&'static str>,
    stop: CancellationToken,
    running: JoinHandle<Result<(), ServerFailed>>,
    dir: PathBuf,
}

/// Where a server is found, and how it speaks HTTP.
#[derive(Debug, Clone, Default)]
pub struct Place<'a> {
    /// Names in its certificate besides `localhost`.
    pub names: &'a [&'a str],
    /// 0 for a free one.
    pub port: u16,
    pub http: HttpOptions,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or("<not UTF-8>")
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("")
    }
}

impl TestServer {
    /// Starts a server whose builder `set_up` completes.
    pub async fn start(set_up: impl FnOnce(ServerBuilder) -> ServerBuilder) -> TestServer {
        TestServer::start_with(|_| {}, set_up).await
    }

    /// As [`TestServer::start`], with another configuration.
    pub async fn start_with(
        configure: impl FnOnce(&mut ServerConfig),
        set_up: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> TestServer {
        TestServer::start_at(Place::default(), configure, set_up).await
    }

    /// As [`TestServer::start_with`], at a place of the caller's choice.
    pub async fn start_at(
        place: Place<'_>,
        configure: impl FnOnce(&mut ServerConfig),
        set_up: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> TestServer {
        let dir = std::env::temp_dir()
            .join(format!("kubelith-test-{}", kubelith_meta::random::uid(kubelith_meta::random::random_bits)));
        let names = place.names.iter().copied().chain(["localhost"]);
        let options = PkiOptions::all(names, [Ipv4Addr::LOCALHOST.into()]);
        let pki = Pki::open(dir.join("pki"), options).expect("certificates");
        let mut config = test_config(&pki);
        configure(&mut config);
        let server = set_up(ServerBuilder::new(config, Metrics::new())).build();

        let tls = DynamicTls::load(TlsOptions {
            serving: CertKeyFiles { cert: pki.serving_cert(), key: pki.serving_key() },
            sni: Vec::new(),
            client_ca_files: vec![pki.ca_cert()],
            policy: TlsPolicy::default(),
            alpn: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        });
        let socket = BindOptions { address: Ipv4Addr::LOCALHOST.into(), port: place.port, sharing: Sharing::Exclusive };
        let socket = bind(&socket).expect("a free port");
        let tls = Arc::new(tls.expect("TLS"));
        let listener = Listener::new(socket, tls.clone(), place.http);
        let stats = listener.stats();
        let address = listener.local_addr().expect("an address");
        let (stop, loopback) = (CancellationToken::new(), server.loopback());
        let lifecycle = server.lifecycle();
        let filter_names = server.filter_names().to_vec();
        let running = tokio::spawn(server.run(listener, stop.clone()));
        TestServer { address, loopback, tls, lifecycle, stats, filter_names, stop, running, dir }
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    pub fn pki_dir(&self) -> PathBuf {
        self.dir.join("pki")
    }

    /// The server's own authority.
    pub fn roots(&self) -> std::io::Result<rustls::RootCertStore> {
        let mut roots = rustls::RootCertStore::empty();
        let ca = CertificateDer::from_pem_file(self.pki_dir().join("ca.crt")).map_err(std::io::Error::other)?;
        roots.add(ca).map_err(std::io::Error::other)?;
        Ok(roots)
    }

    /// A TLS connection that offers `alpn` and, if asked for, the administrator's certificate.
    pub async fn connect(&self, alpn: &[u8], admin_cert: bool) -> std::io::Result<TlsStream<TcpStream>> {
        let read = |f: &str| std::fs::read(self.pki_dir().join(f));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(std::io::Error::other)?
            .with_root_certificates(self.roots()?);
        let mut config = if admin_cert {
            let cert = CertificateDer::from_pem_slice(&read("admin.crt")?).map_err(std::io::Error::other)?;
            let key = PrivateKeyDer::from_pem_slice(&read("admin.key")?).map_err(std::io::Error::other)?;
            builder.with_client_auth_cert(vec![cert], key).map_err(std::io::Error::other)?
        } else {
            builder.with_no_client_auth()
        };
        config.alpn_protocols = vec![alpn.to_vec()];
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("localhost").map_err(std::io::Error::other)?;
        tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    /// Sends one request over HTTP/1.1 with a connection of its own.
    pub async fn send(&self, request: http::Request<Full<Bytes>>) -> Answer {
        let stream = self.connect(b"http/1.1", false).await.expect("a connection");
        send_on(stream, request).await
    }

    /// GET with a bearer token; an empty one sends none.
    pub async fn get(&self, path: &str, token: &str) -> Answer {
        self.send(request("GET", path, token)).await
    }

    /// GET with the administrator's client certificate.
    pub async fn get_as_admin(&self, path: &str) -> Answer {
        let stream = self.connect(b"http/1.1", true).await.expect("a connection");
        send_on(stream, request("GET", path, "")).await
    }

    /// Asks the server to stop, without waiting.
    pub fn begin_stop(&self) {
        self.stop.cancel();
    }

    /// Waits until the server ends by itself.
    pub async fn ended(mut self) -> Result<(), ServerFailed> {
        (&mut self.running).await.expect("the server does not panic")
    }

    /// Stops the server and waits until it is gone.
    pub async fn stop(mut self) -> Result<(), ServerFailed> {
        self.stop.cancel();
        (&mut self.running).await.expect("the server does not panic")
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.cancel();
        self.running.abort();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A request without a body.
pub fn request(method: &str, path: &str, token: &str) -> http::Request<Full<Bytes>> {
    let mut builder = http::Request::builder().method(method).uri(path).header("host", "localhost");
    if !token.is_empty() {
        builder = builder.header("authorization", format!("Bearer {token}"));
    }
    builder.body(Full::default()).expect("a request")
}

async fn send_on(stream: TlsStream<TcpStream>, request: http::Request<Full<Bytes>>) -> Answer {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("a handshake");
    let driver = tokio::spawn(connection);
    let response = sender.send_request(request).await.expect("an answer");
    let (parts, body) = response.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    drop(sender);
    let _ = driver.await;
    Answer { status: parts.status.as_u16(), headers: parts.headers, body }
}

fn test_config(pki: &Pki) -> ServerConfig {
    ServerConfig {
        chain: ChainConfig {
            console: None,
            authentication: AuthenticationOptions {
                authenticator: test_authenticator(&pki.ca_cert()),
                audiences: Vec::new(),
                proxy_headers: None,
                remove_also: None,
            },
            impersonation: kubelith_auth::impersonation::Modes::All,
            authorizer: Arc::new(PrivilegedGroup),
            tracer: None,
            audit: None,
            memory_budget: None,
            service_quality: None,
            flow_control: None,
            faults: None,
            max_reads_in_flight: 400,
            max_writes_in_flight: 200,
            request_timeout: Duration::from_secs(60),
            goaway_chance: 0.0,
            hsts_directives: Vec::new(),
            cors_allowed_origins: Vec::new(),
            cbor: false,
            send_retry_after: false,
        },
        version: VersionInfo::kubelith("test", "", "1970-01-01T00:00:00Z"),
        livez_grace_period: Duration::ZERO,
        shutdown_delay: Duration::ZERO,
        watch_termination_grace_period: Duration::ZERO,
        statusz: true,
        metrics: Default::default(),
    }
}

fn test_authenticator(ca: &Path) -> Arc<dyn Authenticator> {
    let pool = CaPool::from_pem(&std::fs::read(ca).expect("the CA")).expect("a certificate");
    let pool = Arc::new(arc_swap::ArcSwapOption::from_pointee(pool));
    let tokens = TokenFile::new([
        (ADMIN_TOKEN.to_owned(), User::named("admin").with_groups(&[GROUP_MASTERS])),
        (USER_TOKEN.to_owned(), User::named("alice").with_groups(&["devs"])),
    ]);
    let credentials = Union::new(
        vec![
            Arc::new(ClientCertificate::new(pool, Arc::new(SystemClock))),
            Arc::new(BearerToken::new(Arc::new(tokens))),
        ],
        OnError::Continue,
    );
    let anyone =
        Union::new(vec![Arc::new(AuthenticatedGroupAdder(credentials)), Arc::new(Anonymous::new([]))], OnError::Fail);
    Arc::new(anyone)
}
