//! Checksums and compression.

use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};
use std::io::Write;

/// SHA-256 in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Without a name and a time inside, so that the same bytes give the same bytes.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::new(6));
    out.write_all(bytes).and_then(|()| out.finish()).map_err(|error| format!("gzip: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_bytes_are_always_the_same() {
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let packed = gzip(b"kubelith").unwrap();
        assert_eq!(packed, gzip(b"kubelith").unwrap());
        assert_eq!(packed[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
    }
}
