//! A session against rustls as the client, over a socket that takes and gives as much as a test says.

use super::*;
use kubelith_tls::pki::{ServingNames, pair_in};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::task::Waker;

/// What is between the two, and how much the server's socket takes and gives.
struct Wire {
    to_server: VecDeque<u8>,
    to_client: VecDeque<u8>,
    /// Bytes that one read gives at most.
    read: usize,
    /// Bytes that are taken until more space is made.
    space: usize,
    writes: usize,
    is_at_end: bool,
}

impl Readiness for Wire {
    fn poll_read_ready(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.to_server.is_empty() && !self.is_at_end { Poll::Pending } else { Poll::Ready(Ok(())) }
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let length = self.read.min(self.to_server.len()).min(buf.remaining());
        let bytes: Vec<u8> = self.to_server.drain(..length).collect();
        buf.put_slice(&bytes);
        if length == 0 && !self.is_at_end { Poll::Pending } else { Poll::Ready(Ok(())) }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let length = self.space.min(data.len());
        if length == 0 {
            return Poll::Pending;
        }
        self.writes += 1;
        self.space -= length;
        self.to_client.extend(&data[..length]);
        Poll::Ready(Ok(length))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A client and the server's session with it.
struct Pair {
    client: ClientConnection,
    session: Session<Wire>,
}

/// What an operation came to; the error is told by its kind.
type Polled<T> = Poll<Result<T, io::ErrorKind>>;

impl Pair {
    /// Before the handshake, in which the server reads so many bytes at a time.
    fn new(version: &'static SupportedProtocolVersion, read: usize) -> Pair {
        let folder = tempfile::tempdir().unwrap();
        let names = ServingNames { names: ["localhost".to_owned()].into(), ..ServingNames::default() };
        let files = pair_in(folder.path(), &names).unwrap();
        let certificates: Vec<_> =
            CertificateDer::pem_file_iter(files.cert).unwrap().collect::<Result<_, _>>().unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).unwrap();
        }
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(certificates, PrivateKeyDer::from_pem_file(files.key).unwrap())
            .unwrap();
        server.alpn_protocols = vec![b"h2".to_vec()];
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = server.alpn_protocols.clone();
        let client = ClientConnection::new(Arc::new(client), "localhost".try_into().unwrap()).unwrap();
        let wire = Wire {
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            read,
            space: usize::MAX,
            writes: 0,
            is_at_end: false,
        };
        Pair { client, session: Session::new(Arc::new(server), wire).unwrap() }
    }

    fn shaken(version: &'static SupportedProtocolVersion, read: usize) -> Pair {
        let mut pair = Pair::new(version, read);
        while pair.session.agreed().is_handshaking() || pair.client.is_handshaking() {
            pair.client_sends();
            if let Poll::Ready(shaken) = pair.session.poll_handshake(&mut cx()) {
                shaken.unwrap();
            }
            pair.client_reads().unwrap();
        }
        pair
    }

    fn client_sends(&mut self) {
        while self.client.wants_write() {
            self.client.write_tls(&mut self.session.socket.to_server).unwrap();
        }
    }

    fn client_says(&mut self, what: &[u8]) {
        self.client.writer().write_all(what).unwrap();
        self.client_sends();
    }

    /// What the client finds in all that came to it.
    fn client_reads(&mut self) -> Result<Vec<u8>, rustls::Error> {
        let mut all = Vec::new();
        while !self.session.socket.to_client.is_empty() {
            self.client.read_tls(&mut self.session.socket.to_client).unwrap();
            self.client.process_new_packets()?;
            let mut space = [0; 20_000];
            while let Ok(length @ 1..) = self.client.reader().read(&mut space) {
                all.extend_from_slice(&space[..length]);
            }
        }
        Ok(all)
    }

    fn read(&mut self, most: usize) -> Polled<Vec<u8>> {
        let mut space = vec![0; most];
        let mut buf = ReadBuf::new(&mut space);
        let polled = Pin::new(&mut self.session).poll_read(&mut cx(), &mut buf);
        polled.map_ok(|()| buf.filled().to_vec()).map_err(|e| e.kind())
    }

    /// All that can be read now.
    fn read_all(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Poll::Ready(some) = self.read(1000) {
            all.extend(some.unwrap());
        }
        all
    }

    fn say(&mut self, what: &[u8], gather: Gather) -> Polled<usize> {
        self.session.poll_say(&mut cx(), &[io::IoSlice::new(what)], gather).map_err(|e| e.kind())
    }

    fn flush(&mut self) -> Polled<()> {
        Pin::new(&mut self.session).poll_flush(&mut cx()).map_err(|e| e.kind())
    }

    fn shut_down(&mut self) -> Polled<()> {
        Pin::new(&mut self.session).poll_shutdown(&mut cx()).map_err(|e| e.kind())
    }

    /// Bytes that are kept for what comes and goes.
    fn held(&self) -> usize {
        let session = &self.session;
        session.incoming.capacity() + session.heard.capacity() + session.said.capacity() + session.outgoing.capacity()
    }
}

fn cx() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn text(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

fn both() -> impl Iterator<Item = &'static SupportedProtocolVersion> {
    [&TLS12, &TLS13].into_iter()
}

#[test]
fn a_silent_session_holds_nothing() {
    for version in both() {
        let mut pair = Pair::shaken(version, usize::MAX);
        assert_eq!(pair.session.agreed().alpn_protocol(), Some(&b"h2"[..]));
        assert_eq!(pair.held(), 0);
        pair.client_says(b"question");
        assert_eq!(pair.read_all(), b"question");
        assert_eq!(pair.say(&text(5000), Gather::More), Poll::Ready(Ok(5000)));
        assert_eq!(pair.flush(), Poll::Ready(Ok(())));
        assert_eq!(pair.client_reads().unwrap(), text(5000));
        assert_eq!(pair.held(), 0);
    }
}

#[test]
fn records_come_in_any_pieces() {
    for version in both() {
        for piece in [1, 7, 4096, usize::MAX] {
            let mut pair = Pair::shaken(version, piece);
            // Several in a read, and one in many.
            for length in [1, 100, 5] {
                pair.client_says(&text(length));
            }
            assert_eq!(pair.read_all(), [text(1), text(100), text(5)].concat());
            pair.client_says(&text(40_000));
            assert_eq!(pair.read_all(), text(40_000), "{piece}");
            assert_eq!(pair.held(), 0);
        }
    }
}

#[test]
fn what_does_not_fit_is_read_later() {
    let mut pair = Pair::shaken(&TLS13, usize::MAX);
    pair.client_says(&text(1000));
    let end = pair.session.socket.to_server.split_off(1010);
    assert_eq!(pair.read(300), Poll::Pending);
    pair.session.socket.to_server.extend(end);
    for at in [0, 300, 600] {
        assert_eq!(pair.read(300), Poll::Ready(Ok(text(1000)[at..at + 300].to_vec())));
    }
    assert_eq!(pair.read(300).map_ok(|rest| rest.len()), Poll::Ready(Ok(100)));
    assert_eq!(pair.read(300), Poll::Pending);
}

#[test]
fn what_is_said_together_is_one_record() {
    for version in both() {
        let mut pair = Pair::shaken(version, usize::MAX);
        let before = pair.session.socket.writes;
        for length in [9, 1000, 9, 2000] {
            assert_eq!(pair.say(&text(length), Gather::More), Poll::Ready(Ok(length)));
        }
        assert_eq!(pair.session.socket.writes, before);
        assert_eq!(pair.flush(), Poll::Ready(Ok(())));
        assert_eq!(pair.session.socket.writes, before + 1);
        let wire = &pair.session.socket.to_client;
        assert_eq!(usize::from(u16::from_be_bytes([wire[3], wire[4]])) + RECORD_HEAD, wire.len());
        assert_eq!(pair.client_reads().unwrap(), [text(9), text(1000), text(9), text(2000)].concat());
        // What is not to wait is on its way at once.
        assert_eq!(pair.say(b"now", Gather::Nothing), Poll::Ready(Ok(3)));
        assert_eq!(pair.client_reads().unwrap(), b"now");
    }
}

#[test]
fn a_full_socket_takes_the_rest_of_a_record_later() {
    for version in both() {
        for gather in [Gather::More, Gather::Nothing] {
            let mut pair = Pair::shaken(version, usize::MAX);
            let all = text(300_000);
            let (mut said, mut got) = (0, Vec::new());
            pair.session.socket.space = 10;
            while said < all.len() {
                match pair.say(&all[said..], gather) {
                    Poll::Ready(taken) => said += taken.unwrap(),
                    Poll::Pending => {
                        assert_eq!(pair.flush(), Poll::Pending);
                        assert!(pair.held() <= 3 * MAX_OUTGOING, "{}", pair.held());
                        pair.session.socket.space = 9999;
                        got.extend(pair.client_reads().unwrap());
                    }
                }
            }
            pair.session.socket.space = usize::MAX;
            assert_eq!(pair.flush(), Poll::Ready(Ok(())));
            got.extend(pair.client_reads().unwrap());
            assert!(got == all);
            assert_eq!(pair.held(), 0);
        }
    }
}

#[test]
fn keys_are_changed_when_the_client_asks() {
    let mut pair = Pair::shaken(&TLS13, usize::MAX);
    for _ in 0..3 {
        pair.client.refresh_traffic_keys().unwrap();
        pair.client_says(b"with new keys");
        assert_eq!(pair.read_all(), b"with new keys");
        // The answer to the update goes with what is said next.
        assert_eq!(pair.say(b"with ours, too", Gather::Nothing), Poll::Ready(Ok(14)));
        assert_eq!(pair.client_reads().unwrap(), b"with ours, too");
    }
}

#[test]
fn a_client_that_will_say_no_more_is_answered() {
    for version in both() {
        let mut pair = Pair::shaken(version, usize::MAX);
        pair.client_says(b"last words");
        pair.client.send_close_notify();
        pair.client_sends();
        pair.session.socket.is_at_end = true;
        for words in [&b"last words"[..], b"", b""] {
            assert_eq!(pair.read(100), Poll::Ready(Ok(words.to_vec())));
        }
        assert_eq!(pair.say(b"answer", Gather::Nothing), Poll::Ready(Ok(6)));
        assert_eq!(pair.client_reads().unwrap(), b"answer");
        assert_eq!(pair.shut_down(), Poll::Ready(Ok(())));
        assert_eq!(pair.client_reads().unwrap(), b"");
        assert!(pair.client.process_new_packets().unwrap().peer_has_closed());
    }
}

#[test]
fn a_connection_that_is_cut_off_is_no_end() {
    for version in both() {
        let mut pair = Pair::shaken(version, usize::MAX);
        pair.client_says(b"as far as");
        pair.session.socket.is_at_end = true;
        assert_eq!(pair.read(100), Poll::Ready(Ok(b"as far as".to_vec())));
        assert_eq!(pair.read(100), Poll::Ready(Err(io::ErrorKind::UnexpectedEof)));
    }
    let mut unshaken = Pair::new(&TLS13, usize::MAX);
    unshaken.session.socket.is_at_end = true;
    let polled = unshaken.session.poll_handshake(&mut cx()).map_err(|e| e.kind());
    assert_eq!(polled, Poll::Ready(Err(io::ErrorKind::UnexpectedEof)));
}

#[test]
fn the_end_is_said_once_and_is_the_end() {
    for version in both() {
        let mut pair = Pair::shaken(version, usize::MAX);
        assert_eq!(pair.say(b"last words", Gather::More), Poll::Ready(Ok(10)));
        pair.session.socket.space = 5;
        assert_eq!(pair.shut_down(), Poll::Pending);
        pair.session.socket.space = usize::MAX;
        for _ in 0..2 {
            assert_eq!(pair.shut_down(), Poll::Ready(Ok(())));
        }
        assert_eq!(pair.say(b"more", Gather::More), Poll::Ready(Err(io::ErrorKind::BrokenPipe)));
        let wire = pair.session.socket.to_client.len();
        assert_eq!(pair.client_reads().unwrap(), b"last words");
        assert!(pair.client.process_new_packets().unwrap().peer_has_closed());
        // Two records: the words and the end.
        assert!(wire < 10 + 2 + 2 * RECORD_OVERHEAD, "{wire}");
        // The client may still say something.
        pair.client_says(b"but");
        assert_eq!(pair.read(100), Poll::Ready(Ok(b"but".to_vec())));
    }
}

#[test]
fn a_wrong_record_is_told_and_ends_it() {
    for version in both() {
        let mut pair = Pair::shaken(version, usize::MAX);
        pair.client_says(b"right");
        assert_eq!(pair.read_all(), b"right");
        assert_eq!(pair.say(b"not on its way", Gather::More), Poll::Ready(Ok(14)));
        pair.client_says(b"wrong");
        pair.client_says(b"right again");
        *pair.session.socket.to_server.get_mut(RECORD_HEAD + 10).unwrap() ^= 1;
        assert_eq!(pair.read(100), Poll::Ready(Err(io::ErrorKind::InvalidData)));
        let told = pair.client_reads().unwrap_err();
        assert_eq!(told, rustls::Error::AlertReceived(rustls::AlertDescription::BadRecordMac));
        pair.session.socket.to_server.extend([23, 3, 3, 0, 32]);
        assert_eq!(pair.read(100), Poll::Ready(Err(io::ErrorKind::ConnectionAborted)));
        assert_eq!(pair.say(b"?", Gather::More), Poll::Ready(Err(io::ErrorKind::BrokenPipe)));
        assert_eq!(pair.shut_down(), Poll::Ready(Ok(())));
        assert_eq!(pair.held(), 0);
    }
}

#[test]
fn a_client_that_speaks_something_else_is_told() {
    let mut pair = Pair::new(&TLS13, usize::MAX);
    pair.session.socket.to_server.extend(b"GET / HTTP/1.1\r\n\r\n");
    let polled = pair.session.poll_handshake(&mut cx()).map_err(|e| e.kind());
    assert_eq!(polled, Poll::Ready(Err(io::ErrorKind::InvalidData)));
    assert!(matches!(pair.client_reads(), Err(rustls::Error::AlertReceived(_))));
    assert_eq!(pair.held(), 0);
}

#[test]
fn what_comes_is_bounded() {
    // A record that says it is longer than records are.
    let mut pair = Pair::shaken(&TLS13, usize::MAX);
    pair.session.socket.to_server.extend([23, 3, 3, 0xff, 0xff]);
    assert_eq!(pair.read(100), Poll::Ready(Err(io::ErrorKind::InvalidData)));
    assert!(matches!(pair.client_reads(), Err(rustls::Error::AlertReceived(_))));
    // A long one of which little has come.
    let mut pair = Pair::shaken(&TLS13, usize::MAX);
    for bytes in [&[23, 3, 3, 0x40, 0][..], &[0], &[0]] {
        pair.session.socket.to_server.extend(bytes);
        assert_eq!(pair.read(100), Poll::Pending);
    }
    assert!(pair.held() <= 2 * READ_BYTES, "{}", pair.held());
    // A long message of the handshake, in pieces that are mostly heads of records.
    let mut pair = Pair::new(&TLS13, usize::MAX);
    pair.session.socket.to_server.extend([22, 3, 3, 0, 4, 1, 0, 0xff, 0xf0]);
    let outcome = loop {
        pair.session.socket.to_server.extend([22, 3, 3, 0, 1, 0].repeat(100));
        if let Poll::Ready(outcome) = pair.session.poll_handshake(&mut cx()) {
            break outcome;
        }
        assert!(pair.held() <= 3 * MAX_INCOMING, "{}", pair.held());
    };
    assert_eq!(outcome.map_err(|e| e.kind()), Err(io::ErrorKind::InvalidData));
}
