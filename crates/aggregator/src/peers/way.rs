//! The way to other servers. The file with their authorities may be replaced while this server runs.

use kubelith_outbound::egress::Route;
use kubelith_outbound::proxy::{ClientCertificate, TlsClient, Transport};
use kubelith_tls::Trust;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// In the certificates of all servers.
const SERVER_NAME: &str = "kubernetes.default.svc";
/// How often the file is looked at; as in the reference.
const LOOK_EVERY: Duration = Duration::from_secs(5 * 60);

pub struct Way {
    file: PathBuf,
    certificate: Arc<ClientCertificate>,
    route: Route,
    current: Mutex<Current>,
}

struct Current {
    /// What was in the file.
    authorities: Vec<u8>,
    transport: Arc<Transport>,
    looked: Instant,
}

impl Way {
    pub fn new(file: PathBuf, certificate: Arc<ClientCertificate>, route: Route) -> Result<Way, String> {
        let authorities = std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let transport = transport(&authorities, &certificate, &route)?;
        let current = Mutex::new(Current { authorities, transport, looked: Instant::now() });
        Ok(Way { file, certificate, route, current })
    }

    /// To be asked for each request.
    pub fn transport(&self) -> Arc<Transport> {
        self.transport_if_older_than(LOOK_EVERY)
    }

    fn transport_if_older_than(&self, age: Duration) -> Arc<Transport> {
        let mut current = self.current.lock().expect("no panic under this lock");
        if current.looked.elapsed() >= age {
            current.looked = Instant::now();
            if let Err(why) = self.follow(&mut current) {
                // Whoever was believed before still is.
                tracing::error!(err = why, file = %self.file.display(), "authorities of other servers");
            }
        }
        current.transport.clone()
    }

    fn follow(&self, current: &mut Current) -> Result<(), String> {
        let authorities = std::fs::read(&self.file).map_err(|e| e.to_string())?;
        if authorities.is_empty() {
            return Err("the file is empty".to_owned());
        }
        if authorities != current.authorities {
            current.transport = transport(&authorities, &self.certificate, &self.route)?;
            current.authorities = authorities;
        }
        Ok(())
    }
}

fn transport(
    authorities: &[u8],
    certificate: &Arc<ClientCertificate>,
    route: &Route,
) -> Result<Arc<Transport>, String> {
    let tls = TlsClient {
        trust: Trust::Authorities(authorities.to_vec()),
        server_name: Some(SERVER_NAME.to_owned()),
        certificate: certificate.clone(),
        flaws: None,
    };
    Ok(Arc::new(Transport::by(route, Some(&tls)).map_err(|e| e.to_string())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_tls::{ServingNames, pair_in};

    #[test]
    fn a_replaced_file_counts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.crt");
        let authority = |name: &str| {
            let names = ServingNames { names: [name.to_owned()].into(), ..ServingNames::default() };
            std::fs::read(pair_in(&folder.path().join(name), &names).unwrap().cert).unwrap()
        };
        std::fs::write(&file, authority("one")).unwrap();
        let way = Way::new(file.clone(), ClientCertificate::none(), Route::Direct).unwrap();
        let first = way.transport();
        let look = || way.transport_if_older_than(Duration::ZERO);
        assert!(Arc::ptr_eq(&first, &look()), "nothing has changed");
        std::fs::write(&file, authority("two")).unwrap();
        assert!(Arc::ptr_eq(&first, &way.transport()), "it is not time to look yet");
        let second = look();
        assert!(!Arc::ptr_eq(&first, &second));
        for useless in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            std::fs::write(&file, useless).unwrap();
            assert!(Arc::ptr_eq(&second, &look()), "{useless:?}");
        }
    }
}
