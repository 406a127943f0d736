//! HTTP/1.1 over a pipe to a server of this process: requests as they are grown, however odd, and answers byte for byte.

use kubelith::plane::Doorway;
use kubelith_conformance::http::{Request, Response};
use std::io;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};

/// Keeps a connection between requests.
pub struct Client {
    doorway: Doorway,
    connection: Option<DuplexStream>,
}

impl Client {
    pub fn new(doorway: Doorway) -> Client {
        Client { doorway, connection: None }
    }

    /// Dropped, it takes its connection along.
    pub async fn send(&mut self, request: &Request) -> io::Result<Response> {
        let mut connection = match self.connection.take() {
            Some(kept) => kept,
            None => self.doorway.open(None).ok_or(io::ErrorKind::ConnectionRefused)?,
        };
        // A pipe holds less than the longest bodies, and the server may answer before it has read all of one.
        let (reading, mut writing) = tokio::io::split(&mut connection);
        let mut reading = BufReader::new(reading);
        let bytes = request.to_bytes("kubelith");
        let answer = {
            let mut written = std::pin::pin!(writing.write_all(&bytes));
            let mut read = std::pin::pin!(answer(&mut reading, &request.method));
            let mut outcome = None;
            loop {
                tokio::select! {
                    biased;
                    done = &mut written, if outcome.is_none() => outcome = Some(done.is_ok()),
                    answer = &mut read => break answer.map(|(answer, stays)| (answer, stays && outcome == Some(true))),
                }
            }
        };
        let (answer, stays) = answer?;
        if stays {
            self.connection = Some(connection);
        }
        Ok(answer)
    }
}

/// The answer, and whether the connection can be used again.
async fn answer<R: AsyncBufReadExt + Unpin>(stream: &mut R, method: &str) -> io::Result<(Response, bool)> {
    let (status, headers) = loop {
        let head = head(stream).await?;
        if head.0 >= 200 || head.0 == 101 {
            break head;
        }
    };
    let mut answer = Response { status, headers, body: Vec::new() };
    let is_chunked = answer.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
    let length = answer.header("content-length").and_then(|value| value.parse::<u64>().ok());
    let closes = answer.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let mut stays = !closes && status != 101;
    if method == "HEAD" || matches!(status, 101 | 204 | 304) {
        return Ok((answer, stays));
    }
    match length {
        _ if is_chunked => while chunk(stream, &mut answer.body).await? {},
        Some(length) => {
            let read = (&mut *stream).take(length).read_to_end(&mut answer.body).await?;
            if (read as u64) < length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        None => {
            stream.read_to_end(&mut answer.body).await?;
            stays = false;
        }
    }
    Ok((answer, stays))
}

type Head = (u16, Vec<(String, String)>);

async fn head<R: AsyncBufReadExt + Unpin>(stream: &mut R) -> io::Result<Head> {
    let first = line(stream).await?;
    let status = first.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| invalid(format!("not a status line: {first:?}")))?;
    let mut headers = Vec::new();
    loop {
        let line = line(stream).await?;
        if line.is_empty() {
            return Ok((status, headers));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| invalid(format!("not a header: {line:?}")))?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
}

/// Appends a chunk; false after the last one.
async fn chunk<R: AsyncBufReadExt + Unpin>(stream: &mut R, out: &mut Vec<u8>) -> io::Result<bool> {
    let size = line(stream).await?;
    let length = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16);
    let length = length.map_err(|_| invalid(format!("not the size of a chunk: {size:?}")))?;
    if length == 0 {
        while !line(stream).await?.is_empty() {}
        return Ok(false);
    }
    let begin = out.len();
    out.resize(begin + length, 0);
    stream.read_exact(&mut out[begin..]).await?;
    line(stream).await?;
    Ok(true)
}

async fn line<R: AsyncBufReadExt + Unpin>(stream: &mut R) -> io::Result<String> {
    let mut line = Vec::new();
    stream.read_until(b'\n', &mut line).await?;
    if line.pop() != Some(b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
