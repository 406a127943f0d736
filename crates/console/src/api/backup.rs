//! `GET /kubelith/v1/backup`: a copy of the embedded store, as `kubelith store backup` writes it.

use super::{Outcome, Sources};
use bytes::BytesMut;
use futures::stream;
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH};
use http::{HeaderValue, StatusCode};
use kubelith_http::{Body, BoxError, respond};
use kubelith_meta::Status;
use kubelith_store::EmbeddedStore;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::sync::Mutex;

/// Read and sent at once.
const PIECE: usize = 256 << 10;
const BINARY: HeaderValue = HeaderValue::from_static("application/octet-stream");
const UNFINISHED: &str = "console-backup.unfinished";

pub struct Backup {
    folder: PathBuf,
    store: EmbeddedStore,
    /// One copy is written at a time.
    writing: Mutex<()>,
}

impl Backup {
    /// Copies are written into `folder` and are gone once they are sent.
    pub fn new(folder: PathBuf, store: EmbeddedStore) -> Backup {
        Backup { folder, store, writing: Mutex::default() }
    }

    /// An open file without a name, and the revision.
    async fn write(&self) -> Result<(File, i64), String> {
        let _writing = self.writing.lock().await;
        let path = self.folder.join(UNFINISHED);
        // Of a process that ended in the middle of it.
        let _ = tokio::fs::remove_file(&path).await;
        let copied = self.store.backup(path.clone()).await.map_err(|why| why.to_string());
        let opened = match copied {
            Ok(revision) => File::open(&path).await.map(|file| (file, revision.0)).map_err(|why| why.to_string()),
            Err(why) => Err(why),
        };
        let _ = tokio::fs::remove_file(&path).await;
        opened
    }
}

pub async fn serve(sources: &Arc<Sources>) -> Outcome {
    let Some(backup) = &sources.backup else {
        return Err(Status::bad_request(
            "only the embedded store is copied by this server; etcd has `etcdctl snapshot save`",
        ));
    };
    let (file, revision) = backup.write().await.map_err(Status::internal_error)?;
    let size = file.metadata().await.map_err(|why| Status::internal_error(why.to_string()))?.len();
    let pieces = stream::try_unfold(file, |mut file| async move {
        let mut piece = BytesMut::with_capacity(PIECE);
        match file.read_buf(&mut piece).await? {
            0 => Ok::<_, BoxError>(None),
            _ => Ok(Some((piece.freeze(), file))),
        }
    });
    let mut response = respond::with_type(StatusCode::OK, BINARY, "").map(|_| Body::stream(pieces));
    let name = format!("attachment; filename=\"kubelith-{revision}.db\"");
    if let Ok(name) = HeaderValue::try_from(name) {
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(size));
    Ok(response)
}
