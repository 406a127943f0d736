//! Names and values as frames carry them: compressed, each direction of a connection as one stream of zlib that begins with the
//! dictionary of SPDY/3.

use super::Broken;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// The dictionary of the protocol's third version, of which its zlib header tells the checksum.
const DICTIONARY: &[u8] = include_bytes!("dictionary.bin");

/// Names and values of one frame, decompressed.
const MAX_BLOCK: usize = 64 << 10;

pub struct Packer(Compress);

impl Packer {
    pub fn new() -> Packer {
        let mut compress = Compress::new(Compression::default(), true);
        // It fails only once something has been compressed.
        let _ = compress.set_dictionary(DICTIONARY);
        Packer(compress)
    }

    pub fn pack(&mut self, pairs: &[(&str, &str)]) -> Result<Vec<u8>, Broken> {
        let mut block = Vec::new();
        put(&mut block, pairs.len());
        for text in pairs.iter().flat_map(|(name, value)| [name, value]) {
            put(&mut block, text.len());
            block.extend_from_slice(text.as_bytes());
        }
        let before = self.0.total_in();
        let mut out = Vec::with_capacity(block.len() + 64);
        loop {
            let done = (self.0.total_in() - before) as usize;
            self.0.compress_vec(&block[done..], &mut out, FlushCompress::Sync).map_err(|_| Broken::Names)?;
            // Room that is left over says that nothing was left behind.
            if out.len() < out.capacity() {
                return Ok(out);
            }
            out.reserve(256);
        }
    }
}

fn put(block: &mut Vec<u8>, length: usize) {
    block.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
}

pub struct Unpacker(Decompress);

impl Unpacker {
    pub fn new() -> Unpacker {
        Unpacker(Decompress::new(true))
    }

    pub fn unpack(&mut self, packed: &[u8]) -> Result<Vec<(String, String)>, Broken> {
        let before = self.0.total_in();
        let mut out = Vec::with_capacity(1024);
        loop {
            let done = (self.0.total_in() - before) as usize;
            match self.0.decompress_vec(&packed[done..], &mut out, FlushDecompress::Sync) {
                Ok(Status::StreamEnd) => return Err(Broken::Names),
                Ok(_) => {}
                Err(e) if e.needs_dictionary().is_some() => {
                    self.0.set_dictionary(DICTIONARY).map_err(|_| Broken::Names)?;
                    continue;
                }
                Err(_) => return Err(Broken::Names),
            }
            if out.len() < out.capacity() {
                return pairs(&out).ok_or(Broken::Names);
            }
            if out.len() >= MAX_BLOCK {
                return Err(Broken::Names);
            }
            out.reserve(out.len());
        }
    }
}

fn pairs(mut block: &[u8]) -> Option<Vec<(String, String)>> {
    let count = take_length(&mut block)?;
    // Each takes eight bytes at least.
    if count > block.len() / 8 {
        return None;
    }
    let mut text = || {
        let length = take_length(&mut block)?;
        let (text, rest) = block.split_at_checked(length)?;
        block = rest;
        String::from_utf8(text.to_vec()).ok()
    };
    (0..count).map(|_| Some((text()?, text()?))).collect()
}

fn take_length(block: &mut &[u8]) -> Option<usize> {
    let (length, rest) = block.split_first_chunk::<4>()?;
    *block = rest;
    usize::try_from(u32::from_be_bytes(*length)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_names_are_found_again() {
        let (mut packer, mut unpacker) = (Packer::new(), Unpacker::new());
        let long = "x".repeat(5000);
        for pairs in [&[("streamtype", "error")][..], &[("streamtype", "stdin"), ("port", "80")], &[("a", &long)], &[]]
        {
            let packed = packer.pack(pairs).unwrap();
            let found = unpacker.unpack(&packed).unwrap();
            let found: Vec<(&str, &str)> = found.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            assert_eq!(found, pairs);
        }
    }

    #[test]
    fn the_dictionary_is_that_of_the_protocol() {
        let packed = Packer::new().pack(&[]).unwrap();
        assert_eq!(packed[2..6], [0xe3, 0xc6, 0xa7, 0xc2], "the checksum in the zlib header");
    }

    #[test]
    fn garbage_is_refused() {
        assert!(Unpacker::new().unpack(b"garbage").is_err());
        let bomb = Packer::new().pack(&[("a", &"x".repeat(MAX_BLOCK))]).unwrap();
        assert!(Unpacker::new().unpack(&bomb).is_err());
        for block in [&b"\0\0\0\x01"[..], b"\xff\xff\xff\xff", b"\0\0\0\x01\0\0\0\xffabcdefgh", b""] {
            assert!(pairs(block).is_none(), "{block:?}");
        }
    }
}
