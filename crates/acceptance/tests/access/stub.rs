//! Servers that the program asks: they answer what a test wants, or hang, or close.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub enum Reply {
    Json(u16, String),
    /// Says nothing until the client gives up.
    Hang,
    /// Closes at once.
    Close,
}

type Answers = Arc<dyn Fn(&str, &str) -> Reply + Send + Sync>;

/// A server on loopback. It lives as long as the process: threads end with their connections.
pub struct Stub {
    pub port: u16,
    pub asked: Arc<AtomicUsize>,
    pub bodies: Arc<Mutex<Vec<String>>>,
}

impl Stub {
    /// `answer` is given the path and the body.
    pub fn start(answer: impl Fn(&str, &str) -> Reply + Send + Sync + 'static) -> Stub {
        Stub::serve(None, answer)
    }

    /// The same over TLS, with a certificate for localhost (PEM).
    pub fn start_tls(
        certificate: &str,
        key: &str,
        answer: impl Fn(&str, &str) -> Reply + Send + Sync + 'static,
    ) -> Stub {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain.unwrap(), key)
            .unwrap();
        Stub::serve(Some(Arc::new(config)), answer)
    }

    fn serve(tls: Option<Arc<ServerConfig>>, answer: impl Fn(&str, &str) -> Reply + Send + Sync + 'static) -> Stub {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let stub = Stub { port, asked: Arc::default(), bodies: Arc::default() };
        let (asked, bodies, answer): (_, _, Answers) = (stub.asked.clone(), stub.bodies.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for tcp in listener.incoming().map_while(Result::ok) {
                let (tls, asked, bodies, answer) = (tls.clone(), asked.clone(), bodies.clone(), answer.clone());
                std::thread::spawn(move || match tls {
                    None => exchange(tcp, &asked, &bodies, &answer),
                    Some(config) => {
                        let connection = ServerConnection::new(config).unwrap();
                        exchange(StreamOwned::new(connection, tcp), &asked, &bodies, &answer);
                    }
                });
            }
        });
        stub
    }

    /// A kubeconfig that points here.
    pub fn kubeconfig(&self, dir: &std::path::Path, name: &str) -> String {
        let path = dir.join(name);
        let text = format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: {{server: \"http://127.0.0.1:{}/hook\"}}\n\
             contexts:\n- name: x\n  context: {{cluster: c}}\ncurrent-context: x\n",
            self.port
        );
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

fn exchange(stream: impl Read + Write, asked: &AtomicUsize, bodies: &Mutex<Vec<String>>, answer: &Answers) {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    if reader.read_line(&mut first).unwrap_or(0) == 0 {
        return;
    }
    let path = first.split(' ').nth(1).unwrap_or("").to_owned();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) <= 2 {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let body = String::from_utf8_lossy(&body).into_owned();
    bodies.lock().unwrap().push(body.clone());
    asked.fetch_add(1, Ordering::SeqCst);
    match answer(&path, &body) {
        Reply::Close => {}
        // The client closes first; a test that ends earlier takes the thread along.
        Reply::Hang => std::thread::sleep(Duration::from_secs(60)),
        Reply::Json(code, text) => {
            let stream = reader.get_mut();
            let _ = write!(
                stream,
                "HTTP/1.1 {code} X\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{text}",
                text.len()
            );
            let _ = stream.flush();
        }
    }
}
