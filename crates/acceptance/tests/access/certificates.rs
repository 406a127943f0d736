//! Whose certificates are used and believed: those that the flags name, untouched, and no others.

use super::authority::Authority;
use super::raw::{self, Identity};
use super::{TOKEN, bearer, whose};
use crate::support::Server;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::{Path, PathBuf};

const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const PUBLISHED: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";

fn who(server: &Server, identity: &Identity) -> Result<String, u16> {
    whose(&raw::send(server.address(), Some(identity), "POST", WHO, &[], "{}"))
}

/// The pair as files in `dir`.
fn write(dir: &Path, pair: &Identity) -> (PathBuf, PathBuf) {
    std::fs::create_dir_all(dir).unwrap();
    let (cert, key) = (dir.join("apiserver.crt"), dir.join("apiserver.key"));
    std::fs::write(&cert, &pair.certificate).unwrap();
    std::fs::write(&key, &pair.key).unwrap();
    (cert, key)
}

fn der(pem: &str) -> Vec<u8> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec()
}

/// What extension servers are told, once it is there.
fn published(server: &Server) -> serde_json::Value {
    let get = || raw::send(server.address(), None, "GET", PUBLISHED, &[bearer(TOKEN)], "");
    server.wait_for("published", || get().status == 200);
    get().json()["data"].clone()
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn nothing_is_written_where_the_flags_name_all() {
    let (dir, clients, servers) = (tempfile::tempdir().unwrap(), Authority::new(), Authority::new());
    let pair = servers.serving();
    let (cert, key) = write(&dir.path().join("serving"), &pair);
    let signing = dir.path().join("sa.key");
    std::fs::write(&signing, &servers.serving().key).unwrap();
    let ca = dir.path().join("ca.crt");
    std::fs::write(&ca, clients.pem()).unwrap();
    let server = Server::launch_bare(&[
        "--storage-backend=memory",
        "--authorization-mode=RBAC",
        &format!("--tls-cert-file={}", cert.display()),
        &format!("--tls-private-key-file={}", key.display()),
        &format!("--client-ca-file={}", ca.display()),
        &format!("--service-account-key-file={}", signing.display()),
        &format!("--service-account-signing-key-file={}", signing.display()),
        "--service-account-issuer=https://kubernetes.default.svc",
        "--runtime-config=api/v1,api/legacy=true,v1=true,",
    ]);
    server.wait_until_ready();
    assert_eq!(who(&server, &clients.issue("ann", "devs")), Ok("ann devs,system:authenticated".into()));
    assert_eq!(who(&server, &servers.issue("root", "system:masters")), Err(401));
    assert_eq!(raw::served(server.address()), der(&pair.certificate));
    let data = published(&server);
    assert_eq!(der(data["client-ca-file"].as_str().unwrap()), der(&clients.pem()));
    assert_eq!(data.as_object().unwrap().len(), 1, "no front proxy was named: {data}");
    assert_eq!(files_below(&server.dir.path().join("empty")), Vec::<PathBuf>::new());
    assert_eq!(std::fs::read_to_string(cert).unwrap(), pair.certificate);
    assert_eq!(std::fs::read_to_string(key).unwrap(), pair.key);
}

/// As controller-runtime's envtest starts it.
#[test]
fn a_pair_in_the_folder_is_served_as_it_is() {
    let (dir, clients, servers) = (tempfile::tempdir().unwrap(), Authority::new(), Authority::new());
    let pair = servers.serving();
    let (cert, key) = write(dir.path(), &pair);
    let ca = dir.path().join("client-cert-auth-ca.crt");
    std::fs::write(&ca, clients.pem()).unwrap();
    let server = Server::launch_bare(&[
        "--storage-backend=memory",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--allow-privileged=true",
        &format!("--cert-dir={}", dir.path().display()),
        &format!("--client-ca-file={}", ca.display()),
        &format!("--service-account-key-file={}", key.display()),
        &format!("--service-account-signing-key-file={}", key.display()),
        "--service-account-issuer=https://127.0.0.1",
    ]);
    server.wait_until_ready();
    assert_eq!(raw::served(server.address()), der(&pair.certificate));
    let admin = who(&server, &clients.issue("admin", "system:masters"));
    assert_eq!(admin, Ok("admin system:masters,system:authenticated".into()));
    assert_eq!(std::fs::read_to_string(cert).unwrap(), pair.certificate);
    assert_eq!(std::fs::read_to_string(key).unwrap(), pair.key);
    assert_eq!(files_below(&server.dir.path().join("empty")), Vec::<PathBuf>::new());
}

#[test]
fn our_own_authority_steps_back_when_another_is_named() {
    let mut server = Server::start(&["--storage-backend=embedded"]);
    let pki = server.dir.path().join("data/pki");
    let read = |file: &str| std::fs::read_to_string(pki.join(file)).unwrap();
    let admin = Identity { certificate: read("admin.crt"), key: read("admin.key") };
    assert_eq!(who(&server, &admin), Ok("kubernetes-admin system:masters,system:authenticated".into()));
    let own = der(&read("ca.crt"));
    assert!(published(&server)["requestheader-client-ca-file"].is_string());
    server.signal("TERM");
    server.ended();
    std::fs::remove_dir_all(server.dir.path().join("data/store")).unwrap();

    let clients = Authority::new();
    let ca = server.dir.path().join("clients.crt");
    std::fs::write(&ca, clients.pem()).unwrap();
    server.restart(&["--storage-backend=embedded", &format!("--client-ca-file={}", ca.display())]);
    assert_eq!(who(&server, &admin), Err(401));
    assert_eq!(who(&server, &clients.issue("ann", "devs")), Ok("ann devs,system:authenticated".into()));
    let data = published(&server);
    assert_ne!(der(data["client-ca-file"].as_str().unwrap()), own);
    assert!(data["requestheader-client-ca-file"].is_null(), "{data}");
}
