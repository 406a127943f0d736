//! Finds out whether the companion (`crates/companion`) stands where `--etcd-servers` names an etcd.

use crate::flags::Flags;
use crate::options::{Options, StorageBackend};
use kubelith_companion::{Announcement, PATH};
use kubelith_outbound::egress::Route;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// What whoever listens there gets to answer. The companion takes less than a millisecond.
const PATIENCE: Duration = Duration::from_secs(2);
/// An announcement is much shorter.
const MAX_ANSWER_BYTES: u64 = 64 << 10;
/// How long nobody may be there: as long as an etcd is waited for, at least.
const LATE: Duration = Duration::from_secs(20);
/// Between two looks while nobody is there.
const RETRY: Duration = Duration::from_millis(20);

/// The options, for the store of the companion if one answers. A companion is asked for only where one can be: one address,
/// of this machine, without TLS, and not behind a proxy.
pub async fn look(options: Options, flags: &Flags) -> Options {
    let server = match options.storage.etcd_servers.as_slice() {
        [server]
            if options.storage.backend == StorageBackend::Etcd3 && matches!(options.egress.etcd, Route::Direct) =>
        {
            server
        }
        _ => return options,
    };
    let Some(place) = server.strip_prefix("http://").map(|place| place.trim_end_matches('/')) else { return options };
    let Some(found) = find(place).await else { return options };
    tracing::info!(address = place, folder = %found.folder.display(), "no etcd but our companion: objects are kept here");
    options.beside(found, flags)
}

async fn find(place: &str) -> Option<Announcement> {
    let local = |address: &SocketAddr| address.ip().is_loopback() || address.ip().is_unspecified();
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host(place).await.ok()?.filter(local).collect();
    if addresses.is_empty() {
        return None;
    }
    let end = Instant::now() + LATE;
    loop {
        match TcpStream::connect(&*addresses).await {
            Ok(stream) => return tokio::time::timeout(PATIENCE, ask(stream, place)).await.ok().flatten(),
            Err(_) if Instant::now() < end => tokio::time::sleep(RETRY).await,
            // What is wrong is told by whoever opens the store.
            Err(_) => return None,
        }
    }
}

async fn ask(mut stream: TcpStream, place: &str) -> Option<Announcement> {
    let request = format!("GET {PATH} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer).await.ok()?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let (head, body) = answer.split_at(end + 4);
    Announcement::from_bytes(body).filter(|_| head.starts_with(b"HTTP/1.1 200 "))
}
