//! A webhook server that breaks the rules of HTTP, with a certificate of its own, and counts who is connected.

use kubelith_codec::base64;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// An authority, by another name than all others.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// As `caBundle` takes it.
    pub fn bundle(&self) -> String {
        base64::encode(self.0.pem().as_bytes())
    }

    fn server(&self) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let chain = vec![CertificateDer::from(params.signed_by(&key, &self.0).unwrap().der().to_vec())];
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).unwrap())
    }
}

type Stream = BufReader<StreamOwned<ServerConnection, TcpStream>>;

/// Runs until it is dropped, which breaks all connections.
pub struct Wild {
    pub address: SocketAddr,
    pub calls: Arc<AtomicUsize>,
    pub connected: Arc<AtomicUsize>,
    open: Arc<Mutex<Option<Vec<TcpStream>>>>,
}

impl Wild {
    pub fn start(authority: &Authority) -> Wild {
        Wild::start_at(authority, (std::net::Ipv4Addr::LOCALHOST, 0).into())
    }

    pub fn start_at(authority: &Authority, address: SocketAddr) -> Wild {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.bind(&address.into()).unwrap();
        socket.listen(16).unwrap();
        let listener = TcpListener::from(socket);
        let (calls, connected) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let wild = Wild {
            address: listener.local_addr().unwrap(),
            calls: calls.clone(),
            connected: connected.clone(),
            open: Arc::new(Mutex::new(Some(Vec::new()))),
        };
        let (open, tls) = (wild.open.clone(), authority.server());
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                match &mut *open.lock().unwrap() {
                    Some(all) => all.push(socket.try_clone().unwrap()),
                    None => return,
                }
                let (calls, connected, tls) = (calls.clone(), connected.clone(), tls.clone());
                std::thread::spawn(move || {
                    connected.fetch_add(1, Ordering::SeqCst);
                    let connection = ServerConnection::new(tls).unwrap();
                    let mut stream = BufReader::new(StreamOwned::new(connection, socket));
                    while exchange(&mut stream, &calls).is_some() {}
                    let _ = stream.get_ref().sock.shutdown(Shutdown::Both);
                    connected.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        wild
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{}/{path}", self.address)
    }
}

impl Drop for Wild {
    fn drop(&mut self) {
        let open = self.open.lock().unwrap().take();
        for socket in open.into_iter().flatten() {
            let _ = socket.shutdown(Shutdown::Both);
        }
        // Wakes the one that accepts, which ends then and frees the port.
        let _ = TcpStream::connect(self.address);
        let end = Instant::now() + crate::support::LIMIT;
        while TcpStream::connect(self.address).is_ok() {
            assert!(Instant::now() < end, "the port is still taken");
        }
    }
}

/// One request and what it deserves; `None` ends the connection.
fn exchange(stream: &mut Stream, calls: &AtomicUsize) -> Option<()> {
    let (path, review) = read(stream)?;
    calls.fetch_add(1, Ordering::SeqCst);
    let uid = review["request"]["uid"].clone();
    let allowed = |more: Value| {
        let mut response = json!({"uid": uid, "allowed": true});
        for (key, value) in more.as_object().into_iter().flatten() {
            response[key] = value.clone();
        }
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}).to_string()
    };
    let patch = |value: &str| {
        let patch = json!([{"op": "add", "path": "/metadata/annotations", "value": {"big": value}}]).to_string();
        json!({"patchType": "JSONPatch", "patch": base64::encode(patch.as_bytes())})
    };
    let mut say = |text: &str| {
        let socket = stream.get_mut();
        socket.write_all(text.as_bytes()).and_then(|()| socket.flush()).ok()
    };
    let whole = |kind: &str, body: &str| {
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    let json = "application/json";
    match path.as_str() {
        "allow" => say(&whole(json, &allowed(json!({})))),
        "other-type" => say(&whole("text/plain", &allowed(json!({})))),
        "big-patch" => say(&whole(json, &allowed(patch(&"x".repeat(10 << 20))))),
        "slow" => {
            say("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")?;
            std::thread::sleep(Duration::from_millis(300));
            let body = allowed(json!({}));
            say(&format!("Content-Length: {}\r\n\r\n{}", body.len(), &body[..10]))?;
            std::thread::sleep(Duration::from_millis(300));
            say(&body[10..])
        }
        "headers-only" => say("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n").and(None),
        "half-body" => say("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"half\":").and(None),
        "half-chunk" => say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{\"half\":").and(None),
        "garbage" => say("garbage of a line\r\nand more\r\n\r\n").and(None),
        "odd-code" => say("HTTP/1.1 2oo OK\r\n\r\n").and(None),
        "odd-status" => {
            let status = json!({"status": "Odd", "message": "m", "code": 418});
            say(&whole(json, &allowed(json!({"allowed": false, "status": status}))))
        }
        path if path.starts_with("to-plain/") => {
            let to = path.trim_start_matches("to-plain/");
            say(&format!("HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:{to}/there\r\nContent-Length: 0\r\n\r\n"))
        }
        "half-headers" => say("HTTP/1.1 200 OK\r\nContent-Le").and(None),
        "half-status" => say("HTTP/1.1 20").and(None),
        "no-colon" => say("HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 0\r\n\r\n").and(None),
        "odd-length" => say("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n").and(None),
        "odd-coding" => say("HTTP/1.1 200 OK\r\nTransfer-Encoding: odd\r\n\r\nhello").and(None),
        "odd-chunk" => say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n").and(None),
        "odd-type" => say(&whole("application//;json", &allowed(json!({})))).and(None),
        "no-gzip" => say("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\n0123456789").and(None),
        "gzip" => {
            let body = kubelith_codec::gzip::compress(allowed(json!({})).as_bytes());
            let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", body.len());
            say(&head)?;
            let socket = stream.get_mut();
            socket.write_all(&body).and_then(|()| socket.flush()).ok()
        }
        "in-circles" | "to-nowhere" | "to-refused" => {
            let to = match path.as_str() {
                "in-circles" => "/in-circles",
                "to-nowhere" => "ht!tp://%zz",
                _ => "https://127.0.0.1:1/x",
            };
            let answer = format!("HTTP/1.1 302 X\r\nLocation: {to}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
            say(&answer).and(None)
        }
        "later" => say("HTTP/1.1 503 X\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").and(None),
        "busy-once" if calls.load(Ordering::SeqCst).is_multiple_of(2) => {
            say("HTTP/1.1 429 X\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n")
        }
        "busy-once" => say(&whole(json, &allowed(json!({})))),
        "wrong-type" => say(&whole(json, &allowed(json!({"allowed": false, "status": {"details": "x"}})))).and(None),
        "body-without-end" => {
            say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            loop {
                say("1\r\n{\r\n")?;
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        "flood" => {
            say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
            loop {
                say(&chunk)?;
            }
        }
        // Until the other side closes.
        _ => stream.read(&mut [0]).ok().filter(|n| *n > 0).map(drop),
    }
}

/// Answers one request over plain HTTP with a refusal in the words of its path; the port.
pub fn plain() -> u16 {
    let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let Ok((socket, _)) = listener.accept() else { return };
        let mut stream = BufReader::new(socket);
        let Some((path, review)) = read(&mut stream) else { return };
        let status = json!({"message": format!("{path} by plain")});
        let response = json!({"uid": review["request"]["uid"], "allowed": false, "status": status});
        let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        let body = body.to_string();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
        let _ = stream.get_mut().write_all(format!("{head}{body}").as_bytes());
    });
    port
}

fn read(stream: &mut impl BufRead) -> Option<(String, Value)> {
    let mut line = String::new();
    stream.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let path = line.split(' ').nth(1)?.trim_start_matches('/').split('?').next()?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        if stream.read_line(&mut line).ok()? <= 2 {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((path, serde_json::from_slice(&body).unwrap_or_default()))
}
