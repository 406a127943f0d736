//! The ways to kubelets. Our certificate comes from files that may be replaced while the server runs; connections that were made with an old
//! one are then left.

use super::KubeletOptions;
use arc_swap::ArcSwap;
use kubelith_outbound::proxy::{ClientCertificate, TlsClient, Transport};
use kubelith_tls::Trust;
use kubelith_tls::files::unopened;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The files are looked at this often, if somebody wants to reach a kubelet.
const LOOK: Duration = Duration::from_secs(2);

pub struct Ways {
    certificate: Arc<ClientCertificate>,
    make: Box<dyn Fn() -> Result<Transports, String> + Send + Sync>,
    current: ArcSwap<Transports>,
    looked_at: Mutex<Option<Instant>>,
}

/// With one certificate of ours.
struct Transports {
    verifying: Arc<Transport>,
    /// For clients that take any certificate of a kubelet.
    insecure: Arc<Transport>,
}

impl Ways {
    pub fn new(options: &KubeletOptions) -> Result<Ways, String> {
        let certificate = match &options.client_certificate {
            Some((cert, key)) => ClientCertificate::load(cert.clone(), key.clone())?,
            None => ClientCertificate::none(),
        };
        let trust = match &options.certificate_authority {
            Some(file) => Trust::Authorities(std::fs::read(file).map_err(|e| unopened(file, &e))?),
            None => Trust::Anyone,
        };
        let (route, bandwidth, own) = (options.route.clone(), options.bandwidth, certificate.clone());
        let transport = move |trust| {
            let tls = TlsClient { trust, server_name: None, certificate: own.clone(), flaws: None };
            let transport = Transport::by(&route, Some(&tls)).map_err(|e| e.to_string())?;
            Ok::<_, String>(Arc::new(transport.limited_to(bandwidth)))
        };
        let make = move || Ok(Transports { verifying: transport(trust.clone())?, insecure: transport(Trust::Anyone)? });
        let current = ArcSwap::from_pointee(make()?);
        Ok(Ways { certificate, make: Box::new(make), current, looked_at: Mutex::new(Some(Instant::now())) })
    }

    pub fn verifying(&self) -> Arc<Transport> {
        self.current().verifying.clone()
    }

    pub fn insecure(&self) -> Arc<Transport> {
        self.current().insecure.clone()
    }

    fn current(&self) -> Arc<Transports> {
        if self.is_due() {
            match self.certificate.reload().and_then(|changed| changed.then(&self.make).transpose()) {
                Ok(Some(made)) => self.current.store(Arc::new(made)),
                Ok(None) => {}
                Err(why) => {
                    tracing::error!(err = why, "the certificate for kubelets cannot be loaded; the old one is used");
                }
            }
        }
        self.current.load_full()
    }

    /// Whether it is time to look at the files; of those who ask, one is told so.
    fn is_due(&self) -> bool {
        let mut looked_at = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = looked_at.is_none_or(|last| last.elapsed() >= LOOK);
        if is_due {
            *looked_at = Some(Instant::now());
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_certificate_has_connections_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let files = (dir.path().join("crt"), dir.path().join("key"));
        let write = || {
            let pair = rcgen::generate_simple_self_signed(["client".to_owned()]).unwrap();
            std::fs::write(&files.0, pair.cert.pem()).unwrap();
            std::fs::write(&files.1, pair.signing_key.serialize_pem()).unwrap();
        };
        write();
        let options = KubeletOptions { client_certificate: Some(files.clone()), ..KubeletOptions::default() };
        let ways = Ways::new(&options).unwrap();
        let look = || {
            *ways.looked_at.lock().unwrap() = None;
            ways.verifying()
        };
        let first = look();
        assert!(Arc::ptr_eq(&first, &look()), "nothing has changed");
        std::fs::write(&files.0, "garbage").unwrap();
        assert!(Arc::ptr_eq(&first, &look()), "what cannot be read is passed over");
        write();
        assert!(Arc::ptr_eq(&first, &ways.verifying()), "it is not looked at all the time");
        assert!(!Arc::ptr_eq(&first, &look()));
    }
}
