//! `/logs` (`--enable-logs-handler`): the files below a folder, as a file server shows them.

use super::{Listing, Routes};
use bytes::Bytes;
use futures::stream;
use http::header::{CONTENT_LENGTH, LOCATION};
use http::{HeaderValue, Method, StatusCode};
use kubelith_http::{Body, BoxHandler, Reply, Request, Response, respond};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::fmt::Write;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

const PREFIX: &str = "/logs/";
/// Of a file in memory at a time.
const CHUNK: usize = 64 * 1024;
/// What tells a text from anything else.
const SNIFFED: usize = 512;
/// Longer names are no files.
const MAX_NAME: usize = 255;

pub fn install(routes: &mut Routes, folder: impl Into<PathBuf>) {
    let folder: Arc<Path> = folder.into().into();
    let handler: BoxHandler = Arc::new(move |request: Request| -> Reply {
        let folder = folder.clone();
        Reply::pending(async move { serve(&folder, &request).await })
    });
    routes.exact("/logs", Listing::Listed, handler.clone());
    routes.prefix(PREFIX, Listing::Unlisted, handler);
}

async fn serve(folder: &Path, request: &Request) -> Response {
    if request.method() != Method::GET {
        return respond::error_text(StatusCode::METHOD_NOT_ALLOWED, "405: Method Not Allowed");
    }
    let path = request.uri().path();
    let Ok(inner) = percent_decode_str(path.strip_prefix(PREFIX).unwrap_or("")).decode_utf8() else {
        return not_found();
    };
    if inner.split('/').any(|part| part.len() > MAX_NAME) {
        return not_found();
    }
    // Nothing above the folder: neither by name nor, since links are not followed out of it, by a link.
    if !Path::new(inner.as_ref()).components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir)) {
        return respond::error_text(StatusCode::BAD_REQUEST, "invalid URL path");
    }
    match answer(folder, &inner, path).await {
        Ok(response) => response,
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            respond::error_text(StatusCode::FORBIDDEN, "403 Forbidden")
        }
        Err(_) => not_found(),
    }
}

fn not_found() -> Response {
    respond::not_found()
}

async fn answer(folder: &Path, inner: &str, path: &str) -> io::Result<Response> {
    let target = tokio::fs::canonicalize(folder.join(inner)).await?;
    if !target.starts_with(tokio::fs::canonicalize(folder).await?) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let metadata = tokio::fs::metadata(&target).await?;
    if metadata.is_dir() {
        if !path.ends_with('/') {
            let name = path.rsplit('/').next().unwrap_or_default();
            return Ok(redirect(&format!("{name}/")));
        }
        return list(&target).await;
    }
    if path.ends_with('/') {
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        return Ok(redirect(&format!("../{name}")));
    }
    let mut response = send(File::open(&target).await?).await?;
    response.headers_mut().insert(CONTENT_LENGTH, metadata.len().into());
    Ok(response)
}

fn redirect(to: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(LOCATION, to);
    }
    response
}

async fn list(folder: &Path) -> io::Result<Response> {
    let mut entries = tokio::fs::read_dir(folder).await?;
    let mut names = Vec::new();
    while let Some(entry) = entries.next_entry().await? {
        let slash = if entry.file_type().await?.is_dir() { "/" } else { "" };
        names.push(format!("{}{slash}", entry.file_name().to_string_lossy()));
    }
    names.sort();
    let mut html = String::from("<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n");
    for name in names {
        let (bare, slash) = name.strip_suffix('/').map_or((name.as_str(), ""), |bare| (bare, "/"));
        let link = utf8_percent_encode(bare, &PLAIN);
        let _ = writeln!(html, "<a href=\"{link}{slash}\">{}</a>", escape(&name));
    }
    html.push_str("</pre>\n");
    Ok(respond::with_type(StatusCode::OK, HeaderValue::from_static("text/html; charset=utf-8"), html))
}

/// What may stand in a link as it is.
const PLAIN: percent_encoding::AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&#34;").replace('\'', "&#39;")
}

async fn send(mut file: File) -> io::Result<Response> {
    let mut start = vec![0; SNIFFED];
    let mut length = 0;
    while length < SNIFFED {
        match file.read(&mut start[length..]).await? {
            0 => break,
            read => length += read,
        }
    }
    start.truncate(length);
    let media_type = media_type(&start);
    let rest = stream::unfold((Some(Bytes::from(start)), file), |(start, mut file)| async move {
        if let Some(start) = start.filter(|s| !s.is_empty()) {
            return Some((Ok(start), (None, file)));
        }
        let mut chunk = vec![0; CHUNK];
        match file.read(&mut chunk).await {
            Ok(0) => None,
            Ok(read) => {
                chunk.truncate(read);
                Some((Ok(Bytes::from(chunk)), (None, file)))
            }
            Err(why) => Some((Err(why.into()), (None, file))),
        }
    });
    let mut response = Response::new(Body::stream(rest));
    response.headers_mut().insert(http::header::CONTENT_TYPE, media_type);
    Ok(response)
}

/// By the first bytes, as a file server guesses.
fn media_type(start: &[u8]) -> HeaderValue {
    let binary = |b: &u8| matches!(*b, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    HeaderValue::from_static(match start {
        [0x1f, 0x8b, 0x08, ..] => "application/x-gzip",
        text if !text.iter().any(binary) => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ADMIN_TOKEN, TestServer};

    #[tokio::test]
    async fn files_folders_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let logs = dir.path().join("log");
        std::fs::create_dir_all(logs.join("pods")).unwrap();
        std::fs::write(dir.path().join("secret"), "no").unwrap();
        std::fs::write(logs.join("a<b>.log"), "one\ntwo\n").unwrap();
        std::fs::write(logs.join("old.gz"), [0x1f, 0x8b, 8, 0, 0]).unwrap();
        std::fs::write(logs.join("large"), vec![b'x'; 3 * CHUNK + 1]).unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), logs.join("link")).unwrap();
        let server = TestServer::start(|b| b.routes(|routes| install(routes, logs))).await;
        let listing = server.get("/logs/", ADMIN_TOKEN).await;
        assert!(listing.text().contains("<a href=\"a%3Cb%3E.log\">a&lt;b&gt;.log</a>\n"), "{}", listing.text());
        assert!(listing.text().contains("<a href=\"pods/\">pods/</a>"));
        for (path, code, media_type, length) in [
            ("/logs/a%3Cb%3E.log", 200, "text/plain; charset=utf-8", 8),
            ("/logs/old.gz", 200, "application/x-gzip", 5),
            ("/logs/large", 200, "text/plain; charset=utf-8", 3 * CHUNK + 1),
            ("/logs/nothing", 404, "text/plain; charset=utf-8", 19),
            ("/logs/link", 404, "text/plain; charset=utf-8", 19),
            ("/logs/%2e%2e/secret", 400, "text/plain; charset=utf-8", 17),
            ("/logs/../secret", 400, "text/plain; charset=utf-8", 17),
        ] {
            let answer = server.get(path, ADMIN_TOKEN).await;
            let seen = (answer.status, answer.header("content-type"), answer.body.len());
            assert_eq!(seen, (code, media_type, length), "{path}");
        }
        for (path, to) in [("/logs/pods", "pods/"), ("/logs", "logs/")] {
            let moved = server.get(path, ADMIN_TOKEN).await;
            assert_eq!((moved.status, moved.header("location")), (301, to), "{path}");
        }
    }
}
