//! Who this server is among those of a cluster.

use kubelith_meta::random::MadeUp;
use std::fmt;

/// The same after every restart on the same host, apart from the holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    /// `apiserver-` and a hash of host and component: the name of its Lease.
    pub id: String,
    /// The id and what tells this process from its predecessors.
    pub holder: String,
    pub hostname: String,
}

impl ServerIdentity {
    /// The server on this host.
    pub fn of_host(hostname: &str, made_up: &MadeUp) -> ServerIdentity {
        let id = format!("apiserver-{}", Base32(&digest(hostname)[..16]));
        ServerIdentity { holder: format!("{id}_{}", made_up.uid(&["server"])), id, hostname: hostname.to_owned() }
    }
}

/// Both parts with their lengths in front, so that no two pairs give the same bytes.
fn digest(hostname: &str) -> Vec<u8> {
    let mut data = Vec::new();
    for part in [hostname, "kube-apiserver"] {
        data.extend_from_slice(&(part.len() as u16).to_be_bytes());
        data.extend_from_slice(part.as_bytes());
    }
    aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &data).as_ref().to_vec()
}

/// RFC 4648 in lower case without padding.
struct Base32<'a>(&'a [u8]);

impl fmt::Display for Base32<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
        for chunk in self.0.chunks(5) {
            let mut bytes = [0u8; 8];
            bytes[3..3 + chunk.len()].copy_from_slice(chunk);
            let bits = u64::from_be_bytes(bytes);
            for i in 0..(chunk.len() * 8).div_ceil(5) {
                let letter = ALPHABET[(bits >> (35 - 5 * i)) as usize & 31];
                write!(f, "{}", char::from(letter))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_the_references() {
        let identity = ServerIdentity::of_host("vm", &MadeUp::Random);
        assert_eq!(identity.id, "apiserver-wlv32tlttr4jl3gtroqexyxapa");
        assert!(identity.holder.starts_with("apiserver-wlv32tlttr4jl3gtroqexyxapa_"));
    }

    #[test]
    fn base32() {
        for (bytes, text) in
            [("", ""), ("f", "my"), ("fo", "mzxq"), ("foo", "mzxw6"), ("foob", "mzxw6yq"), ("foobar", "mzxw6ytboi")]
        {
            assert_eq!(Base32(bytes.as_bytes()).to_string(), text);
        }
    }
}
