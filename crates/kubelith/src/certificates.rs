//! Which certificates this server has: those that flags name, as they are, and those it makes where flags leave a gap.
//!
//! The folder of the data is touched only if it is in use: by the embedded store, because it was asked for, or because
//! nothing else says where the serving certificate is. An authority of one's own for clients belongs to that case, and
//! steps back as soon as `--client-ca-file` names another.

use crate::failure::Failure;
use crate::options::{ClockOptions, Options, RequestHeaderOptions, StorageBackend};
use kubelith_auth::authn::request_header::RequestHeaderNames;
use kubelith_server::ServerBuilder;
use kubelith_tls::{CertKeyFiles, Part, Pki, PkiOptions, ServingNames, expiry, local_names, pair_in};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often certificates are looked at for their end.
const RENEW_INTERVAL: Duration = Duration::from_secs(12 * 3600);

#[derive(Clone)]
pub struct Certificates {
    pub serving: CertKeyFiles,
    /// Our own authority, if something is issued by it.
    pki: Option<Pki>,
    admin: Option<Admin>,
}

/// Whether certificates must outlive a failure of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    Yes,
    /// They are a test's, or another server has seen to it.
    No,
}

/// The administrator's kubeconfig.
#[derive(Clone)]
struct Admin {
    path: PathBuf,
    server: String,
    /// What clients trust, if it is not our authority.
    serving: Option<PathBuf>,
}

impl Certificates {
    pub fn open(options: &Options) -> Result<Certificates, Failure> {
        let (parts, names) = (parts(options), || names(options));
        let open = || {
            Pki::open(
                options.data_dir.join("pki"),
                PkiOptions { names: names(), parts: parts.clone(), present: present(options) },
            )
        };
        let pki = (!parts.is_empty()).then(open).transpose()?;
        let serving = match (&options.serving.certificate, &options.serving.cert_dir, &pki) {
            (Some(given), ..) => given.clone(),
            (None, Some(dir), _) => {
                pair_in(dir, &names()).map_err(|e| format!("error creating self-signed certificates: {e}"))?
            }
            (None, None, Some(pki)) => CertKeyFiles { cert: pki.serving_cert(), key: pki.serving_key() },
            (None, None, None) => return Err("missing filename for serving cert".to_owned().into()),
        };
        let admin = pki.as_ref().filter(|pki| pki.has(Part::Admin)).map(|pki| Admin {
            path: options.data_dir.join("admin.kubeconfig"),
            server: local_url(options),
            serving: (!pki.has(Part::Serving)).then(|| serving.cert.clone()),
        });
        Ok(Certificates { serving, pki, admin })
    }

    /// The options with our own authorities where they are in use: for clients, and for the front proxy by which
    /// extension servers know this server.
    pub fn complete(&self, mut options: Options) -> Options {
        let ours = self.pki.as_ref().filter(|pki| pki.has(Part::Serving));
        options.serving.root_ca_file = Some(ours.map_or_else(|| self.serving.cert.clone(), Pki::ca_cert));
        let Some(pki) = &self.pki else { return options };
        if pki.has(Part::Admin) {
            options.authentication.client_ca_file = Some(pki.ca_cert());
            options.authentication.client_authority = Some(CertKeyFiles { cert: pki.ca_cert(), key: pki.ca_key() });
        }
        if pki.has(Part::FrontProxy) {
            options.aggregator.client_certificate =
                Some(CertKeyFiles { cert: pki.front_proxy_cert(), key: pki.front_proxy_key() });
            options.authentication.request_header = Some(RequestHeaderOptions {
                client_ca_file: pki.front_proxy_ca(),
                allowed_names: vec![Pki::FRONT_PROXY_NAME.to_owned()],
                names: RequestHeaderNames { uid: Vec::new(), ..RequestHeaderNames::standard() },
            });
        }
        options
    }

    /// Says which certificates of others have ended: the server starts, as the reference does, and nobody can connect.
    pub fn warn(&self, options: &Options) {
        let ca = options.authentication.client_ca_file.as_deref();
        let serving = Some(self.serving.cert.as_path());
        for (what, flag, file) in
            [("serving certificate", "tls-cert-file", serving), ("authority for clients", "client-ca-file", ca)]
        {
            if let Some((file, end)) = file.and_then(|file| Some((file, expiry::ended(file)?))) {
                tracing::warn!(
                    file = %file.display(),
                    "The {what} ended at {end}: connections with it fail. Replace the file (--{flag}); it is read again \
                     while the server runs"
                );
            }
        }
    }

    /// Where the administrator's kubeconfig belongs, if there is an administrator of ours.
    pub fn kubeconfig_path(&self) -> Option<&Path> {
        self.admin.as_ref().map(|admin| admin.path.as_path())
    }

    /// Writes the administrator's kubeconfig, if there is an administrator of ours, and says where it is.
    pub fn write_kubeconfig(&self) -> Result<Option<PathBuf>, String> {
        let (Some(pki), Some(admin)) = (&self.pki, &self.admin) else { return Ok(None) };
        admin.write(pki).map_err(|e| e.to_string())?;
        Ok(Some(admin.path.clone()))
    }

    /// The administrator's kubeconfig for a server at another address, if there is an administrator of ours.
    pub fn kubeconfig(&self, server: &str) -> Result<Option<String>, String> {
        let (Some(pki), Some(admin)) = (&self.pki, &self.admin) else { return Ok(None) };
        pki.admin_kubeconfig(server, admin.serving.as_deref()).map(Some).map_err(|e| e.to_string())
    }

    /// A certificate of our authority for a client, and its key.
    pub fn issue_client(&self, name: &str, group: Option<&str>) -> Result<(String, String), String> {
        let pki = self.pki.as_ref().filter(|pki| pki.has(Part::Admin));
        let pki = pki.ok_or("clients are vouched for by another authority: --client-ca-file")?;
        pki.issue_client(name, group).map_err(|e| e.to_string())
    }

    /// PEM of what clients trust.
    pub fn authority(&self) -> Result<String, String> {
        let ours = self.pki.as_ref().filter(|pki| pki.has(Part::Serving));
        let path = ours.map_or_else(|| self.serving.cert.clone(), Pki::ca_cert);
        std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Renews what is ours while the server runs; the listener reads it again by itself. New certificates are brought to
    /// the disk once it is ready: until then the disk is busy with the first objects.
    pub fn keep(&self, builder: &ServerBuilder, lasting: Lasting) {
        let Some(pki) = self.pki.clone() else { return };
        let admin = self.admin.clone();
        let ready = builder.lifecycle().has_been_ready;
        builder.tasks().spawn_until_stopped("certificate-renewal", async move {
            ready.cancelled().await;
            let made = pki.clone();
            if lasting == Lasting::Yes
                && let Ok(Err(why)) = tokio::task::spawn_blocking(move || made.sync()).await
            {
                tracing::warn!(err = %why, "certificates may not be on disk");
            }
            loop {
                tokio::time::sleep(RENEW_INTERVAL).await;
                let renewed = pki.renew().and_then(|_| admin.as_ref().map_or(Ok(()), |admin| admin.write(&pki)));
                if let Err(why) = renewed {
                    tracing::error!(err = %why, "certificates not renewed");
                }
            }
        });
    }
}

impl Admin {
    fn write(&self, pki: &Pki) -> Result<(), kubelith_tls::pki::PkiError> {
        pki.write_admin_kubeconfig(&self.path, &self.server, self.serving.as_deref())
    }
}

/// What our own authority issues.
fn parts(options: &Options) -> BTreeSet<Part> {
    let serving = options.serving.certificate.is_none() && options.serving.cert_dir.is_none();
    let folder_in_use = serving || options.data_dir_given || options.storage.backend == StorageBackend::Embedded;
    let clients = folder_in_use && options.authentication.client_ca_file.is_none();
    let no_proxy = options.authentication.request_header.is_none() && options.aggregator.client_certificate.is_none();
    let parts = [(Part::Serving, serving), (Part::Admin, clients), (Part::FrontProxy, clients && no_proxy)];
    parts.into_iter().filter(|(_, wanted)| *wanted).map(|(part, _)| part).collect()
}

/// What a clock shows that does not begin with the present.
fn present(options: &Options) -> Option<i64> {
    match options.test_api.clock {
        ClockOptions::Manual(from) => from.map(|from| from.unix_seconds()),
        ClockOptions::System => None,
    }
}

/// By which clients may know a serving certificate that is made.
fn names(options: &Options) -> ServingNames {
    let network = &options.network;
    let mut names: BTreeSet<String> = [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ]
    .map(str::to_owned)
    .into();
    names.extend(local_names::hostname());
    let external = &options.generic.external_hostname;
    if !external.is_empty() && external.parse::<IpAddr>().is_err() {
        names.insert(external.clone());
    }
    let mut addresses = local_names::interface_addresses();
    addresses.extend([IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]);
    addresses.extend([network.advertise_address, network.kubernetes_service_address()]);
    addresses.extend(Some(options.serving.bind.address).filter(|a| !a.is_unspecified()));
    ServingNames { names, addresses }
}

/// The URL for clients on this machine.
pub fn local_url(options: &Options) -> String {
    let bind = &options.serving.bind;
    let address = if bind.address.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { bind.address };
    format!("https://{}", SocketAddr::new(address, bind.port))
}

/// For a shell.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
