//! Options of the socket and TLS.

use crate::flags::Flags;
use crate::flags::kind::NamedCertKey;
use kubelith_listen::{BindOptions, DEFAULT_MAX_STREAMS, Sharing};
use kubelith_system::require_port_sharing;
use kubelith_tls::{CertKeyFiles, SniCertKey, TlsPolicy};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

#[derive(Debug, Clone)]
pub struct ServingOptions {
    pub bind: BindOptions,
    pub http2: bool,
    pub max_streams_per_connection: u32,
    pub park_idle: bool,
    /// Where a certificate is made if none is given; `None` for our own folder.
    pub cert_dir: Option<PathBuf>,
    pub certificate: Option<CertKeyFiles>,
    /// What clients verify the serving certificate by, once it is known.
    pub root_ca_file: Option<PathBuf>,
    pub sni: Vec<SniCertKey>,
    pub policy: TlsPolicy,
}

impl ServingOptions {
    pub fn from_flags(flags: &Flags, errors: &mut Vec<String>) -> ServingOptions {
        let port = flags.int("secure-port");
        if !(1..=65535).contains(&port) {
            errors.push(format!(
                "--secure-port {port} must be between 1 and 65535, inclusive. It cannot be turned off with 0"
            ));
        }
        let address = flags.text("bind-address").parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let sharing = if flags.bool("permit-port-sharing") { Sharing::Port } else { Sharing::Exclusive };
        if sharing == Sharing::Port {
            errors.extend(require_port_sharing("--permit-port-sharing").err());
        }
        let cert_dir = flags.text("cert-dir");
        let (cert, key) = (flags.text("tls-cert-file"), flags.text("tls-private-key-file"));
        let certificate = (!cert.is_empty() || !key.is_empty())
            .then(|| CertKeyFiles { cert: PathBuf::from(cert), key: PathBuf::from(key) });
        let sni = flags.list("tls-sni-cert-key").into_iter().filter_map(|text| NamedCertKey::parse(&text).ok());
        let sni = sni.map(|pair| SniCertKey {
            files: CertKeyFiles { cert: pair.cert.into(), key: pair.key.into() },
            names: pair.names,
        });
        let curves: Vec<i32> = flags.list("tls-curve-preferences").iter().filter_map(|n| n.parse().ok()).collect();
        let policy = TlsPolicy::parse(&flags.text("tls-min-version"), &flags.list("tls-cipher-suites"), &curves)
            .unwrap_or_else(|e| {
                errors.push(e.to_string());
                TlsPolicy::default()
            });
        let streams = u32::try_from(flags.int("http2-max-streams-per-connection")).unwrap_or(0);
        ServingOptions {
            bind: BindOptions { address, port: port.clamp(0, 65535) as u16, sharing },
            http2: !flags.bool("disable-http2-serving"),
            max_streams_per_connection: if streams == 0 { DEFAULT_MAX_STREAMS } else { streams },
            park_idle: flags.bool("park-idle-connections"),
            cert_dir: (!cert_dir.is_empty()).then(|| PathBuf::from(cert_dir)),
            certificate,
            root_ca_file: None,
            sni: sni.collect(),
            policy,
        }
    }

    /// The reference notices when it begins to listen: after all that is wrong with flags themselves.
    pub fn check_http2(&self) -> Result<(), String> {
        if self.http2 { self.policy.check_http2().map_err(|e| e.to_string()) } else { Ok(()) }
    }

    pub fn alpn(&self) -> Vec<Vec<u8>> {
        let http1 = b"http/1.1".to_vec();
        if self.http2 { vec![b"h2".to_vec(), http1] } else { vec![http1] }
    }
}
