//! Frames of SPDY/3.1, as far as kubelets use them: streams that are opened, carry data and end; pings. There is no flow control
//! but that of the connection.

mod names;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use names::{Packer, Unpacker};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const VERSION: u16 = 3;
const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const HEADERS: u16 = 8;
const FIN: u8 = 1;
const REFUSED_STREAM: u32 = 3;

/// Of a frame that is no data.
const MAX_CONTROL: usize = 64 << 10;
/// Data is handed on in pieces of at most this.
const MAX_PIECE: usize = 32 << 10;

#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// The other side opens a stream.
    Opened {
        id: u32,
        names: Vec<(String, String)>,
    },
    /// The other side agrees to a stream.
    Agreed {
        id: u32,
        last: bool,
    },
    Data {
        id: u32,
        data: Bytes,
        last: bool,
    },
    /// A stream is given up.
    Reset {
        id: u32,
    },
    Ping {
        id: u32,
    },
    GoAway,
    /// One that means nothing here.
    Other,
}

#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("not SPDY/3.1")]
    Version,
    #[error("a frame is too large or too small")]
    Size,
    #[error("names of a stream cannot be read")]
    Names,
}

pub struct Reader<R> {
    from: R,
    unpacker: Unpacker,
    buffer: BytesMut,
    /// What is to come of a frame of data: its stream, its bytes, and whether it is the last.
    rest: Option<(u32, usize, bool)>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub fn new(from: R) -> Reader<R> {
        Reader { from, unpacker: Unpacker::new(), buffer: BytesMut::new(), rest: None }
    }

    /// `None` at the end of the connection. Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Result<Option<Frame>, Broken> {
        if self.rest.is_none() {
            if !self.fill(8).await? {
                return Ok(None);
            }
            let head = (&self.buffer[..8]).get_u64();
            let length = (head & 0xff_ffff) as usize;
            let flags = (head >> 24) as u8;
            if head >> 63 == 1 {
                return self.control((head >> 48 & 0x7fff) as u16, (head >> 32) as u16, flags, length).await;
            }
            self.buffer.advance(8);
            self.rest = Some(((head >> 32) as u32, length, flags & FIN != 0));
        }
        let Some((id, left, last)) = self.rest else { return Ok(Some(Frame::Other)) };
        if left > 0 && !self.fill(1).await? {
            return Ok(None);
        }
        let data = self.buffer.split_to(left.min(self.buffer.len())).freeze();
        let left = left - data.len();
        self.rest = (left > 0).then_some((id, left, last));
        Ok(Some(Frame::Data { id, data, last: last && left == 0 }))
    }

    async fn control(&mut self, version: u16, kind: u16, flags: u8, length: usize) -> Result<Option<Frame>, Broken> {
        if version != VERSION {
            return Err(Broken::Version);
        }
        if length > MAX_CONTROL {
            return Err(Broken::Size);
        }
        if !self.fill(8 + length).await? {
            return Ok(None);
        }
        self.buffer.advance(8);
        let mut body = self.buffer.split_to(length);
        let number = |body: &mut BytesMut| body.try_get_u32().map_err(|_| Broken::Size);
        let last = flags & FIN != 0;
        let frame = match kind {
            SYN_STREAM => {
                let id = number(&mut body)?;
                let rest = body.get(6..).ok_or(Broken::Size)?;
                Frame::Opened { id, names: self.unpacker.unpack(rest)? }
            }
            SYN_REPLY | HEADERS => {
                let id = number(&mut body)?;
                self.unpacker.unpack(&body)?;
                if kind == SYN_REPLY { Frame::Agreed { id, last } } else { Frame::Other }
            }
            RST_STREAM => Frame::Reset { id: number(&mut body)? },
            PING => Frame::Ping { id: number(&mut body)? },
            GOAWAY => Frame::GoAway,
            _ => Frame::Other,
        };
        Ok(Some(frame))
    }

    /// Reads until so much is there; false if the connection ends before.
    async fn fill(&mut self, wanted: usize) -> Result<bool, Broken> {
        while self.buffer.len() < wanted {
            self.buffer.reserve(MAX_PIECE);
            if self.from.read_buf(&mut (&mut self.buffer).limit(MAX_PIECE)).await? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

pub struct Writer<W> {
    to: W,
    packer: Packer,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    pub fn new(to: W) -> Writer<W> {
        Writer { to, packer: Packer::new() }
    }

    /// Opens a stream; what this side opens is odd for clients and even for servers.
    pub async fn open(&mut self, id: u32, names: &[(&str, &str)]) -> Result<(), Broken> {
        // No stream to belong to, no priority.
        let mut body = [id.to_be_bytes(), [0; 4]].concat();
        body.extend_from_slice(&[0, 0]);
        body.extend(self.packer.pack(names)?);
        self.control(SYN_STREAM, 0, &body).await
    }

    /// Agrees to a stream of the other side.
    #[cfg(test)]
    pub async fn agree(&mut self, id: u32) -> Result<(), Broken> {
        let mut body = id.to_be_bytes().to_vec();
        body.extend(self.packer.pack(&[])?);
        self.control(SYN_REPLY, 0, &body).await
    }

    pub async fn data(&mut self, id: u32, data: &[u8], last: bool) -> Result<(), Broken> {
        let mut pieces = data.chunks(MAX_PIECE).peekable();
        if pieces.peek().is_none() {
            return self.piece(id, &[], last).await;
        }
        while let Some(piece) = pieces.next() {
            self.piece(id, piece, last && pieces.peek().is_none()).await?;
        }
        Ok(())
    }

    async fn piece(&mut self, id: u32, data: &[u8], last: bool) -> Result<(), Broken> {
        let head = u64::from(id) << 32 | u64::from(u8::from(last)) << 24 | data.len() as u64;
        self.send(head, data).await
    }

    pub async fn refuse(&mut self, id: u32) -> Result<(), Broken> {
        self.control(RST_STREAM, 0, &[id.to_be_bytes(), REFUSED_STREAM.to_be_bytes()].concat()).await
    }

    pub async fn ping(&mut self, id: u32) -> Result<(), Broken> {
        self.control(PING, 0, &id.to_be_bytes()).await
    }

    async fn control(&mut self, kind: u16, flags: u8, body: &[u8]) -> Result<(), Broken> {
        let head = 1 << 63 | u64::from(VERSION) << 48 | u64::from(kind) << 32 | u64::from(flags) << 24;
        self.send(head | body.len() as u64, body).await
    }

    async fn send(&mut self, head: u64, body: &[u8]) -> Result<(), Broken> {
        let mut frame = Vec::with_capacity(8 + body.len());
        frame.extend_from_slice(&head.to_be_bytes());
        frame.extend_from_slice(body);
        self.to.write_all(&frame).await?;
        Ok(self.to.flush().await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_are_read_as_they_were_written() {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (mut writer, mut reader) = (Writer::new(near), Reader::new(far));
        writer.open(1, &[("streamtype", "error")]).await.unwrap();
        writer.agree(2).await.unwrap();
        writer.data(1, b"hello", false).await.unwrap();
        writer.data(3, b"", true).await.unwrap();
        writer.data(5, &vec![7; MAX_PIECE + 1], true).await.unwrap();
        writer.refuse(9).await.unwrap();
        writer.ping(11).await.unwrap();
        drop(writer);
        let names = vec![("streamtype".to_owned(), "error".to_owned())];
        assert_eq!(reader.next().await.unwrap(), Some(Frame::Opened { id: 1, names }));
        assert_eq!(reader.next().await.unwrap(), Some(Frame::Agreed { id: 2, last: false }));
        let data = Bytes::from_static(b"hello");
        assert_eq!(reader.next().await.unwrap(), Some(Frame::Data { id: 1, data, last: false }));
        assert_eq!(reader.next().await.unwrap(), Some(Frame::Data { id: 3, data: Bytes::new(), last: true }));
        let mut got = 0;
        loop {
            let Some(Frame::Data { id: 5, data, last }) = reader.next().await.unwrap() else { panic!() };
            got += data.len();
            if last {
                break;
            }
        }
        assert_eq!(got, MAX_PIECE + 1);
        assert_eq!(reader.next().await.unwrap(), Some(Frame::Reset { id: 9 }));
        assert_eq!(reader.next().await.unwrap(), Some(Frame::Ping { id: 11 }));
        assert_eq!(reader.next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn what_is_no_spdy_is_refused() {
        for bytes in
            [&b"\x80\x02\0\x01\0\0\0\x0a0123456789"[..], b"\x80\x03\0\x01\0\xff\xff\xff", b"\x80\x03\0\x06\0\0\0\0"]
        {
            assert!(Reader::new(bytes).next().await.is_err(), "{bytes:?}");
        }
        assert_eq!(Reader::new(&b"\x80\x03"[..]).next().await.unwrap(), None);
    }
}
