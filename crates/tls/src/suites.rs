//! Which of the cipher suites that a client and the server have is taken, as Go's servers do it: AES-GCM with the shorter key, where both compute AES
//! in hardware, for it takes least time there and is as safe as the others; what the client likes best, where one of the two does not.

use rustls::{CipherSuite, SupportedCipherSuite};

/// Whose order of cipher suites counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuiteOrder {
    Server,
    Client,
}

/// So many bytes of a connection have the suites of nearly any client in them.
pub const HELLO_BYTES: usize = 512;

/// Ours, best first.
const ORDER: [CipherSuite; 9] = [
    CipherSuite::TLS13_AES_128_GCM_SHA256,
    CipherSuite::TLS13_AES_256_GCM_SHA384,
    CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
];

impl SuiteOrder {
    /// For a connection that begins with these bytes. Clients without AES in hardware list ChaCha20 first.
    pub fn of(hello: &[u8]) -> SuiteOrder {
        let first = suites_in(hello).find(|suite| ORDER.contains(suite));
        let likes_other = first.is_some_and(|suite| !is_aes(suite));
        if likes_other || !has_aes() { SuiteOrder::Client } else { SuiteOrder::Server }
    }
}

/// Puts suites into our order.
pub(super) fn sort(suites: &mut [SupportedCipherSuite]) {
    suites.sort_by_key(|suite| ORDER.iter().position(|known| *known == suite.suite()));
}

fn is_aes(suite: CipherSuite) -> bool {
    suite.as_str().is_some_and(|name| name.contains("_AES_"))
}

/// Whether this processor computes AES-GCM.
#[cfg(target_arch = "x86_64")]
fn has_aes() -> bool {
    std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
fn has_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes") && std::arch::is_aarch64_feature_detected!("pmull")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn has_aes() -> bool {
    false
}

/// The suites that a ClientHello lists, as far as they are there (RFC 8446, 4.1.2 and 5.1); none if it is something else.
fn suites_in(hello: &[u8]) -> impl Iterator<Item = CipherSuite> {
    // A record with a handshake message, which is a ClientHello, and its version and random bytes.
    const BEFORE_SESSION: usize = 5 + 4 + 2 + 32;
    let listed = || {
        let &[22, _, _, _, _, 1, ..] = hello else { return None };
        let (&session, rest) = hello.get(BEFORE_SESSION..)?.split_first()?;
        let (length, rest) = rest.get(usize::from(session)..)?.split_first_chunk()?;
        rest.get(..rest.len().min(usize::from(u16::from_be_bytes(*length))))
    };
    let (suites, _) = listed().unwrap_or_default().as_chunks();
    suites.iter().map(|suite| CipherSuite::from(u16::from_be_bytes(*suite)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(session: usize, suites: &[u16]) -> Vec<u8> {
        let mut hello = vec![22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3];
        hello.extend([7; 32]);
        hello.push(session as u8);
        hello.extend(vec![9; session]);
        hello.extend(((2 * suites.len()) as u16).to_be_bytes());
        hello.extend(suites.iter().flat_map(|suite| suite.to_be_bytes()));
        // Methods of compression.
        hello.extend([1, 0, 0x13, 0x03]);
        hello
    }

    #[test]
    fn the_first_known_suite_tells_what_a_client_likes() {
        let (grease, cbc) = (0x2a2a, 0xc013);
        let ours = if has_aes() { SuiteOrder::Server } else { SuiteOrder::Client };
        for (suites, want) in [
            (&[0x1302, 0x1301, 0x1303][..], ours),
            (&[grease, 0x1301, 0x1303], ours),
            (&[0x1303, 0x1301], SuiteOrder::Client),
            (&[grease, 0xcca9, 0xc02b], SuiteOrder::Client),
            (&[cbc, 0xc02f], ours),
            (&[cbc], ours),
            (&[], ours),
        ] {
            for session in [0, 32] {
                let hello = hello(session, suites);
                assert_eq!(SuiteOrder::of(&hello), want, "{suites:x?}");
                for end in 0..hello.len() {
                    SuiteOrder::of(&hello[..end]);
                }
            }
        }
        assert_eq!(SuiteOrder::of(b"GET / HTTP/1.1\r\n\r\n"), ours);
        let listed: Vec<_> = suites_in(&hello(32, &[0x1303, 0x1301])[..43 + 1 + 32 + 2 + 3]).collect();
        assert_eq!(listed, [CipherSuite::TLS13_CHACHA20_POLY1305_SHA256], "cut in the second");
    }

    #[test]
    fn all_suites_have_a_place() {
        let mut suites = crate::TlsPolicy::default().suites;
        assert!(suites.iter().all(|suite| ORDER.contains(&suite.suite())));
        suites.reverse();
        sort(&mut suites);
        let aes_first = suites.iter().position(|suite| !is_aes(suite.suite()));
        assert_eq!((suites.len(), suites[0].suite(), aes_first), (9, ORDER[0], Some(2)));
    }
}
