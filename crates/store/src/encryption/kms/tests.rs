//! A KMS plugin on a real socket, and what the provider makes of its answers.

use super::service::{DecryptResponse, EncryptRequest, EncryptResponse};
use super::v1::{KeyRequest, KeyResponse, KmsV1, VersionResponse};
use super::*;
use crate::encryption::ciphers::{Cbc, Cipher};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubelith_meta::time::wall_time;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;
use tokio::net::UnixListener;

/// A plugin whose "encryption" is turning the bytes around.
pub(in crate::encryption) struct FakePlugin {
    folder: TempDir,
    answers: Arc<Answers>,
    server: tokio::task::JoinHandle<()>,
}

pub(in crate::encryption) struct Answers {
    pub key_id: Mutex<String>,
    pub healthz: Mutex<String>,
    pub decrypts: AtomicU64,
}

impl FakePlugin {
    pub fn start() -> FakePlugin {
        let folder = tempfile::tempdir().unwrap();
        let answers = Arc::new(Answers {
            key_id: Mutex::new("key-1".into()),
            healthz: Mutex::new("ok".into()),
            decrypts: AtomicU64::new(0),
        });
        let server = serve(folder.path().join("kms.sock"), answers.clone());
        FakePlugin { folder, answers, server }
    }

    pub fn endpoint(&self) -> String {
        format!("unix://{}", self.folder.path().join("kms.sock").display())
    }

    pub fn config(&self) -> KmsConfiguration {
        KmsConfiguration {
            api_version: "v2".into(),
            name: "plug".into(),
            cache_size: None,
            endpoint: self.endpoint(),
            timeout: kubelith_meta::Duration::from_secs(3),
        }
    }

    pub fn answers(&self) -> &Answers {
        &self.answers
    }
}

impl Drop for FakePlugin {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn serve(path: PathBuf, answers: Arc<Answers>) -> tokio::task::JoinHandle<()> {
    let listener = UnixListener::bind(path).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answers = answers.clone();
            let service = hyper::service::service_fn(move |request| respond(request, answers.clone()));
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    })
}

type Body = http_body_util::combinators::BoxBody<Bytes, Infallible>;

async fn respond(request: http::Request<Incoming>, answers: Arc<Answers>) -> Result<http::Response<Body>, Infallible> {
    let method = request.uri().path().to_string();
    assert_eq!(request.uri().authority().map(|authority| authority.as_str()), Some("localhost"));
    let body = request.into_body().collect().await.unwrap().to_bytes();
    // A message in gRPC: a byte for compression, four for the length.
    let message = body.slice(5..);
    let key_id = answers.key_id.lock().unwrap().clone();
    let answer = match method.as_str() {
        "/v2.KeyManagementService/Status" => {
            let healthz = answers.healthz.lock().unwrap().clone();
            StatusResponse { version: "v2".into(), healthz, key_id }.encode_to_vec()
        }
        "/v2.KeyManagementService/Encrypt" => {
            let request = EncryptRequest::decode(message).unwrap();
            let ciphertext: Vec<u8> = b"fake:".iter().chain(request.plaintext.iter().rev()).copied().collect();
            let annotations = [("version.kms.example.com".to_string(), Bytes::from_static(b"1"))].into();
            EncryptResponse { ciphertext: ciphertext.into(), key_id, annotations }.encode_to_vec()
        }
        "/v2.KeyManagementService/Decrypt" => {
            answers.decrypts.fetch_add(1, Ordering::SeqCst);
            let request = DecryptRequest::decode(message).unwrap();
            assert_eq!(request.annotations["version.kms.example.com"], "1");
            let plaintext: Vec<u8> = request.ciphertext[5..].iter().rev().copied().collect();
            DecryptResponse { plaintext: plaintext.into() }.encode_to_vec()
        }
        "/v1beta1.KeyManagementService/Version" => VersionResponse { version: key_id }.encode_to_vec(),
        "/v1beta1.KeyManagementService/Encrypt" | "/v1beta1.KeyManagementService/Decrypt" => {
            answers.decrypts.fetch_add(1, Ordering::SeqCst);
            let request = KeyRequest::decode(message).unwrap();
            assert_eq!(request.version, "v1beta1");
            KeyResponse { key: request.key.iter().rev().copied().collect() }.encode_to_vec()
        }
        other => panic!("unknown method {other}"),
    };
    let mut framed = vec![0];
    framed.extend_from_slice(&(answer.len() as u32).to_be_bytes());
    framed.extend_from_slice(&answer);
    let trailers = http::HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
    let frames = [Frame::data(Bytes::from(framed)), Frame::trailers(trailers)].map(Ok::<_, Infallible>);
    let body = BodyExt::boxed(StreamBody::new(futures::stream::iter(frames)));
    Ok(http::Response::builder().header("content-type", "application/grpc").body(body).unwrap())
}

fn sealed(kms: &Kms, plain: &str, key: &str) -> Vec<u8> {
    let mut out = Vec::new();
    kms.seal(plain.as_bytes(), key.as_bytes(), &mut out).unwrap();
    out
}

/// Makes the next check ask the plugin.
async fn forget_last_check(kms: &Kms) {
    kms.probe.lock().await.last = None;
}

#[tokio::test]
async fn values_are_sealed_with_one_seed_and_opened_by_another_server() {
    let plugin = FakePlugin::start();
    let kms = Kms::start_observed(&plugin.config(), Arc::new(())).await.unwrap();
    let stored = sealed(&kms, "value", "/registry/a");
    let opened = kms.open(&stored, b"/registry/a").await.unwrap();
    assert_eq!(opened, Opened { value: "value".into(), stale: false });
    assert_eq!(plugin.answers().decrypts.load(Ordering::SeqCst), 0, "its own seed needs no decryption");
    let first = EncryptedObject::decode_valid(&stored).unwrap();
    let second = EncryptedObject::decode_valid(&sealed(&kms, "value", "/registry/b")).unwrap();
    assert_eq!(first.encrypted_dek_source, second.encrypted_dek_source, "the seed is used again");
    assert_eq!(first.source_type, SourceType::Seed as i32);

    let other = Kms::start_observed(&plugin.config(), Arc::new(())).await.unwrap();
    for _ in 0..3 {
        let opened = other.open(&stored, b"/registry/a").await.unwrap();
        assert_eq!(opened, Opened { value: "value".into(), stale: false });
    }
    assert_eq!(plugin.answers().decrypts.load(Ordering::SeqCst), 1, "the plugin is asked once per seed");
    assert!(other.open(&stored, b"/registry/b").await.is_err(), "a value cannot be moved");
}

#[tokio::test]
async fn a_new_key_makes_stored_values_stale() {
    let plugin = FakePlugin::start();
    let kms = Kms::start_observed(&plugin.config(), Arc::new(())).await.unwrap();
    let stored = sealed(&kms, "value", "k");
    *plugin.answers().key_id.lock().unwrap() = "key-2".into();
    forget_last_check(&kms).await;
    kms.check().await.unwrap();
    let opened = kms.open(&stored, b"k").await.unwrap();
    assert_eq!(opened, Opened { value: "value".into(), stale: true });
    let again = sealed(&kms, "value", "k");
    assert_eq!(EncryptedObject::decode_valid(&again).unwrap().key_id, "key-2");
    assert!(!kms.open(&again, b"k").await.unwrap().stale);
}

#[tokio::test]
async fn a_sick_plugin_is_told_and_old_seeds_still_open() {
    let plugin = FakePlugin::start();
    let kms = Kms::start_observed(&plugin.config(), Arc::new(())).await.unwrap();
    let stored = sealed(&kms, "value", "k");
    *plugin.answers().healthz.lock().unwrap() = "disk full".into();
    forget_last_check(&kms).await;
    let error = kms.check().await.unwrap_err();
    assert_eq!(error, "kmsv2 Provider plug is not healthy, error: got unexpected healthz status: disk full");
    assert_eq!(kms.check().await.unwrap_err(), error, "the answer is kept for a moment");
    assert!(kms.open(&stored, b"k").await.is_ok());

    *plugin.answers().key_id.lock().unwrap() = String::new();
    forget_last_check(&kms).await;
    let error = kms.check().await.unwrap_err();
    assert!(error.ends_with("got invalid KMSv2 KeyID hash \"\": keyID is empty]"), "{error}");

    // Long after the last good status, values can be read but not written.
    let current = kms.current.load_full().unwrap();
    let expires = wall_time() - Duration::from_secs(1);
    kms.current.store(Some(Arc::new(Current { expires, ..Current::clone(&current) })));
    let refused = kms.seal(b"value", b"k", &mut Vec::new()).unwrap_err();
    assert!(refused.starts_with("encryptedDEKSource with keyID hash \"sha256:"), "{refused}");
    assert!(kms.open(&stored, b"k").await.is_ok());
}

#[tokio::test]
async fn a_plugin_may_start_after_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kms.sock");
    let plugin = FakePlugin::start();
    let config = KmsConfiguration { endpoint: format!("unix://{}", path.display()), ..plugin.config() };
    let kms = Kms::start_observed(&config, Arc::new(())).await.unwrap();
    assert!(kms.seal(b"value", b"k", &mut Vec::new()).is_err());
    assert!(kms.check().await.unwrap_err().starts_with("rpc error: code = Unavailable"), "told from memory");
    forget_last_check(&kms).await;
    assert!(kms.check().await.unwrap_err().starts_with("failed to perform status section of the healthz check"));
    let server = serve(path, plugin.answers.clone());
    forget_last_check(&kms).await;
    kms.check().await.unwrap();
    sealed(&kms, "value", "k");
    server.abort();
}

#[tokio::test]
async fn a_plugin_may_listen_where_there_is_no_file() {
    let (plugin, name) = (FakePlugin::start(), format!("kubelith-kms-{}", std::process::id()));
    let server = serve(format!("\0{name}").into(), plugin.answers.clone());
    let config = KmsConfiguration { endpoint: format!("unix:///@{name}"), ..plugin.config() };
    let kms = Kms::start_observed(&config, Arc::new(())).await.unwrap();
    kms.check().await.unwrap();
    server.abort();
}

#[tokio::test]
async fn values_of_the_first_version_have_keys_of_their_own() {
    let plugin = FakePlugin::start();
    let config = KmsConfiguration { api_version: "v1".into(), cache_size: Some(1), ..plugin.config() };
    let kms = KmsV1::start(&config, Arc::new(())).unwrap();
    let refused = kms.check().await.unwrap_err();
    assert!(
        refused.ends_with("KMS provider api version key-1 is not supported, only v1beta1 is supported now"),
        "{refused}"
    );
    *plugin.answers.key_id.lock().unwrap() = "v1beta1".into();

    let (mut one, mut two) = (Vec::new(), Vec::new());
    kms.seal(b"one", b"k", &mut one).await.unwrap();
    kms.seal(b"two", b"k", &mut two).await.unwrap();
    let asked = || plugin.answers.decrypts.load(Ordering::SeqCst);
    assert_eq!((asked(), &one[..2]), (2, &[0, 32][..]));
    assert_eq!(kms.open(&two, b"k").await.unwrap(), Opened { value: "two".into(), stale: false });
    assert_eq!(asked(), 2, "the last key is in memory");
    assert_eq!(kms.open(&one, b"k").await.unwrap().value, "one");
    assert_eq!(asked(), 3);
    assert!(kms.open(&one, b"other").await.unwrap_err().contains("message authentication failed"));

    // As servers wrote before release 1.25.
    let mut old = vec![0, 32];
    let key = [7_u8; 32];
    old.extend(key);
    Cipher::Cbc(Box::new(Cbc::new(&key).unwrap())).seal(b"old", b"k", &mut old).unwrap();
    assert_eq!(kms.open(&old, b"k").await.unwrap(), Opened { value: "old".into(), stale: true });
    for broken in [&b""[..], b"\0", b"\0\x20x"] {
        assert!(kms.open(broken, b"k").await.unwrap_err().starts_with("invalid data encountered"));
    }
}

#[test]
fn stored_objects_are_checked() {
    let valid = EncryptedObject {
        encrypted_data: "x".into(),
        key_id: "id".into(),
        encrypted_dek_source: "s".into(),
        annotations: Default::default(),
        source_type: 1,
    };
    assert_eq!(valid.validate(), Ok(()));
    let long = "x".repeat(1025);
    let annotation = |name: &str, size| [(name.to_string(), Bytes::from(vec![0; size]))].into();
    let cases = [
        (EncryptedObject { source_type: 7, ..valid.clone() }, "unknown encryptedDEKSourceType: 7"),
        (EncryptedObject { encrypted_data: Bytes::new(), ..valid.clone() }, "encrypted data is empty"),
        (
            EncryptedObject { encrypted_dek_source: Bytes::new(), ..valid.clone() },
            "failed to validate encrypted DEK source: encrypted DEK source is empty",
        ),
        (
            EncryptedObject { encrypted_dek_source: long.clone().into(), ..valid.clone() },
            "failed to validate encrypted DEK source: encrypted DEK source is 1025 bytes, which exceeds the max size of \
             1024",
        ),
        (EncryptedObject { key_id: String::new(), ..valid.clone() }, "failed to validate key id: keyID is empty"),
        (
            EncryptedObject { key_id: long, ..valid.clone() },
            "failed to validate key id: keyID is 1025 bytes, which exceeds the max size of 1024",
        ),
        (
            EncryptedObject { annotations: annotation("a.b.com", 40_000), ..valid.clone() },
            "failed to validate annotations: total size of annotations is 40007, which exceeds the max size of 32768",
        ),
    ];
    for (object, error) in cases {
        assert_eq!(object.validate().unwrap_err(), error);
    }
    let unqualified = EncryptedObject { annotations: annotation("a", 1), ..valid };
    assert!(unqualified.validate().unwrap_err().contains("annotations: Invalid value: \"a\""));
}

/// Names what it is told.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl EncryptionObserver for Told {
    fn plugin_called(&self, provider: &str, method: &str, code: &str, _: Duration) {
        self.0.lock().unwrap().push(format!("{provider} {method} {code}"));
    }

    fn key_used(&self, how: KeyUse, provider: &str, key_id_hash: &str) {
        assert!(key_id_hash.starts_with("sha256:"));
        self.0.lock().unwrap().push(format!("{provider} {how:?}"));
    }

    fn seed_missed(&self) {
        self.0.lock().unwrap().push("missed".into());
    }

    fn seeds_known(&self, provider: &str, count: usize) {
        self.0.lock().unwrap().push(format!("{provider} knows {count}"));
    }
}

#[tokio::test]
async fn what_happens_is_told() {
    let plugin = FakePlugin::start();
    let told = Arc::new(Told::default());
    let kms = Kms::start_observed(&plugin.config(), told.clone()).await.unwrap();
    let other = Kms::start_observed(&plugin.config(), Arc::new(())).await.unwrap();
    let mut sealed = Vec::new();
    other.seal(b"value", b"key", &mut sealed).unwrap();
    kms.open(&sealed, b"key").await.unwrap();
    kms.seal(b"value", b"key", &mut Vec::new()).unwrap();
    let told = told.0.lock().unwrap().clone();
    let service = "plug /v2.KeyManagementService";
    let want = [
        format!("{service}/Status OK"),
        format!("{service}/Encrypt OK"),
        "plug knows 1".into(),
        "missed".into(),
        format!("{service}/Decrypt OK"),
        "plug knows 2".into(),
        "plug Opened".into(),
        "plug Sealed".into(),
    ];
    assert_eq!(told, want);
}
