//! HTTP/1.1 over a pipe to a server of this process: requests as they are grown, however odd, and answers byte for byte.

use kubelith::plane::Doorway;
use kubelith_conformance::http::framing::{Body, Head};
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
    let head = loop {
        let head = head(stream).await?;
        if head.status >= 200 || head.status == 101 {
            break head;
        }
    };
    let framing = Body::new(&head, method);
    let mut answer = Response { status: head.status, headers: head.headers, body: Vec::new() };
    if answer.status == 101 {
        return Ok((answer, false));
    }
    let closes = answer.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let stays = !closes && !framing.is_delimited_by_close();
    match framing {
        Body::Chunked { .. } => while chunk(stream, &mut answer.body).await? {},
        Body::Counted { left } => {
            answer.body.resize(left, 0);
            stream.read_exact(&mut answer.body).await?;
        }
        Body::UntilClose => drop(stream.read_to_end(&mut answer.body).await?),
    }
    Ok((answer, stays))
}

async fn head<R: AsyncBufReadExt + Unpin>(stream: &mut R) -> io::Result<Head> {
    let mut text = Vec::new();
    loop {
        let begin = text.len();
        stream.read_until(b'\n', &mut text).await?;
        match &text[begin..] {
            [] => return Err(io::ErrorKind::UnexpectedEof.into()),
            b"\r\n" | b"\n" => return Head::read(&mut &text[..]),
            _ => {}
        }
    }
}

/// Appends a chunk; false after the last one.
async fn chunk<R: AsyncBufReadExt + Unpin>(stream: &mut R, out: &mut Vec<u8>) -> io::Result<bool> {
    let mut size = String::new();
    stream.read_line(&mut size).await?;
    let length = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16);
    let wrong = |_| io::Error::new(io::ErrorKind::InvalidData, format!("not the size of a chunk: {size:?}"));
    let length = length.map_err(wrong)?;
    let begin = out.len();
    out.resize(begin + length, 0);
    stream.read_exact(&mut out[begin..]).await?;
    // Our server sends no trailers: an empty line ends each chunk, the last one too.
    stream.read_line(&mut String::new()).await?;
    Ok(length > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_end_where_they_say() {
        for (method, wire, want) in [
            ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP", Some((200, "ab", true))),
            ("GET", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n", Some((204, "", true))),
            (
                "GET",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\nHTTP",
                Some((200, "abc", true)),
            ),
            ("GET", "HTTP/1.1 400 Bad\r\nConnection: close\r\nContent-Length: 1\r\n\r\na", Some((400, "a", false))),
            ("GET", "HTTP/1.1 200 OK\r\n\r\nall of it", Some((200, "all of it", false))),
            ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Some((200, "", true))),
            ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", None),
            ("GET", "HTTP/1.1 200 OK\r\nContent-Le", None),
        ] {
            let got = answer(&mut wire.as_bytes(), method).await.ok();
            let got = got.map(|(answer, stays)| (answer.status, String::from_utf8(answer.body).unwrap(), stays));
            assert_eq!(got, want.map(|(status, body, stays)| (status, body.to_owned(), stays)), "{wire}");
        }
    }
}
