//! Backups while the server runs: a socket in the store's folder takes the path of a new file, and the process
//! that has the store open writes a snapshot there.
//!
//! One line each way: `<absolute path>` in, `ok <revision>` or `error <why>` out. Who may open the socket may read
//! the data file anyway: both are for the folder's owner only.

use kubelith_store::EmbeddedStore;
use kubelith_system::sockets::{BlockingStream, UnixStream, bind_private};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};

/// The longest line that is read: paths are no longer.
const MAX_LINE: u64 = 64 << 10;

fn socket(folder: &Path) -> PathBuf {
    folder.join("backup.sock")
}

/// Answers until the future is dropped.
pub async fn serve(folder: PathBuf, store: EmbeddedStore) {
    let path = socket(&folder);
    // Whatever an earlier process left: the folder's lock says that it is gone.
    let _ = std::fs::remove_file(&path);
    let listener = match bind_private(&path) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "no backups while this server runs: cannot open the socket");
            return;
        }
    };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                if let Err(error) = answer(stream, &store).await {
                    tracing::debug!(%error, "a request for a backup ended early");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot take requests for backups");
                return;
            }
        }
    }
}

async fn answer(stream: UnixStream, store: &EmbeddedStore) -> std::io::Result<()> {
    let mut line = String::new();
    let (reading, mut writing) = tokio::io::split(stream);
    tokio::io::BufReader::new(reading.take(MAX_LINE)).read_line(&mut line).await?;
    let path = Path::new(line.trim_end_matches('\n'));
    let outcome = match path.is_absolute() {
        true => store.backup(path).await.map_err(|error| error.to_string()),
        false => Err("the path is not absolute".into()),
    };
    let reply = match outcome {
        Ok(revision) => {
            tracing::info!(path = %path.display(), revision = revision.0, "wrote a backup");
            format!("ok {revision}\n")
        }
        Err(why) => format!("error {}\n", why.replace('\n', " ")),
    };
    writing.write_all(reply.as_bytes()).await
}

/// Asks the process that has the folder open; `None` if there is none that answers.
pub fn request(folder: &Path, to: &Path) -> Option<Result<i64, String>> {
    let mut stream = BlockingStream::connect(socket(folder)).ok()?;
    let exchange = || -> std::io::Result<String> {
        stream.write_all(format!("{}\n", to.display()).as_bytes())?;
        let mut reply = String::new();
        BufReader::new(stream.take(MAX_LINE)).read_line(&mut reply)?;
        Ok(reply)
    };
    Some(match exchange() {
        Err(error) => Err(error.to_string()),
        Ok(reply) => match reply.trim_end().split_once(' ') {
            Some(("ok", revision)) => revision.parse().map_err(|_| format!("unexpected answer {reply:?}")),
            Some(("error", why)) => Err(why.to_owned()),
            _ => Err("the server ended before the backup was done".into()),
        },
    })
}
