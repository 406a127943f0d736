//! Flags of the socket and TLS.

use super::super::{Flag, FlagKind::*};
use super::flag;

pub const FLAGS: &[Flag] = &[
    flag(
        "bind-address",
        Ip,
        "0.0.0.0",
        "Address to listen on. Empty, 0.0.0.0 or :: is every interface, IPv4 and IPv6.",
    ),
    flag(
        "cert-dir",
        Text,
        "",
        "Folder of the serving certificate if --tls-cert-file is not given: apiserver.crt and apiserver.key, made if \
         neither is there. Without it, pki in --data-dir.",
    ),
    flag("disable-http2-serving", Bool, "", "Serve HTTP/1.1 only."),
    flag(
        "http2-max-streams-per-connection",
        Int,
        "",
        "Requests at once that an HTTP/2 client may send by one connection; 0 is the default of 100.",
    ),
    flag(
        "park-idle-connections",
        Bool,
        "true",
        "Free the protocol state of connections that are idle until they are used again.",
    ),
    flag(
        "permit-address-sharing",
        Bool,
        "",
        "Listen although connections of an earlier process still close. Always on.",
    ),
    flag("permit-port-sharing", Bool, "", "Let several processes listen on the same port (SO_REUSEPORT)."),
    flag("secure-port", Int, "6443", "Port for HTTPS."),
    flag(
        "tls-cert-file",
        Text,
        "",
        "Serving certificate, followed by its intermediates. Without it one is made and renewed. Read again when it \
         changes.",
    ),
    flag(
        "tls-cipher-suites",
        List,
        "",
        "Cipher suites of TLS 1.2: TLS_ECDHE_{ECDSA,RSA}_WITH_{AES_128_GCM_SHA256,AES_256_GCM_SHA384,\
         CHACHA20_POLY1305_SHA256}. Those with CBC, RC4 or key exchange by RSA are refused; those of TLS 1.3 are always on.",
    ),
    flag(
        "tls-curve-preferences",
        Int32List,
        "",
        "Key exchanges by number: 4588 (X25519MLKEM768), 4587 (P-256 with ML-KEM-768), 4589 (P-384 with ML-KEM-1024), \
         29 (X25519), 23 (P-256), 24 (P-384), 25 (P-521). All of them without this flag.",
    ),
    flag(
        "tls-min-version",
        Text,
        "",
        "Oldest TLS version: VersionTLS12 or VersionTLS13. VersionTLS10 and VersionTLS11 mean 1.2.",
    ),
    flag("tls-private-key-file", Text, "", "Key of --tls-cert-file."),
    flag(
        "tls-sni-cert-key",
        NamedCertKey,
        "",
        "Another certificate for some names: cert,key[:name,…]. Without names, those in the certificate. Names may \
         start with *. and may be addresses. Can be repeated.",
    ),
];
