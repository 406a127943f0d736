//! How an HTTP/1.1 answer is laid out on the wire: its head, and a body that is chunked, counted or ends with the connection.

use std::io::{self, BufRead};

pub struct Head {
    pub status: u16,
    pub headers: Vec<(String, String)>,
}

impl Head {
    pub fn read(stream: &mut impl BufRead) -> io::Result<Head> {
        let status_line = read_line(stream)?;
        let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| invalid(format!("not a status line: {status_line:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = read_line(stream)?;
            if line.is_empty() {
                return Ok(Head { status, headers });
            }
            let (name, value) = line.split_once(':').ok_or_else(|| invalid(format!("not a header: {line:?}")))?;
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

pub enum Body {
    Counted { left: usize },
    Chunked { left: usize, done: bool },
    UntilClose,
}

impl Body {
    pub fn new(head: &Head, method: &str) -> Body {
        if method == "HEAD" || matches!(head.status, 204 | 304) {
            return Body::Counted { left: 0 };
        }
        if head.header("Transfer-Encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            return Body::Chunked { left: 0, done: false };
        }
        match head.header("Content-Length").and_then(|value| value.parse().ok()) {
            Some(left) => Body::Counted { left },
            None => Body::UntilClose,
        }
    }

    pub fn is_delimited_by_close(&self) -> bool {
        matches!(self, Body::UntilClose)
    }

    pub fn read_to_end(&mut self, stream: &mut impl BufRead, out: &mut Vec<u8>) -> io::Result<()> {
        while self.read_some(stream, out)? > 0 {}
        Ok(())
    }

    /// Appends what is there, waiting for at least a byte; 0 is the end.
    pub fn read_some(&mut self, stream: &mut impl BufRead, out: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Body::Counted { left } => {
                let count = read_up_to(stream, *left, out)?;
                if count == 0 && *left > 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                *left -= count;
                Ok(count)
            }
            Body::Chunked { done: true, .. } => Ok(0),
            Body::Chunked { left, done } => {
                if *left == 0 {
                    let line = read_line(stream)?;
                    let size = line.split(';').next().unwrap_or_default().trim();
                    *left =
                        usize::from_str_radix(size, 16).map_err(|_| invalid(format!("not a chunk size: {line:?}")))?;
                    if *left == 0 {
                        while !read_line(stream)?.is_empty() {}
                        *done = true;
                        return Ok(0);
                    }
                }
                let count = read_up_to(stream, *left, out)?;
                if count == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                *left -= count;
                if *left == 0 {
                    read_line(stream)?;
                }
                Ok(count)
            }
            Body::UntilClose => match read_up_to(stream, usize::MAX, out) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
                outcome => outcome,
            },
        }
    }
}

fn read_up_to(stream: &mut impl BufRead, limit: usize, out: &mut Vec<u8>) -> io::Result<usize> {
    if limit == 0 {
        return Ok(0);
    }
    let available = stream.fill_buf()?;
    let count = available.len().min(limit);
    out.extend_from_slice(&available[..count]);
    stream.consume(count);
    Ok(count)
}

fn read_line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    stream.read_until(b'\n', &mut line)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(raw: &str, method: &str) -> io::Result<(u16, String)> {
        let mut stream = raw.as_bytes();
        let head = Head::read(&mut stream)?;
        let mut out = Vec::new();
        Body::new(&head, method).read_to_end(&mut stream, &mut out)?;
        Ok((head.status, String::from_utf8(out).unwrap()))
    }

    #[test]
    fn reads_each_kind_of_body() {
        for (raw, method, want) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd", "GET", (200, "abc")),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n",
                "GET",
                (200, "abc"),
            ),
            ("HTTP/1.1 404 Not Found\r\n\r\nto the end", "GET", (404, "to the end")),
            ("HTTP/1.1 405 No\r\nContent-Length: 9\r\n\r\n", "HEAD", (405, "")),
        ] {
            assert_eq!(parse(raw, method).unwrap(), (want.0, want.1.to_owned()), "{raw}");
        }
        for raw in ["", "junk\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", "HTTP/1.1 200 OK\r\n"] {
            assert!(parse(raw, "GET").is_err(), "{raw}");
        }
    }
}
