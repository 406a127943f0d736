//! A small HTTP/1.1 client over TLS for tests: any method, any header, answers byte for byte, connections kept between requests.
//! It talks to loopback only, which is why it takes any certificate; that certificates are right is for the real clients to show.

pub mod framing;
mod tls;

use framing::{Body, Head};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};
pub use tls::{served, tls_config};

/// How long a plain request may take; no request of the corpus needs a tenth of it.
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub struct Address {
    pub host: String,
    pub socket: SocketAddr,
    tls: bool,
}

impl Address {
    /// Reads `https://127.0.0.1:6443`; a host that is not this machine is refused.
    pub fn parse(url: &str) -> Result<Address, String> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| format!("{url}: not a URL"))?;
        let tls = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(format!("{url}: neither http nor https")),
        };
        let host = rest.trim_end_matches('/').to_owned();
        let with_port =
            if host.contains(':') { host.clone() } else { format!("{host}:{}", if tls { 443 } else { 80 }) };
        let mut sockets = with_port.to_socket_addrs().map_err(|error| format!("{url}: {error}"))?;
        let socket =
            sockets.find(|socket| socket.ip().is_loopback()).ok_or_else(|| format!("{url}: not on loopback"))?;
        Ok(Address { host, socket, tls })
    }
}

#[derive(Debug, Clone, Default)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
}

impl Request {
    /// As it goes over a connection.
    pub fn to_bytes(&self, host: &str) -> Vec<u8> {
        let mut message =
            format!("{} {} HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: identity\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            message.push_str(&format!("{name}: {value}\r\n"));
        }
        let body = self.body.as_deref();
        if body.is_some() || matches!(self.method.as_str(), "POST" | "PUT" | "PATCH") {
            message.push_str(&format!("Content-Length: {}\r\n", body.map_or(0, <[u8]>::len)));
        }
        message.push_str("\r\n");
        let mut bytes = message.into_bytes();
        bytes.extend_from_slice(body.unwrap_or_default());
        bytes
    }
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers_named(name).next()
    }

    pub fn headers_named<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// Keeps one connection open between requests.
pub struct Client {
    address: Address,
    connection: Option<Connection>,
    timeout: Duration,
}

impl Client {
    pub fn new(address: Address) -> Client {
        Client { address, connection: None, timeout: TIMEOUT }
    }

    /// For each read and write of a request.
    pub fn with_timeout(self, timeout: Duration) -> Client {
        Client { timeout, ..self }
    }

    /// Sends it and never again: an error leaves open whether the server saw it. For those who count what happened.
    pub fn send_once(&mut self, request: &Request) -> io::Result<Response> {
        let mut connection = match self.connection.take() {
            Some(kept) => kept,
            None => Connection::open(&self.address, self.timeout)?,
        };
        let outcome = connection.exchange(request, &self.address.host);
        self.keep(connection, outcome)
    }

    pub fn send(&mut self, request: &Request) -> io::Result<Response> {
        if let Some(mut kept) = self.connection.take() {
            match kept.exchange(request, &self.address.host) {
                // The server closed the kept connection before it saw the request: only then is it right to send it again.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                outcome => return self.keep(kept, outcome),
            }
        }
        let mut fresh = Connection::open(&self.address, self.timeout)?;
        let outcome = fresh.exchange(request, &self.address.host);
        self.keep(fresh, outcome)
    }

    fn keep(&mut self, connection: Connection, outcome: io::Result<(Response, Reuse)>) -> io::Result<Response> {
        let (response, reuse) = outcome?;
        if reuse == Reuse::Yes {
            self.connection = Some(connection);
        }
        Ok(response)
    }

    /// Reads a stream of lines on a connection of its own, until `wanted` lines came or the time is over.
    /// A status other than 200 gives the answer's whole body instead of lines.
    pub fn lines(&self, request: &Request, wanted: usize, limit: Duration) -> io::Result<(Response, Vec<Vec<u8>>)> {
        let (response, mut lines) = self.lines_until(request, |lines| lines.len() >= wanted, limit)?;
        lines.truncate(wanted);
        Ok((response, lines))
    }

    /// The same, until those that came are `enough`.
    pub fn lines_until(
        &self,
        request: &Request,
        enough: impl Fn(&[Vec<u8>]) -> bool,
        limit: Duration,
    ) -> io::Result<(Response, Vec<Vec<u8>>)> {
        let end = Instant::now() + limit;
        let mut connection = Connection::open(&self.address, limit)?;
        connection.write(request, &self.address.host)?;
        let head = Head::read(&mut connection.stream)?;
        let mut body = Body::new(&head, &request.method);
        let mut response = Response { status: head.status, headers: head.headers, body: Vec::new() };
        if response.status != 200 {
            body.read_to_end(&mut connection.stream, &mut response.body)?;
            return Ok((response, Vec::new()));
        }
        let (mut lines, mut pending) = (Vec::new(), Vec::new());
        while !enough(&lines) {
            let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else { break };
            connection.set_timeout(left)?;
            match body.read_some(&mut connection.stream, &mut pending) {
                Ok(0) => break,
                Ok(_) => take_lines(&mut pending, &mut lines),
                Err(_) => break,
            }
        }
        Ok((response, lines))
    }
}

impl Client {
    /// Reads an answer as slowly as this: what has come, then a pause, and so on until the time is over. On a connection of its own, which
    /// it then leaves.
    pub fn slowly(&self, request: &Request, pause: Duration, limit: Duration) -> io::Result<Response> {
        let end = Instant::now() + limit;
        let mut connection = Connection::open(&self.address, self.timeout)?;
        connection.write(request, &self.address.host)?;
        let head = Head::read(&mut connection.stream)?;
        let mut body = Body::new(&head, &request.method);
        let mut response = Response { status: head.status, headers: head.headers, body: Vec::new() };
        while Instant::now() < end && body.read_some(&mut connection.stream, &mut response.body)? > 0 {
            std::thread::sleep(pause);
        }
        Ok(response)
    }
}

fn take_lines(pending: &mut Vec<u8>, lines: &mut Vec<Vec<u8>>) {
    while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
        let rest = pending.split_off(end + 1);
        let line = std::mem::replace(pending, rest);
        if !line.trim_ascii().is_empty() {
            lines.push(line);
        }
    }
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

#[derive(PartialEq, Eq)]
enum Reuse {
    Yes,
    No,
}

struct Connection {
    stream: BufReader<Box<dyn Stream>>,
    socket: TcpStream,
}

impl Connection {
    fn open(address: &Address, timeout: Duration) -> io::Result<Connection> {
        let socket = TcpStream::connect_timeout(&address.socket, timeout)?;
        socket.set_nodelay(true)?;
        let inner = socket.try_clone()?;
        let stream: Box<dyn Stream> = if address.tls { Box::new(tls::wrap(inner)?) } else { Box::new(inner) };
        let connection = Connection { stream: BufReader::with_capacity(64 * 1024, stream), socket };
        connection.set_timeout(timeout)?;
        Ok(connection)
    }

    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.socket.set_read_timeout(Some(timeout))?;
        self.socket.set_write_timeout(Some(timeout))
    }

    fn exchange(&mut self, request: &Request, host: &str) -> io::Result<(Response, Reuse)> {
        // A server may answer and close while a large body is still on its way, so a failed write is not yet the answer.
        let written = self.write(request, host);
        let first = self.stream.fill_buf().map(<[u8]>::len);
        match (&first, written) {
            (Ok(0), _) => return Err(io::ErrorKind::ConnectionAborted.into()),
            (Err(_), Err(error)) => return Err(error),
            (Err(error), _)
                if error.kind() == io::ErrorKind::UnexpectedEof || error.kind() == io::ErrorKind::ConnectionReset =>
            {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            _ => {}
        }
        let head = loop {
            let head = Head::read(&mut self.stream)?;
            if head.status >= 200 || head.status == 101 {
                break head;
            }
        };
        let mut body = Body::new(&head, &request.method);
        let mut response = Response { status: head.status, headers: head.headers, body: Vec::new() };
        body.read_to_end(&mut self.stream, &mut response.body)?;
        let closes = response.header("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let reuse = if closes || body.is_delimited_by_close() { Reuse::No } else { Reuse::Yes };
        Ok((response, reuse))
    }

    fn write(&mut self, request: &Request, host: &str) -> io::Result<()> {
        let bytes = request.to_bytes(host);
        let stream = self.stream.get_mut();
        stream.write_all(&bytes).and_then(|()| stream.flush())
    }
}
