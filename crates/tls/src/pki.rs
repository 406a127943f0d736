//! The server's own certificate authority, made on first start under `<data-dir>/pki`: the serving certificate, the
//! administrator's client certificate and kubeconfig; and a second authority for the certificate by which extension
//! servers know this one. What is there and still good is kept; what nobody asked for is not made.
//!
//! Keys are ECDSA P-256: made in microseconds, so a first start costs no more than the next one.

use super::files::{self, Access};
use super::kubeconfig::AdminKubeconfig;
use super::server_config::CertKeyFiles;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use time::{Duration, OffsetDateTime};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

const CA_LIFETIME: Duration = Duration::days(3650);
/// As the reference's self-signed certificates. Renewed on start and while running.
const LEAF_LIFETIME: Duration = Duration::days(365);
const RENEW_BEFORE: Duration = Duration::days(60);
/// Certificates are valid from a little earlier, for clients whose clock is late.
const CLOCK_SKEW: Duration = Duration::hours(1);

const ADMIN_GROUP: &str = "system:masters";

/// Signs for clients and for this server.
const CA: &str = "ca";
/// Signs for the front proxy alone: whoever has such a certificate may speak for anybody.
const FRONT_PROXY_CA: &str = "front-proxy-ca";

/// What the authority issues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Serving,
    Admin,
    FrontProxy,
}

impl Part {
    pub const ALL: [Part; 3] = [Part::Serving, Part::Admin, Part::FrontProxy];

    /// The name of its files.
    fn name(self) -> &'static str {
        match self {
            Part::Serving => "apiserver",
            Part::Admin => "admin",
            Part::FrontProxy => "front-proxy",
        }
    }

    /// Who signs it.
    fn authority(self) -> &'static str {
        match self {
            Part::Serving | Part::Admin => CA,
            Part::FrontProxy => FRONT_PROXY_CA,
        }
    }
}

#[derive(Debug, Clone)]
pub struct PkiOptions {
    pub names: ServingNames,
    pub parts: BTreeSet<Part>,
    /// In seconds since 1970, what the server takes for the present if it is another time than that of the machine.
    /// Certificates are good by both.
    pub present: Option<i64>,
}

/// Names and addresses that clients may use.
#[derive(Debug, Clone, Default)]
pub struct ServingNames {
    pub names: BTreeSet<String>,
    pub addresses: BTreeSet<IpAddr>,
}

impl PkiOptions {
    /// For everything, the server being known by these names.
    pub fn all<'a>(
        names: impl IntoIterator<Item = &'a str>,
        addresses: impl IntoIterator<Item = IpAddr>,
    ) -> PkiOptions {
        let names = names.into_iter().map(str::to_owned).collect();
        let names = ServingNames { names, addresses: addresses.into_iter().collect() };
        PkiOptions { names, parts: Part::ALL.into(), present: None }
    }
}

/// The authority and what it has issued, as files.
#[derive(Debug, Clone)]
pub struct Pki {
    dir: PathBuf,
    options: PkiOptions,
}

#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path}: {why}")]
    Bad { path: PathBuf, why: String },
    /// In the reference's words.
    #[error("error reading {path}, certificate and key must be supplied as a pair")]
    HalfAPair { path: PathBuf },
    #[error("unable to make a certificate: {0}")]
    Make(#[from] rcgen::Error),
}

/// Authorities whose keys are at hand while something is issued: reading one takes as long as making one.
type Issuers = BTreeMap<&'static str, Issuer<'static, KeyPair>>;

impl Pki {
    /// The administrator whose certificate is made.
    pub const ADMIN_NAME: &str = "kubernetes-admin";
    /// The common name in the front proxy's certificate.
    pub const FRONT_PROXY_NAME: &str = "front-proxy";

    /// Opens the authority in `dir`, making what is missing, expired, or lacks one of the names.
    pub fn open(dir: impl Into<PathBuf>, options: PkiOptions) -> Result<Pki, PkiError> {
        let pki = Pki { dir: dir.into(), options };
        files::make_private_folder(&pki.dir).map_err(|source| PkiError::Io { path: pki.dir.clone(), source })?;
        let mut issuers = Issuers::new();
        for (name, subject) in [(CA, "kubelith-ca"), (FRONT_PROXY_CA, "kubelith-front-proxy-ca")] {
            let filled = |kind: &str| files::is_filled(&pki.path(&format!("{name}.{kind}")));
            if pki.authorities().contains(name) && (!filled("crt") || !filled("key")) {
                issuers.insert(name, pki.make_ca(name, subject)?);
            }
        }
        pki.renew_with(&mut issuers)?;
        Ok(pki)
    }

    /// Issues anew what nears its end. True if something was written.
    pub fn renew(&self) -> Result<bool, PkiError> {
        self.renew_with(&mut Issuers::new())
    }

    fn renew_with(&self, issuers: &mut Issuers) -> Result<bool, PkiError> {
        let mut written = false;
        for part in &self.options.parts {
            let (needed, params) = match part {
                Part::Serving => (self.options.names.clone(), self.options.names.params()?),
                Part::Admin => (ServingNames::default(), client_params(Pki::ADMIN_NAME, Some(ADMIN_GROUP))),
                Part::FrontProxy => (ServingNames::default(), client_params(Pki::FRONT_PROXY_NAME, None)),
            };
            if self.is_stale(part.authority(), part.name(), &needed)? {
                self.issue(issuers, part.authority(), part.name(), params)?;
                written = true;
            }
        }
        Ok(written)
    }

    /// Brings everything to the disk. Costs some milliseconds per file, so a first start does it while it
    /// serves already; what a power failure empties before is made anew.
    pub fn sync(&self) -> Result<(), PkiError> {
        let issued = self.options.parts.iter().map(|part| part.name());
        for name in self.authorities().into_iter().chain(issued) {
            for kind in ["key", "crt"] {
                let path = self.path(&format!("{name}.{kind}"));
                files::sync(&path).map_err(|source| PkiError::Io { path, source })?;
            }
        }
        Ok(())
    }

    fn authorities(&self) -> BTreeSet<&'static str> {
        self.options.parts.iter().map(|part| part.authority()).collect()
    }

    /// Whether this is one of the things that are issued here.
    pub fn has(&self, part: Part) -> bool {
        self.options.parts.contains(&part)
    }

    pub fn ca_cert(&self) -> PathBuf {
        self.path("ca.crt")
    }

    pub fn ca_key(&self) -> PathBuf {
        self.path("ca.key")
    }

    /// Of the certificate by which extension servers know this one.
    pub fn front_proxy_ca(&self) -> PathBuf {
        self.path("front-proxy-ca.crt")
    }

    pub fn front_proxy_cert(&self) -> PathBuf {
        self.path("front-proxy.crt")
    }

    pub fn front_proxy_key(&self) -> PathBuf {
        self.path("front-proxy.key")
    }

    pub fn serving_cert(&self) -> PathBuf {
        self.path("apiserver.crt")
    }

    pub fn serving_key(&self) -> PathBuf {
        self.path("apiserver.key")
    }

    /// Writes the administrator's kubeconfig, unless it already says the same. `serving_cert` is a certificate
    /// that others issued for this server; clients then trust it instead of our authority.
    pub fn write_admin_kubeconfig(
        &self,
        path: &Path,
        server: &str,
        serving_cert: Option<&Path>,
    ) -> Result<(), PkiError> {
        let text = self.admin_kubeconfig(server, serving_cert)?;
        if std::fs::read_to_string(path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        files::write(path, text.as_bytes(), Access::Private)
            .map_err(|source| PkiError::Io { path: path.to_owned(), source })
    }

    /// The same as text.
    pub fn admin_kubeconfig(&self, server: &str, serving_cert: Option<&Path>) -> Result<String, PkiError> {
        let ca = serving_cert.map_or_else(|| self.ca_cert(), Path::to_owned);
        Ok(AdminKubeconfig {
            server,
            ca_pem: &std::fs::read_to_string(&ca).map_err(|source| PkiError::Io { path: ca, source })?,
            cert_pem: &self.read("admin.crt")?,
            key_pem: &self.read("admin.key")?,
        }
        .render())
    }

    /// A certificate for a client, which is kept nowhere: PEM of the certificate and of its key.
    pub fn issue_client(&self, name: &str, group: Option<&str>) -> Result<(String, String), PkiError> {
        self.sign(&mut Issuers::new(), CA, client_params(name, group))
    }

    fn make_ca(&self, name: &str, common_name: &str) -> Result<Issuer<'static, KeyPair>, PkiError> {
        let key = KeyPair::generate()?;
        let mut params = ca_params(common_name, CA_LIFETIME);
        self.widen(&mut params, CA_LIFETIME);
        let cert = params.self_signed(&key)?;
        self.write(&format!("{name}.key"), &key.serialize_pem(), Access::Private)?;
        self.write(&format!("{name}.crt"), &cert.pem(), Access::Public)?;
        Ok(Issuer::new(params, key))
    }

    fn issue(
        &self,
        issuers: &mut Issuers,
        ca: &'static str,
        name: &str,
        params: CertificateParams,
    ) -> Result<(), PkiError> {
        let (cert, key) = self.sign(issuers, ca, params)?;
        self.write(&format!("{name}.key"), &key, Access::Private)?;
        self.write(&format!("{name}.crt"), &cert, Access::Public)
    }

    /// PEM of a certificate and of its new key.
    fn sign(
        &self,
        issuers: &mut Issuers,
        ca: &'static str,
        mut params: CertificateParams,
    ) -> Result<(String, String), PkiError> {
        as_leaf(&mut params);
        self.widen(&mut params, LEAF_LIFETIME);
        let issuer = match issuers.entry(ca) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(self.issuer(ca)?),
        };
        let key = KeyPair::generate()?;
        let cert = params.signed_by(&key, issuer)?;
        Ok((cert.pem(), key.serialize_pem()))
    }

    fn issuer(&self, ca: &str) -> Result<Issuer<'static, KeyPair>, PkiError> {
        let key = KeyPair::from_pem(&self.read(&format!("{ca}.key"))?)?;
        Ok(Issuer::from_ca_cert_pem(&self.read(&format!("{ca}.crt"))?, key)?)
    }

    /// Makes a certificate good by the server's time as well.
    fn widen(&self, params: &mut CertificateParams, lifetime: Duration) {
        let present = self.options.present.and_then(|at| OffsetDateTime::from_unix_timestamp(at).ok());
        if let Some(present) = present {
            params.not_before = params.not_before.min(present - CLOCK_SKEW);
            params.not_after = params.not_after.max(present + lifetime);
        }
    }

    fn is_stale(&self, ca: &str, name: &str, needed: &ServingNames) -> Result<bool, PkiError> {
        let cert_path = self.path(&format!("{name}.crt"));
        if !files::is_filled(&cert_path) || !files::is_filled(&self.path(&format!("{name}.key"))) {
            return Ok(true);
        }
        let bad = |why: String| PkiError::Bad { path: cert_path.clone(), why };
        let der = CertificateDer::from_pem_file(&cert_path).map_err(|e| bad(e.to_string()))?;
        let (_, cert) = X509Certificate::from_der(&der).map_err(|e| bad(e.to_string()))?;
        let ends = cert.validity().not_after.to_datetime();
        Ok(ends - RENEW_BEFORE < OffsetDateTime::now_utc() || !covers(&cert, needed) || !self.is_ours(ca, &cert)?)
    }

    /// A certificate of an authority that was replaced is of no use.
    fn is_ours(&self, ca: &str, cert: &X509Certificate<'_>) -> Result<bool, PkiError> {
        let path = self.path(&format!("{ca}.crt"));
        let bad = |why: String| PkiError::Bad { path: path.clone(), why };
        let der = CertificateDer::from_pem_file(&path).map_err(|e| bad(e.to_string()))?;
        let (_, ca) = X509Certificate::from_der(&der).map_err(|e| bad(e.to_string()))?;
        Ok(authority_key_id(cert) == subject_key_id(&ca))
    }

    fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    fn read(&self, file: &str) -> Result<String, PkiError> {
        let path = self.path(file);
        std::fs::read_to_string(&path).map_err(|source| PkiError::Io { path, source })
    }

    fn write(&self, file: &str, contents: &str, access: Access) -> Result<(), PkiError> {
        let path = self.path(file);
        files::write(&path, contents.as_bytes(), access).map_err(|source| PkiError::Io { path, source })
    }
}

impl ServingNames {
    fn params(&self) -> Result<CertificateParams, rcgen::Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = subject("kube-apiserver", None);
        for name in &self.names {
            params.subject_alt_names.push(SanType::DnsName(name.as_str().try_into()?));
        }
        params.subject_alt_names.extend(self.addresses.iter().map(|a| SanType::IpAddress(*a)));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        Ok(params)
    }
}

/// The pair in `dir` that this server serves with. One that is there is the operator's and is left as it is, however it
/// looks; without one it is made, with the certificate of an authority that nobody keeps behind it.
pub fn pair_in(dir: &Path, names: &ServingNames) -> Result<CertKeyFiles, PkiError> {
    let files = CertKeyFiles { cert: dir.join("apiserver.crt"), key: dir.join("apiserver.key") };
    let is_readable = |path: &Path| std::fs::File::open(path).is_ok();
    match (is_readable(&files.cert), is_readable(&files.key)) {
        (true, true) => return Ok(files),
        (true, false) => return Err(PkiError::HalfAPair { path: files.key }),
        (false, true) => return Err(PkiError::HalfAPair { path: files.cert }),
        (false, false) => {}
    }
    let (ca_key, key) = (KeyPair::generate()?, KeyPair::generate()?);
    let ca = rcgen::CertifiedIssuer::self_signed(ca_params("kube-apiserver-ca", LEAF_LIFETIME), ca_key)?;
    let mut params = names.params()?;
    as_leaf(&mut params);
    let cert = params.signed_by(&key, &ca)?;
    let write = |path: &Path, contents: &str, access| {
        files::write(path, contents.as_bytes(), access)
            .and_then(|()| files::sync(path))
            .map_err(|source| PkiError::Io { path: path.to_owned(), source })
    };
    std::fs::create_dir_all(dir).map_err(|source| PkiError::Io { path: dir.to_owned(), source })?;
    write(&files.cert, &format!("{}{}", cert.pem(), ca.pem()), Access::Public)?;
    write(&files.key, &key.serialize_pem(), Access::Private)?;
    tracing::info!("Generated self-signed cert ({}, {})", files.cert.display(), files.key.display());
    Ok(files)
}

fn ca_params(common_name: &str, lifetime: Duration) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(common_name, None);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_lifetime(&mut params, lifetime);
    params
}

fn as_leaf(params: &mut CertificateParams) {
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    set_lifetime(params, LEAF_LIFETIME);
}

fn client_params(common_name: &str, organization: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(common_name, organization);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params
}

fn subject(common_name: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name.push(DnType::CommonName, common_name);
    name
}

fn set_lifetime(params: &mut CertificateParams, lifetime: Duration) {
    let now = OffsetDateTime::now_utc();
    params.not_before = now - CLOCK_SKEW;
    params.not_after = now + lifetime;
}

fn covers(cert: &X509Certificate<'_>, needed: &ServingNames) -> bool {
    let Ok(Some(names)) = cert.subject_alternative_name() else {
        return needed.names.is_empty() && needed.addresses.is_empty();
    };
    let names = &names.value.general_names;
    let has_name = |want: &String| names.iter().any(|n| matches!(n, GeneralName::DNSName(d) if d == want));
    let has_address = |want: &IpAddr| {
        let octets = match want {
            IpAddr::V4(a) => a.octets().to_vec(),
            IpAddr::V6(a) => a.octets().to_vec(),
        };
        names.iter().any(|n| matches!(n, GeneralName::IPAddress(o) if *o == octets))
    };
    needed.names.iter().all(has_name) && needed.addresses.iter().all(has_address)
}

fn authority_key_id(cert: &X509Certificate<'_>) -> Option<Vec<u8>> {
    use x509_parser::extensions::ParsedExtension::AuthorityKeyIdentifier;
    cert.extensions().iter().find_map(|e| match e.parsed_extension() {
        AuthorityKeyIdentifier(id) => id.key_identifier.as_ref().map(|k| k.0.to_vec()),
        _ => None,
    })
}

fn subject_key_id(cert: &X509Certificate<'_>) -> Option<Vec<u8>> {
    use x509_parser::extensions::ParsedExtension::SubjectKeyIdentifier;
    cert.extensions().iter().find_map(|e| match e.parsed_extension() {
        SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(names: &[&str]) -> PkiOptions {
        PkiOptions::all(names.iter().copied(), ["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()])
    }

    #[test]
    fn what_is_not_asked_for_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let parts = |parts: &[Part]| PkiOptions { parts: parts.iter().copied().collect(), ..options(&["localhost"]) };
        let made = |name: &str, given: &[Part]| -> BTreeSet<String> {
            let dir = dir.path().join(name);
            Pki::open(&dir, parts(given)).unwrap().sync().unwrap();
            let entries = std::fs::read_dir(dir).unwrap();
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).filter(|n| n.ends_with(".crt")).collect()
        };
        let set = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(made("a", &[Part::Serving]), set(&["ca.crt", "apiserver.crt"]));
        assert_eq!(made("b", &[Part::Admin]), set(&["ca.crt", "admin.crt"]));
        assert_eq!(made("c", &[Part::FrontProxy]), set(&["front-proxy-ca.crt", "front-proxy.crt"]));
    }

    #[test]
    fn a_pair_that_is_there_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("certs");
        let names = options(&["localhost"]).names;
        let files = pair_in(&own, &names).unwrap();
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        let (cert, key) = (read(&files.cert), read(&files.key));
        assert_eq!(cert.matches("BEGIN CERTIFICATE").count(), 2, "with its authority");
        // Other names: still not ours to change.
        assert_eq!(pair_in(&own, &options(&["other"]).names).unwrap(), files);
        assert_eq!((read(&files.cert), read(&files.key)), (cert, key));
        std::fs::remove_file(&files.cert).unwrap();
        let half = pair_in(&own, &names).unwrap_err().to_string();
        assert_eq!(
            half,
            format!("error reading {}, certificate and key must be supplied as a pair", files.cert.display())
        );
    }

    #[test]
    fn a_second_start_keeps_everything_until_a_name_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let read = |f: &str| std::fs::read(dir.path().join(f)).unwrap();
        Pki::open(dir.path(), options(&["localhost"])).unwrap();
        let (ca, serving, admin) = (read("ca.crt"), read("apiserver.crt"), read("admin.crt"));

        Pki::open(dir.path(), options(&["localhost"])).unwrap();
        assert_eq!(
            (read("ca.crt"), read("apiserver.crt"), read("admin.crt")),
            (ca.clone(), serving.clone(), admin.clone())
        );

        Pki::open(dir.path(), options(&["localhost", "other"])).unwrap();
        assert_eq!((read("ca.crt"), read("admin.crt")), (ca, admin));
        assert_ne!(read("apiserver.crt"), serving);
    }

    #[test]
    fn a_new_authority_issues_anew() {
        let dir = tempfile::tempdir().unwrap();
        let read = |f: &str| std::fs::read(dir.path().join(f)).unwrap();
        Pki::open(dir.path(), options(&["localhost"])).unwrap();
        let (serving, admin) = (read("apiserver.crt"), read("admin.crt"));
        std::fs::remove_file(dir.path().join("ca.key")).unwrap();
        Pki::open(dir.path(), options(&["localhost"])).unwrap();
        assert_ne!(read("apiserver.crt"), serving);
        assert_ne!(read("admin.crt"), admin);
    }

    #[test]
    fn keys_and_kubeconfig_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let pki = Pki::open(dir.path().join("pki"), options(&["localhost"])).unwrap();
        let kubeconfig = dir.path().join("admin.kubeconfig");
        pki.write_admin_kubeconfig(&kubeconfig, "https://127.0.0.1:6443", None).unwrap();
        let pki_dir = dir.path().join("pki");
        let keys =
            ["ca.key", "apiserver.key", "admin.key", "front-proxy-ca.key", "front-proxy.key"].map(|f| pki_dir.join(f));
        for file in keys.iter().chain([&kubeconfig]) {
            let mode = std::fs::metadata(file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", file.display());
        }
        let text = std::fs::read_to_string(kubeconfig).unwrap();
        assert!(text.contains("server: https://127.0.0.1:6443\n"), "{text}");
    }
}
