//! Answers over HTTP/1.1, one request a connection, with threads: a handful of requests come in the life of a companion.

use crate::flags::Options;
use crate::{Announcement, PATH};
use kubelith_system::files;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Held while the companion runs, so that two of them do not tell two servers the same folder.
const LOCK_FILE: &str = "companion.lock";
/// Where the server's objects go, below the data folder.
const STORE: &str = "kubelith";
/// Connections at a time; further ones are closed.
const MAX_CONNECTIONS: usize = 64;
/// What a client gets to send its request, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// A longer head of a request is no question for us.
const MAX_HEAD_BYTES: usize = 16 << 10;
const STACK_BYTES: usize = 128 << 10;

/// The release whose answers these are.
pub const ETCD_VERSION: &str = "3.6.0";

const NO_ETCD: &str = "This is the companion of Kubelith's kube-apiserver, not an etcd: it keeps no keys.\n";

/// A companion that listens already.
#[derive(Debug)]
pub struct Companion {
    listeners: Vec<TcpListener>,
    announcement: Announcement,
    _lock: File,
}

impl Companion {
    /// Makes the data folder, if there is none, locks it and listens.
    pub fn open(options: &Options) -> Result<Companion, String> {
        let failed = |what: &str, why: io::Error| format!("{what} {}: {why}", options.data_dir.display());
        files::make_private_folder(&options.data_dir).map_err(|why| failed("cannot make the data folder", why))?;
        let folder = options.data_dir.canonicalize().map_err(|why| failed("cannot use the data folder", why))?;
        let lock = File::create(folder.join(LOCK_FILE)).map_err(|why| failed("cannot lock", why))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(format!("the data folder {} is in use by another companion", folder.display()));
            }
            Err(TryLockError::Error(why)) => return Err(failed("cannot lock", why)),
        }
        let bind = |address| TcpListener::bind(address).map_err(|why| format!("listen tcp {address}: bind: {why}"));
        let listeners = options.listen.iter().map(bind).collect::<Result<Vec<_>, _>>()?;
        let announcement = Announcement { folder: folder.join(STORE), sync: options.sync };
        Ok(Companion { listeners, announcement, _lock: lock })
    }

    /// Answers for as long as the process lives.
    pub fn run(self) -> io::Result<()> {
        let announcement: Arc<[u8]> = self.announcement.to_bytes().into();
        let connections = Arc::new(AtomicUsize::new(0));
        let mut listeners = self.listeners.into_iter();
        let first = listeners.next();
        for listener in listeners {
            let (announcement, connections) = (announcement.clone(), connections.clone());
            thread(move || accept(&listener, &announcement, &connections))?;
        }
        if let Some(listener) = first {
            accept(&listener, &announcement, &connections);
        }
        Ok(())
    }

    pub fn listeners(&self) -> &[TcpListener] {
        &self.listeners
    }
}

fn thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).map(|_| ())
}

fn accept(listener: &TcpListener, announcement: &Arc<[u8]>, connections: &Arc<AtomicUsize>) {
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // Out of files, for now.
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        if connections.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
            connections.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (announcement, connections) = (announcement.clone(), connections.clone());
        let ended = connections.clone();
        let started = thread(move || {
            // Whoever does not take the answer does not want it.
            let _ = converse(stream, &announcement);
            connections.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_err() {
            ended.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn converse(mut stream: TcpStream, announcement: &[u8]) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    let mut piece = [0; 2048];
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        let count = stream.read(&mut piece)?;
        if count == 0 || head.len() + count > MAX_HEAD_BYTES {
            return Ok(());
        }
        head.extend_from_slice(&piece[..count]);
    }
    let (status, kind, body) = answer(&head, announcement);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body)
}

fn answer(head: &[u8], announcement: &[u8]) -> (&'static str, &'static str, Vec<u8>) {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    let (text, json) = ("text/plain; charset=utf-8", "application/json");
    match (method, path) {
        (b"GET", b"/health") => ("200 OK", json, br#"{"health":"true","reason":""}"#.to_vec()),
        (b"GET", b"/readyz" | b"/livez") => ("200 OK", text, b"ok\n".to_vec()),
        (b"GET", b"/version") => {
            let version =
                format!(r#"{{"etcdserver":"{ETCD_VERSION}","etcdcluster":"{ETCD_VERSION}","storage":"3.6.0"}}"#);
            ("200 OK", json, version.into_bytes())
        }
        (b"GET", path) if path == PATH.as_bytes() => ("200 OK", text, announcement.to_vec()),
        _ => ("404 Not Found", text, NO_ETCD.as_bytes().to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fsync;

    #[test]
    fn questions_are_answered() {
        let told = Announcement { folder: "/d".into(), sync: Fsync::Never };
        for (request, status, body) in [
            ("GET /health HTTP/1.1\r\n\r\n", "200 OK", r#"{"health":"true","reason":""}"#),
            ("GET /health?serializable=true HTTP/1.1\r\n\r\n", "200 OK", r#"{"health":"true","reason":""}"#),
            ("GET /kubelith/companion HTTP/1.1\r\n\r\n", "200 OK", "kubelith companion\nfsync no\n/d"),
            ("GET / HTTP/1.1\r\n\r\n", "404 Not Found", NO_ETCD),
            ("PRI * HTTP/2.0\r\n\r\n", "404 Not Found", NO_ETCD),
            ("POST /health HTTP/1.1\r\n\r\n", "404 Not Found", NO_ETCD),
        ] {
            let (found, _, text) = answer(request.as_bytes(), &told.to_bytes());
            assert_eq!((found, text.as_slice()), (status, body.as_bytes()), "{request}");
        }
    }

    #[test]
    fn a_folder_has_one_companion() {
        let dir = tempfile::tempdir().unwrap();
        let options = || Options {
            data_dir: dir.path().join("new"),
            listen: vec!["127.0.0.1:0".parse().unwrap()],
            sync: Fsync::Never,
        };
        let first = Companion::open(&options()).unwrap();
        assert!(Companion::open(&options()).unwrap_err().contains("is in use by another companion"));
        drop(first);
        assert_eq!(Companion::open(&options()).unwrap().listeners().len(), 1);
    }
}
