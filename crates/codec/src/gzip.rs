//! Compression of answers: gzip at its fastest for bodies over 128 KiB, if the client takes it.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

/// Smaller answers cost more in time than they save on the wire.
pub const THRESHOLD_BYTES: usize = 128 * 1024;

/// Compressed bytes are handed on in pieces of about this size.
const PIECE_BYTES: usize = 32 * 1024;

/// Does Accept-Encoding name gzip? Qualities are not read: `gzip;q=0` is another token than `gzip`.
pub fn accepted(accept_encoding: &str) -> bool {
    accept_encoding.split(',').any(|token| token.trim() == "gzip")
}

/// Should a body of `len` bytes be compressed for a client that sent this Accept-Encoding?
pub fn applies(accept_encoding: &str, len: usize) -> bool {
    len > THRESHOLD_BYTES && accepted(accept_encoding)
}

/// Compresses a whole body.
pub fn compress(body: &[u8]) -> Vec<u8> {
    let mut gzip = Gzip::with_capacity(body.len() / 8);
    gzip.push_all(body);
    gzip.finish()
}

/// Compresses a body that comes in pieces.
pub struct Gzip {
    encoder: GzEncoder<Vec<u8>>,
}

impl Default for Gzip {
    fn default() -> Gzip {
        Gzip::with_capacity(PIECE_BYTES + PIECE_BYTES / 4)
    }
}

impl Gzip {
    fn with_capacity(bytes: usize) -> Gzip {
        Gzip { encoder: GzEncoder::new(Vec::with_capacity(bytes), Compression::fast()) }
    }

    fn push_all(&mut self, piece: &[u8]) {
        self.encoder.write_all(piece).expect("writing to a Vec cannot fail");
    }

    /// Takes a piece of the body. Returns compressed bytes once enough are ready to be worth sending.
    pub fn push(&mut self, piece: &[u8]) -> Option<Vec<u8>> {
        self.push_all(piece);
        let ready = self.encoder.get_mut();
        if ready.len() < PIECE_BYTES {
            return None;
        }
        Some(std::mem::replace(ready, Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 4)))
    }

    /// Everything pushed so far, so that the other side can read it now.
    pub fn flush(&mut self) -> Vec<u8> {
        self.encoder.flush().expect("writing to a Vec cannot fail");
        std::mem::take(self.encoder.get_mut())
    }

    /// The rest and the trailer.
    pub fn finish(self) -> Vec<u8> {
        self.encoder.finish().expect("writing to a Vec cannot fail")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read;

    fn unzip(data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        GzDecoder::new(data).read_to_end(&mut out).unwrap();
        out
    }

    #[test]
    fn applies_to_large_bodies_of_willing_clients() {
        assert!(applies("gzip", THRESHOLD_BYTES + 1));
        assert!(!applies("gzip", THRESHOLD_BYTES));
        assert!(applies("deflate, gzip , br", 1 << 20));
        assert!(!applies("gzip;q=0", 1 << 20));
        assert!(!applies("", 1 << 20));
    }

    #[test]
    fn whole_and_pieces_come_out_the_same() {
        let body: Vec<u8> = (0..60_000u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        assert_eq!(unzip(&compress(&body)), body);
        let mut gzip = Gzip::default();
        let mut out = Vec::new();
        for piece in body.chunks(10_000) {
            out.extend(gzip.push(piece).unwrap_or_default());
        }
        assert!(out.len() > PIECE_BYTES);
        out.extend(gzip.flush());
        out.extend(gzip.finish());
        assert_eq!(unzip(&out), body);
    }
}
