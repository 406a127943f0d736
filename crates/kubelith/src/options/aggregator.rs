//! How requests reach other API servers.

use crate::flags::Flags;
use kubelith_tls::CertKeyFiles;

#[derive(Debug, Clone, Default)]
pub struct AggregatorOptions {
    /// Straight to endpoints instead of cluster addresses.
    pub route_to_endpoints: bool,
    /// Answers that send the client elsewhere are refused.
    pub reject_redirects: bool,
    /// By which other servers know this one.
    pub client_certificate: Option<CertKeyFiles>,
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
        }
    }
}
