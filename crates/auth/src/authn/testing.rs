//! A request to ask authenticators about, for tests.

use crate::testing::block_on;
use crate::traits::{AuthRequest, Authentication, Authenticator, CertificateDer, PeerCertificates};
use http::{HeaderMap, HeaderName, HeaderValue};
use kubelith_meta::Str;

#[derive(Default)]
pub struct Probe {
    pub headers: HeaderMap,
    pub certificates: Option<PeerCertificates>,
    pub path: String,
    pub audiences: Vec<Str>,
}

impl Probe {
    pub fn new() -> Probe {
        Probe { path: "/api/v1/pods".into(), ..Probe::default() }
    }

    pub fn header(self, name: &str, value: &str) -> Probe {
        self.header_bytes(name, value.as_bytes())
    }

    pub fn header_bytes(mut self, name: &str, value: &[u8]) -> Probe {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        self.headers.append(name, HeaderValue::from_bytes(value).unwrap());
        self
    }

    pub fn path(mut self, path: &str) -> Probe {
        self.path = path.into();
        self
    }

    pub fn certificates(mut self, chain: &[CertificateDer<'static>]) -> Probe {
        self.certificates = PeerCertificates::new(chain.to_vec());
        self
    }

    pub fn ask(&self, authenticator: &dyn Authenticator) -> Authentication {
        let request = AuthRequest {
            headers: &self.headers,
            peer_certificates: self.certificates.as_ref(),
            path: &self.path,
            audiences: &self.audiences,
        };
        block_on(authenticator.authenticate(request).into_future())
    }
}
