//! The program as tools start it: with their own flags and certificates, and the companion where they start an etcd.

use crate::support::client::{Connection, Protocol};
use crate::support::{LIMIT, Server};
use kubelith_conformance::harness::free_port;
use kubelith_conformance::http::{Address, Client, Request};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// `{dir}` has certificates, keys and a file for egress; `{etcd}` is where the companion listens. The port, the address to
/// bind to and a file with tokens, by which the test gets in, are given besides.
const TABLE: &[(&str, &str, &str)] = &[
    (
        "controller-runtime's envtest",
        "--advertise-client-urls=http://{etcd} --data-dir={dir}/etcd --listen-client-urls=http://{etcd} \
         --listen-peer-urls=http://127.0.0.1:1 --unsafe-no-fsync=true",
        "--allow-privileged=true --authorization-mode=RBAC --cert-dir={dir} --client-ca-file={dir}/ca.crt \
         --disable-admission-plugins=ServiceAccount --etcd-servers=http://{etcd} \
         --service-account-issuer=https://127.0.0.1:6443/ --service-account-key-file={dir}/ca.crt \
         --service-account-signing-key-file={dir}/ca.key --service-cluster-ip-range=10.0.0.0/24",
    ),
    (
        "fabric8's kube-api-test",
        "-data-dir {dir}/etcd -wal-dir {dir}/wal --listen-client-urls http://{etcd} --advertise-client-urls http://{etcd} \
         --initial-cluster default=http://localhost:1 --initial-advertise-peer-urls http://localhost:1 --listen-peer-urls \
         http://localhost:1",
        "--cert-dir {dir} --etcd-servers http://{etcd} --authorization-mode RBAC --service-account-issuer https://localhost \
         --service-account-signing-key-file {dir}/apiserver.key --service-account-signing-key-file {dir}/apiserver.key \
         --service-account-key-file {dir}/apiserver.key --service-account-issuer {dir}/apiserver.crt \
         --disable-admission-plugins ServiceAccount --client-ca-file {dir}/ca.crt --service-cluster-ip-range 10.0.0.0/24 \
         --allow-privileged",
    ),
    (
        "kwokctl",
        "--name=node0 --auto-compaction-retention=1 --quota-backend-bytes=8589934592 --data-dir={dir}/etcd \
         --initial-advertise-peer-urls=http://127.0.0.1:1 --listen-peer-urls=http://127.0.0.1:1 \
         --advertise-client-urls=http://{etcd} --listen-client-urls=http://{etcd} \
         --initial-cluster=node0=http://127.0.0.1:1",
        "--etcd-prefix=/registry --admission-control= --runtime-config=api/legacy=false,api/alpha=false \
         --feature-gates=AllAlpha=false --max-requests-inflight=0 --max-mutating-requests-inflight=0 \
         --enable-priority-and-fairness=false --etcd-servers=http://{etcd} --authorization-mode=Node,RBAC \
         --tls-cert-file={dir}/apiserver.crt --tls-private-key-file={dir}/apiserver.key --client-ca-file={dir}/ca.crt \
         --service-account-key-file={dir}/apiserver.key --service-account-signing-key-file={dir}/apiserver.key \
         --service-account-issuer=https://kubernetes.default.svc.cluster.local --proxy-client-key-file={dir}/apiserver.key \
         --proxy-client-cert-file={dir}/apiserver.crt --requestheader-client-ca-file={dir}/ca.crt \
         --requestheader-allowed-names=kwok-admin --requestheader-username-headers=X-Remote-User \
         --requestheader-group-headers=X-Remote-Group --requestheader-extra-headers-prefix=X-Remote-Extra- --v=2",
    ),
    (
        "kubeadm's static pod",
        "--data-dir={dir}/etcd --listen-client-urls=http://{etcd} --snapshot-count=10000 --watch-progress-notify-interval=5s \
         --feature-gates=InitialCorruptCheck=true --listen-metrics-urls=http://127.0.0.1:1 --name=control-plane",
        "--advertise-address=127.0.0.1 --allow-privileged=true --authorization-mode=Node,RBAC --client-ca-file={dir}/ca.crt \
         --enable-admission-plugins=NodeRestriction --enable-bootstrap-token-auth=true --etcd-cafile={dir}/ca.crt \
         --etcd-certfile={dir}/apiserver.crt --etcd-keyfile={dir}/apiserver.key --etcd-servers=http://{etcd} \
         --kubelet-client-certificate={dir}/apiserver.crt --kubelet-client-key={dir}/apiserver.key \
         --kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname --proxy-client-cert-file={dir}/apiserver.crt \
         --proxy-client-key-file={dir}/apiserver.key --requestheader-allowed-names=front-proxy-client \
         --requestheader-client-ca-file={dir}/ca.crt --requestheader-extra-headers-prefix=X-Remote-Extra- \
         --requestheader-group-headers=X-Remote-Group --requestheader-username-headers=X-Remote-User \
         --service-account-issuer=https://kubernetes.default.svc.cluster.local --service-account-key-file={dir}/sa.pub \
         --service-account-signing-key-file={dir}/sa.key --service-cluster-ip-range=10.96.0.0/12 \
         --tls-cert-file={dir}/apiserver.crt --tls-private-key-file={dir}/apiserver.key",
    ),
    (
        "kind",
        "--data-dir={dir}/etcd --listen-client-urls=http://{etcd} --unsafe-no-fsync=true",
        "--advertise-address=127.0.0.1 --allow-privileged=true --authorization-mode=Node,RBAC --client-ca-file={dir}/ca.crt \
         --enable-admission-plugins=NodeRestriction --enable-bootstrap-token-auth=true --etcd-servers=http://{etcd} \
         --kubelet-client-certificate={dir}/apiserver.crt --kubelet-client-key={dir}/apiserver.key \
         --kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname --proxy-client-cert-file={dir}/apiserver.crt \
         --proxy-client-key-file={dir}/apiserver.key --requestheader-allowed-names=front-proxy-client \
         --requestheader-client-ca-file={dir}/ca.crt --requestheader-extra-headers-prefix=X-Remote-Extra- \
         --requestheader-group-headers=X-Remote-Group --requestheader-username-headers=X-Remote-User --runtime-config= \
         --service-account-issuer=https://kubernetes.default.svc.cluster.local --service-account-key-file={dir}/sa.pub \
         --service-account-signing-key-file={dir}/sa.key --service-cluster-ip-range=10.96.0.0/16,fd00:10:96::/112 \
         --tls-cert-file={dir}/apiserver.crt --tls-private-key-file={dir}/apiserver.key",
    ),
    (
        "k3s",
        "--data-dir={dir}/etcd --listen-client-urls=http://{etcd}",
        "--allow-privileged=true --anonymous-auth=false \
         --api-audiences=https://kubernetes.default.svc.cluster.local,k3s --authorization-mode=Node,RBAC --cert-dir={dir}/tls \
         --client-ca-file={dir}/ca.crt --egress-selector-config-file={dir}/egress.yaml \
         --enable-admission-plugins=NodeRestriction --enable-aggregator-routing=true --enable-bootstrap-token-auth=true \
         --etcd-servers=http://{etcd} --kubelet-certificate-authority={dir}/ca.crt \
         --kubelet-client-certificate={dir}/apiserver.crt --kubelet-client-key={dir}/apiserver.key \
         --kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname --profiling=false \
         --proxy-client-cert-file={dir}/apiserver.crt --proxy-client-key-file={dir}/apiserver.key \
         --requestheader-allowed-names=system:auth-proxy --requestheader-client-ca-file={dir}/ca.crt \
         --requestheader-extra-headers-prefix=X-Remote-Extra- --requestheader-group-headers=X-Remote-Group \
         --requestheader-username-headers=X-Remote-User --service-account-issuer=https://kubernetes.default.svc.cluster.local \
         --service-account-key-file={dir}/sa.key --service-account-signing-key-file={dir}/sa.key \
         --service-cluster-ip-range=10.43.0.0/16 --service-node-port-range=30000-32767 --storage-backend=etcd3 \
         --tls-cert-file={dir}/apiserver.crt --tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,\
         TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 --tls-private-key-file={dir}/apiserver.key",
    ),
];

/// What a tool lays ready before it starts anything.
struct Site {
    dir: TempDir,
    etcd: String,
}

impl Site {
    fn new() -> Site {
        let dir = TempDir::new().unwrap();
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let serving = CertificateParams::new(names).unwrap().signed_by(&key, &ca).unwrap();
        let egress = "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n- name: \
                      cluster\n  connection: {proxyProtocol: Direct}\n";
        for (name, text) in [
            ("ca.crt", ca.pem()),
            ("ca.key", ca.key().serialize_pem()),
            ("apiserver.crt", serving.pem()),
            ("apiserver.key", key.serialize_pem()),
            ("sa.key", key.serialize_pem()),
            ("sa.pub", key.public_key_pem()),
            ("egress.yaml", egress.to_owned()),
        ] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        Site { dir, etcd: format!("127.0.0.1:{}", free_port().unwrap()) }
    }

    fn words(&self, line: &str) -> Vec<String> {
        let dir = self.dir.path().display().to_string();
        line.split(' ').map(|word| word.replace("{dir}", &dir).replace("{etcd}", &self.etcd)).collect()
    }

    /// Starts the companion and waits for it as tools do.
    fn companion(&self, line: &str) -> Companion {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubelith-etcd"));
        command.args(self.words(line)).current_dir(self.dir.path()).stdin(Stdio::null());
        let child = Companion(command.spawn().unwrap());
        let end = std::time::Instant::now() + LIMIT;
        while self.ask("/health").is_none() {
            assert!(std::time::Instant::now() < end, "the companion does not answer");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child
    }

    fn ask(&self, path: &str) -> Option<Value> {
        let address = Address::parse(&format!("http://{}", self.etcd)).unwrap();
        let request = Request { method: "GET".into(), path: path.into(), ..Request::default() };
        let answer = Client::new(address).send(&request).ok().filter(|answer| answer.status == 200)?;
        serde_json::from_slice(&answer.body).ok()
    }

    fn server(&self, line: &str) -> Server {
        let words = self.words(line);
        Server::launch_bare(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

struct Companion(Child);

impl Companion {
    fn signal(&self, name: &str) {
        assert!(Command::new("kill").arg(format!("-{name}")).arg(self.0.id().to_string()).status().unwrap().success());
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn names(server: &Server, path: &str) -> Vec<String> {
    let answer = server.get(path).unwrap();
    assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
    let list: Value = serde_json::from_slice(&answer.body).unwrap();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).unwrap().next().is_none()
}

/// Each is ready, keeps objects over a restart as it would with an etcd, and writes nothing where it is started.
#[test]
fn command_lines_of_tools_are_taken() {
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    for (tool, etcd, line) in TABLE {
        let site = Site::new();
        let _companion = site.companion(etcd);
        let mut server = site.server(line);
        server.wait_until_ready();
        let made = server.post(MAPS, r#"{"metadata": {"name": "kept"}}"#).unwrap();
        assert_eq!(made.status, 201, "{tool}: {}", String::from_utf8_lossy(&made.body));
        // However it ends: an etcd would have the object still.
        server.signal("KILL");
        server.ended();
        assert!(is_empty(&server.dir.path().join("empty")), "{tool}");
        let mut again = site.server(line);
        again.wait_until_ready();
        assert!(names(&again, MAPS).contains(&"kept".to_owned()), "{tool}");
        again.signal("TERM");
        assert_eq!(again.ended().code(), Some(0), "{tool}: {}", again.log());
        assert!(is_empty(&again.dir.path().join("empty")), "{tool}");
    }
}

/// envtest looks for flags of both programs at the beginning of lines, and asks for health without credentials.
#[test]
fn probes_of_envtest_are_answered() {
    let help = |program: &str| {
        let output = Command::new(program).arg("--help").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{program}");
        String::from_utf8(output.stdout).unwrap()
    };
    let has = |text: &str, flag: &str| text.lines().any(|line| line.trim_start().starts_with(&format!("--{flag}")));
    let (server, etcd) = (help(env!("CARGO_BIN_EXE_kubelith")), help(env!("CARGO_BIN_EXE_kubelith-etcd")));
    assert!(has(&etcd, "unsafe-no-fsync"));
    assert!(has(&server, "etcd-servers") && !has(&server, "insecure-port"));

    let site = Site::new();
    let companion = site.companion(TABLE[0].1);
    let server = site.server(TABLE[0].2);
    server.wait_until_ready();
    let address = Address::parse(&format!("https://127.0.0.1:{}", server.port)).unwrap();
    for path in ["/healthz", "/readyz", "/livez"] {
        let request = Request { method: "GET".into(), path: path.into(), ..Request::default() };
        assert_eq!(Client::new(address.clone()).send(&request).unwrap().status, 200, "{path}");
    }
    assert_eq!(site.ask("/health").unwrap()["health"], "true");
    companion.signal("TERM");
    let mut companion = companion;
    companion.0.wait().unwrap();
    assert!(site.ask("/health").is_none());
}

/// Namespaces go and owners are followed, unless that was not wanted.
#[test]
fn controllers_run_beside_the_companion() {
    for (flags, goes) in [("", true), (" --controllers=-*", false)] {
        let site = Site::new();
        let _companion = site.companion(TABLE[0].1);
        let server = site.server(&format!("{}{flags}", TABLE[0].2));
        server.wait_until_ready();
        assert_eq!(server.post("/api/v1/namespaces", r#"{"metadata": {"name": "n"}}"#).unwrap().status, 201);
        assert_eq!(server.delete("/api/v1/namespaces/n").unwrap().status, 200);
        if goes {
            server.wait_for("gone", || server.get("/api/v1/namespaces/n").unwrap().status == 404);
        } else {
            assert_eq!(
                server
                    .get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager")
                    .unwrap()
                    .status,
                404
            );
        }
    }
}

fn find(server: &Server, path: &str) -> Value {
    serde_json::from_slice(&server.get(path).unwrap().body).unwrap()
}

/// Tests that were written for a server without controllers end namespaces themselves.
#[test]
fn a_namespace_may_be_finalized_by_hand() {
    let site = Site::new();
    let _companion = site.companion(TABLE[0].1);
    let server = site.server(TABLE[0].2);
    server.wait_until_ready();
    const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager";
    server.wait_for("controllers", || server.get(LEASE).unwrap().status == 200);
    for index in 0..20 {
        let (name, path) = (format!("n-{index}"), format!("/api/v1/namespaces/n-{index}"));
        let object = format!(r#"{{"metadata": {{"name": "{name}"}}}}"#);
        assert_eq!(server.post("/api/v1/namespaces", &object).unwrap().status, 201);
        assert_eq!(server.delete(&path).unwrap().status, 200);
        let mut namespace = find(&server, &path);
        namespace["spec"]["finalizers"] = Value::Array(Vec::new());
        let answer = server.put(&format!("{path}/finalize"), &namespace.to_string()).unwrap();
        assert_eq!(answer.status, 200, "{name}: {}", String::from_utf8_lossy(&answer.body));
        assert_eq!(server.get(&path).unwrap().status, 404, "{name}");
    }
}

/// Where no pod gets an account there is none by default, and no certificate to be mounted beside its token.
#[test]
fn accounts_are_for_pods() {
    for (flags, there) in
        [("", false), (" --controllers=*", true), (" --enable-admission-plugins=ServiceAccount", true)]
    {
        let site = Site::new();
        let _companion = site.companion(TABLE[0].1);
        let line = match flags.contains("--enable") {
            true => TABLE[0].2.replace("--disable-admission-plugins=ServiceAccount ", ""),
            false => TABLE[0].2.to_owned(),
        };
        let server = site.server(&format!("{line}{flags}"));
        server.wait_until_ready();
        assert_eq!(server.post("/api/v1/namespaces", r#"{"metadata": {"name": "n"}}"#).unwrap().status, 201);
        // A controller that runs in any case has seen the namespace when another one is gone.
        assert_eq!(server.post("/api/v1/namespaces", r#"{"metadata": {"name": "other"}}"#).unwrap().status, 201);
        assert_eq!(server.delete("/api/v1/namespaces/other").unwrap().status, 200);
        server.wait_for("gone", || server.get("/api/v1/namespaces/other").unwrap().status == 404);
        let accounts = "/api/v1/namespaces/n/serviceaccounts";
        if there {
            server.wait_for("an account", || names(&server, accounts) == ["default"]);
        } else {
            assert_eq!(names(&server, accounts), [""; 0], "{flags}");
            assert_eq!(names(&server, "/api/v1/namespaces/n/configmaps"), [""; 0], "{flags}");
        }
    }
}

/// Two servers cannot both keep the objects of one companion; the second says so.
#[test]
fn a_companion_serves_one_server() {
    let site = Site::new();
    let _companion = site.companion(TABLE[0].1);
    let first = site.server(TABLE[0].2);
    first.wait_until_ready();
    let mut second = site.server(TABLE[0].2);
    assert_eq!(second.ended().code(), Some(1));
    assert!(second.log().contains(&format!("(process {})", first.pid())), "{}", second.log());
}

/// A companion that comes later than the server is found, too.
#[test]
fn a_late_companion_is_found() {
    let site = Site::new();
    let server = site.server(TABLE[0].2);
    let _companion = site.companion(TABLE[0].1);
    server.wait_until_ready();
    assert!(server.log().contains("our companion"), "{}", server.log());
}

/// Watches do not keep the process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_ends_with_a_thousand_watches() {
    const CONNECTIONS: usize = 10;
    const WATCHES: usize = 100;
    let site = Site::new();
    let _companion = site.companion(TABLE[0].1);
    let mut server = site.server(TABLE[0].2);
    server.wait_until_ready();
    let mut open = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut connection = Connection::open(server.address(), Protocol::Http2).await.unwrap();
        for _ in 0..WATCHES {
            let watch = connection.start("GET", "/api/v1/configmaps?watch=true", "").await.unwrap();
            assert_eq!(watch.status(), 200);
            open.push(watch);
        }
    }
    let begin = std::time::Instant::now();
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(0), "{}", server.log());
    println!("ended after {:?}", begin.elapsed());
}

/// The static pod that kubeadm writes: its flags are taken, its probes answered, and no flag names a file that the pod does not see.
/// Our patch for kubeadm changes that container and nothing that this relies on.
#[test]
fn the_manifest_of_kubeadm_is_taken() {
    let read = |name: &str| {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/kubeadm")).join(name);
        kubelith_codec::yaml::read(&std::fs::read(path).unwrap()).unwrap().value
    };
    let container = |pod: &kubelith_meta::Value| {
        pod.at(&["spec", "containers"]).and_then(kubelith_meta::Value::as_array).unwrap()[0].clone()
    };
    let texts = |value: Option<&kubelith_meta::Value>| -> Vec<String> {
        let list = value.and_then(kubelith_meta::Value::as_array).unwrap_or_default();
        list.iter().map(|one| one.as_str().unwrap_or_default().to_owned()).collect()
    };
    let (pod, patch) = (container(&read("kube-apiserver.yaml")), container(&read("kube-apiserver+strategic.yaml")));
    assert_eq!(patch.str_at(&["name"]), pod.str_at(&["name"]));
    assert_eq!(patch.at(&["securityContext", "runAsUser"]).and_then(kubelith_meta::Value::as_i64), Some(0));
    assert!(patch.get("command").is_none());

    let mounts = pod.get("volumeMounts").and_then(kubelith_meta::Value::as_array).unwrap();
    let mounts: Vec<&str> = mounts.iter().map(|mount| mount.str_at(&["mountPath"])).collect();
    let command = texts(pod.get("command"));
    assert_eq!(command[0], "kube-apiserver");
    let mut flags = Vec::new();
    for flag in &command[1..] {
        let (name, value) = flag.split_once('=').unwrap();
        let value = match value.strip_prefix("/etc/kubernetes/pki/") {
            Some(file) => {
                assert!(mounts.iter().any(|mount| value.starts_with(mount)), "{flag}");
                let ours = match file {
                    "sa.key" | "sa.pub" => file,
                    file if file.ends_with("ca.crt") => "ca.crt",
                    file if file.ends_with(".crt") => "apiserver.crt",
                    _ => "apiserver.key",
                };
                format!("{{dir}}/{ours}")
            }
            None if name == "--etcd-servers" => "http://{etcd}".to_owned(),
            None => value.replace("192.0.2.10", "127.0.0.1"),
        };
        if name != "--secure-port" {
            flags.push(format!("{name}={value}"));
        }
    }
    let site = Site::new();
    let _companion = site.companion(TABLE[0].1);
    let server = site.server(&flags.join(" "));
    server.wait_until_ready();
    let address = Address::parse(&format!("https://127.0.0.1:{}", server.port)).unwrap();
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let path = pod.str_at(&[probe, "httpGet", "path"]).to_owned();
        assert!(path.starts_with('/'), "{probe}");
        let request = Request { method: "GET".into(), path, ..Request::default() };
        assert_eq!(Client::new(address.clone()).send(&request).unwrap().status, 200, "{probe}");
    }
}
