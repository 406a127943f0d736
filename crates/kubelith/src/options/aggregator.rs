//! How requests reach other API servers.

use crate::flags::Flags;
use kubelith_tls::CertKeyFiles;
use std::path::PathBuf;

#[derive(Debug, Clone, Default)]
pub struct AggregatorOptions {
    /// Straight to endpoints instead of cluster addresses.
    pub route_to_endpoints: bool,
    /// Answers that send the client elsewhere are refused.
    pub reject_redirects: bool,
    /// By which other servers know this one.
    pub client_certificate: Option<CertKeyFiles>,
    /// Authorities of the certificates of other servers of the cluster: what only they serve is asked for there.
    pub peer_ca_file: Option<PathBuf>,
}

impl AggregatorOptions {
    pub fn from_flags(flags: &Flags, errors: &mut Vec<String>) -> AggregatorOptions {
        let (cert, key) = (flags.text("proxy-client-cert-file"), flags.text("proxy-client-key-file"));
        if cert.is_empty() != key.is_empty() {
            errors.push("--proxy-client-cert-file and --proxy-client-key-file must be specified together".to_owned());
        }
        let given = !cert.is_empty() && !key.is_empty();
        AggregatorOptions {
            route_to_endpoints: flags.bool("enable-aggregator-routing"),
            reject_redirects: flags.bool("aggregator-reject-forwarding-redirect"),
            client_certificate: given.then(|| CertKeyFiles { cert: cert.into(), key: key.into() }),
            peer_ca_file: Some(flags.text("peer-ca-file")).filter(|file| !file.is_empty()).map(PathBuf::from),
        }
    }
}
