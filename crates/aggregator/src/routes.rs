//! Which group versions other servers serve, and how to reach those.

use crate::api_service::{ApiService, ServiceReference};
use arc_swap::ArcSwap;
use kubelith_meta::{GroupVersion, Str};
use kubelith_outbound::egress::Route;
use kubelith_outbound::proxy::{ClientCertificate, KeptTransport, TlsClient, Transport, TransportCounts};
use kubelith_tls::{Flaws, Trust};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

/// A server behind a service, as one APIService describes it.
pub struct Backend {
    /// The APIService's.
    pub name: Str,
    pub gv: GroupVersion,
    pub service: ServiceReference,
    /// What its APIService says; requests of clients are refused if not.
    pub available: bool,
    /// Why there can be no connection: what the APIService says about certificates makes no sense.
    pub transport: Result<Arc<Transport>, String>,
}

/// All backends. Readers never wait.
#[derive(Default)]
pub struct Routes {
    table: ArcSwap<Table>,
}

type Table = HashMap<Str, Vec<Arc<Backend>>>;

impl Routes {
    /// The backend of a path (decoded): that of its group version, or of everything below `/api`.
    pub fn of_path(&self, path: &str) -> Option<Arc<Backend>> {
        let table = self.table.load();
        if table.is_empty() {
            return None;
        }
        let mut parts = path.strip_prefix('/')?.splitn(4, '/');
        match (parts.next()?, parts.next(), parts.next()) {
            ("api", _, _) => find(&table, "", "v1"),
            ("apis", Some(group), Some(version)) if !group.is_empty() => find(&table, group, version),
            _ => None,
        }
    }

    pub fn get(&self, gv: &GroupVersion) -> Option<Arc<Backend>> {
        find(&self.table.load(), &gv.group, &gv.version)
    }

    pub fn all(&self) -> Vec<Arc<Backend>> {
        self.table.load().values().flatten().cloned().collect()
    }

    pub fn put(&self, backend: Arc<Backend>) {
        self.change(|table| {
            let versions = table.entry(backend.gv.group.clone()).or_default();
            versions.retain(|b| b.gv != backend.gv);
            versions.push(backend.clone());
        });
    }

    pub fn remove(&self, gv: &GroupVersion) {
        if self.get(gv).is_none() {
            return;
        }
        self.change(|table| {
            if let Some(versions) = table.get_mut(&gv.group) {
                versions.retain(|b| b.gv != *gv);
            }
            table.retain(|_, versions| !versions.is_empty());
        });
    }

    fn change(&self, change: impl Fn(&mut Table)) {
        self.table.rcu(|table| {
            let mut table = Table::clone(table);
            change(&mut table);
            table
        });
    }
}

fn find(table: &Table, group: &str, version: &str) -> Option<Arc<Backend>> {
    table.get(group)?.iter().find(|b| b.gv.version == version).cloned()
}

/// Makes transports, one for all APIServices that describe the same server in the same way.
pub struct Transports {
    certificate: Arc<ClientCertificate>,
    route: Route,
    flaws: Arc<Flaws>,
    counts: Arc<TransportCounts>,
    made: Mutex<HashMap<Key, (Weak<Transport>, KeptTransport)>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    trust: Trust,
    server_name: String,
    /// Of our own certificate: connections made with an older one are not used any more.
    generation: u64,
}

impl Transports {
    /// `flaws` counts old-fashioned certificates of extension servers, `counts` how transports are shared.
    pub fn new(
        certificate: Arc<ClientCertificate>,
        route: Route,
        flaws: Arc<Flaws>,
        counts: Arc<TransportCounts>,
    ) -> Transports {
        Transports { certificate, route, flaws, counts, made: Mutex::default() }
    }

    pub fn certificate(&self) -> &Arc<ClientCertificate> {
        &self.certificate
    }

    pub fn get(&self, api_service: &ApiService, service: &ServiceReference) -> Result<Arc<Transport>, String> {
        let trust = match (api_service.insecure_skip_tls_verify, api_service.ca_bundle.is_empty()) {
            (true, _) => Trust::Anyone,
            (false, true) => Trust::System,
            (false, false) => Trust::Authorities(api_service.ca_bundle.clone()),
        };
        let server_name = format!("{}.{}.svc", service.name, service.namespace);
        let key = Key { trust, server_name, generation: self.certificate.generation() };
        let mut made = self.made.lock().expect("no panic under this lock");
        if let Some(known) = made.get(&key).and_then(|(known, _)| known.upgrade()) {
            self.counts.found();
            return Ok(known);
        }
        made.retain(|_, (transport, _)| transport.strong_count() > 0);
        let tls = TlsClient {
            trust: key.trust.clone(),
            server_name: Some(key.server_name.clone()),
            certificate: self.certificate.clone(),
            flaws: Some(self.flaws.clone()),
        };
        let transport = Arc::new(Transport::by(&self.route, Some(&tls)).map_err(|e| e.to_string())?);
        made.insert(key, (Arc::downgrade(&transport), self.counts.made()));
        Ok(transport)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend(group: &str, version: &str) -> Arc<Backend> {
        Arc::new(Backend {
            name: format!("{version}.{group}").into(),
            gv: GroupVersion::new(group, version),
            service: ServiceReference { namespace: "n".into(), name: "s".into(), port: 443 },
            available: true,
            transport: Err("none".into()),
        })
    }

    #[test]
    fn paths_lead_to_their_group_version() {
        let routes = Routes::default();
        assert!(routes.of_path("/apis/a.b/v1").is_none());
        routes.put(backend("a.b", "v1"));
        routes.put(backend("a.b", "v2"));
        for (path, want) in [
            ("/apis/a.b/v1", "v1.a.b"),
            ("/apis/a.b/v1/", "v1.a.b"),
            ("/apis/a.b/v2/namespaces/x/things", "v2.a.b"),
            ("/apis/a.b/v10", ""),
            ("/apis/a.b", ""),
            ("/apis/a.b/", ""),
            ("/apis", ""),
            ("/api/v1/pods", ""),
            ("//apis/a.b/v1", ""),
            ("/", ""),
            ("", ""),
        ] {
            assert_eq!(routes.of_path(path).map_or("".into(), |b| b.name.clone()), want, "{path}");
        }
        routes.put(backend("", "v1"));
        assert_eq!(routes.of_path("/api").unwrap().name, "v1.");
        routes.remove(&GroupVersion::new("a.b", "v1"));
        assert!(routes.of_path("/apis/a.b/v1").is_none());
        assert_eq!(routes.all().len(), 2);
    }
}
