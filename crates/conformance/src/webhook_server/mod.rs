//! The webhook server that recorded exchanges name: https on a fixed port of loopback, with behaviours chosen by the path.
//! The certificate is a fixed test pair, whose authority the recorded configurations carry.

mod behaviour;

use behaviour::{Answer, answer};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const PORT: u16 = 17443;
const PEM: &[u8] = include_bytes!("server.pem");
/// The certificate of whoever signed the server's, as `caBundle` takes it once it is in base64.
pub const AUTHORITY: &[u8] = include_bytes!("ca.crt");
/// Reviews hold an object twice; nothing that is recorded is larger.
const MAX_BODY: usize = 64 << 20;

/// How often each id was asked.
pub(crate) type Counts = Arc<Mutex<HashMap<String, u32>>>;

/// Whether a body names the server.
pub fn is_named_in(body: &str) -> bool {
    body.contains(&format!("127.0.0.1:{PORT}"))
}

/// Starts one on a free port, which it answers, for as long as this process lives.
pub fn start_anywhere() -> Result<u16, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|e| e.to_string())?;
    let port = listener.local_addr().map_err(|e| e.to_string())?.port();
    accept(listener)?;
    Ok(port)
}

/// Starts it for as long as this process lives. A port that is taken is somebody's who started one beforehand.
pub fn start() -> Result<(), String> {
    let listener = match TcpListener::bind(("127.0.0.1", PORT)) {
        Ok(listener) => listener,
        Err(error) if error.kind() == ErrorKind::AddrInUse => return Ok(()),
        Err(error) => return Err(format!("port {PORT}: {error}")),
    };
    accept(listener)
}

fn accept(listener: TcpListener) -> Result<(), String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(PEM).collect();
    let key = PrivateKeyDer::from_pem_slice(PEM).map_err(|e| e.to_string())?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain.map_err(|e| e.to_string())?, key)
        .map_err(|e| e.to_string())?;
    let (config, counts) = (Arc::new(config), Counts::default());
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let (config, counts) = (config.clone(), counts.clone());
            // Whoever breaks a connection off has no use for its error.
            std::thread::spawn(move || drop(serve(socket, config, &counts)));
        }
    });
    Ok(())
}

/// Answers the requests of one connection.
fn serve(socket: TcpStream, config: Arc<ServerConfig>, counts: &Counts) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(connection, socket));
    while let Some(Asked { path, authorization, body }) = read(&mut stream)? {
        let review = serde_json::from_slice(&body).unwrap_or_default();
        let (status, content_type, extra, body) = match answer(&path, &authorization, &review, counts) {
            Answer::Document(document) => (200, "application/json", String::new(), document.to_string().into_bytes()),
            Answer::Raw { status, content_type, body } => (status, content_type, String::new(), body),
            Answer::Redirect(to) => (302, "text/plain", format!("Location: {to}\r\n"), Vec::new()),
            Answer::Close => return Ok(()),
        };
        let head = format!(
            "HTTP/1.1 {status} .\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{extra}\r\n",
            body.len()
        );
        let out = stream.get_mut();
        // In one piece, or the second waits until the first is acknowledged.
        out.write_all(&[head.as_bytes(), &body].concat())?;
        out.flush()?;
    }
    Ok(())
}

/// What counts of a request.
struct Asked {
    path: String,
    authorization: String,
    body: Vec<u8>,
}

/// The next request; `None` at the end of the connection.
fn read(stream: &mut impl BufRead) -> io::Result<Option<Asked>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
    let path = if line.starts_with("POST ") { path } else { "/none".to_owned() };
    let (mut length, mut chunked, mut authorization) = (0usize, false, String::new());
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "transfer-encoding" => chunked = value.trim().eq_ignore_ascii_case("chunked"),
            "authorization" => authorization = value.trim().to_owned(),
            _ => {}
        }
    }
    let mut body = Vec::new();
    if !chunked {
        body.resize(length.min(MAX_BODY), 0);
        stream.read_exact(&mut body)?;
        return Ok(Some(Asked { path, authorization, body }));
    }
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim(), 16).unwrap_or(0).min(MAX_BODY);
        stream.by_ref().take(size as u64).read_to_end(&mut body)?;
        line.clear();
        stream.read_line(&mut line)?;
        if size == 0 {
            return Ok(Some(Asked { path, authorization, body }));
        }
    }
}
