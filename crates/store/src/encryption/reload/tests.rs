//! Loading configurations, choosing providers, and values that a kube-apiserver v1.36 stored.

use super::*;
use crate::encryption::EncryptedStore;
use crate::encryption::kms::tests::FakePlugin;
use crate::error::StoreError;
use crate::memory::MemoryStore;
use crate::model::{Expect, KeyRange, RangeRequest};
use crate::traits::Store;
use crate::watch::{WatchError, WatchRequest};
use bytes::Bytes;
use tempfile::TempDir;

const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n";
const CBC: &str = "{aescbc: {keys: [{name: key1, secret: MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=}]}}";
const GCM: &str = "{aesgcm: {keys: [{name: key2, secret: MDEyMzQ1Njc4OTAxMjM0NQ==}]}}";
const SECRETBOX: &str = "{secretbox: {keys: [{name: key3, secret: YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXowMTIzNDU=}]}}";

struct File {
    folder: TempDir,
}

impl File {
    /// Rules are `(resources, providers)`, both as flow YAML.
    fn with(rules: &[(&str, &str)]) -> File {
        let file = File { folder: tempfile::tempdir().unwrap() };
        file.write(rules);
        file
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("encryption.yaml")
    }

    fn write(&self, rules: &[(&str, &str)]) {
        let mut text = format!("{HEAD}resources:\n");
        for (resources, providers) in rules {
            text.push_str(&format!("- resources: {resources}\n  providers: {providers}\n"));
        }
        std::fs::write(self.path(), text).unwrap();
    }

    async fn load(&self) -> Result<Arc<Encryption>, String> {
        Encryption::load(&self.path(), ReloadMode::OnChange).await
    }
}

fn secrets() -> GroupResource {
    GroupResource::new("", "secrets")
}

/// What kube-apiserver wrote with the keys above, and words that the plain object has.
const STORED: [(&str, &str, &str); 4] = [
    (
        "/registry/secrets/default/s",
        "Opaque",
        "azhzOmVuYzphZXNjYmM6djE6a2V5MTqxgU2VXql4cyTfv5e/4aWVj2AS1ZUrk9+n7l7CPOnkrxVZdAxMoAVHoEdgoP\
         npB0yUqxKIKXbwINvsFLEyEBlUTzP44A21HSuzb7L4ivZ384PrcqaKSSdLnWhS4+sloFUSr45qtPWfypi7kVx/fjRY\
         jE104Z7dla3rG/1MfINLe6t0dHqGdT59XdGqg2ORwOiV73Uum9Bbo48ThzBQVmHSpnYtcQfh6eE+NrEt0mn/S1fSbY\
         y/UN/KoQZXc4grpSMMrD97osOyGYU+g9e43cxzeidJZjAuaZ7bb0nclIV0Ww==",
    ),
    (
        "/registry/configmaps/default/c",
        "ConfigMap",
        "azhzOmVuYzphZXNnY206djE6a2V5MjrKGKz5WSY6lpI92fUesJVrfpgOrN7B6voS3+QValANpVVypvebR6aVgfDx4y\
         EoVfykSlMVA1iYgoTnyl8jvhhi76IrdFD0MN3LX4ZViRaOMlDekA8IHUBBzZoQIug9U05+DeA74F8A0l8JMNe5y/Kg\
         dD+kONz6U2v08sXCtLYUbkXJSKCNwflpZLpakGqyS+ZeJxtedMT0mkiGS22aZiUoZx5gOR0TVWYifcS/xCK+P/9UbA\
         0FA3E4LtqnmPsrc7IkNRKuwpfHbPGKGuuMTni+j7k=",
    ),
    (
        "/registry/leases/default/l",
        "holderIdentity",
        "azhzOmVuYzpzZWNyZXRib3g6djE6a2V5Mzo8toz/F35kbh5CgJ/vypMNvmx4SRGslwKQqqy7/dCigq9VQ+VQnsjARg\
         AV1e/G8HEZTdBEf7J/zZCCzs1VNW6u78+p95cnaGi/DtKq24kSpfV9yR2Z1GPmHqvWmf9nv07r2xIDfxKCzdbyK+iH\
         dAUem0LU9jF2+rVItHun9EoxTycfHG+4drCRxunmgOpbAOlQ/RLwO9A5ssgBjeZZ5HY9Z1W5TlhN+qmCBbTQ5SdzC1\
         uD6PQP63aiSXijivO3qh/pRUj6CeMvGRFLf0KWo2sZwIO2j/WElvNan3Wv43vkCoK/fmT37+iIN78CN36jvTpydYH5\
         iYVP9lM+LX9E8AvXC8dFigo5",
    ),
    (
        "/registry/priorityclasses/p",
        "PriorityClass",
        "azhzOmVuYzprbXM6djI6cGx1ZzoKsQL6I1vf42tIVDTV1PW2pjpNBN+PuuHu42R8Z/Ut/FbI0lZ917/TIZPjE2frIV\
         mFwBoutksgHWR1CacI2eSN7qcvFtdgQniww5wvdDmxQXdDFCK1pkLahMjR6eI6B+SY2o9/zJctWZFxVGNeaJmGhn3M\
         O37LG1XhgtwNS41/VVPafPkL5Fpjh2gTfDFPolxClFrHM3180EiZjJ7QaYY7d7hB8xznoLkau0pUkKytjwET9+qaYO\
         ZOu8l2vxomi/HpvODfqHC4Jh1zb23l41quRGQ4caewXMV2AFbqYN/IjWRPat6zQ7/6b/r/PRCepx+rkPjWmmpIZo8v\
         C2wlfScAVgT0P1b2YsLsDmVi0KP9nXfQaQyq8xR+mPANRP0VNzsA/gVCVhVkfCSg7QoqcS3DGeHj7RIFa2V5LTEaJW\
         Zha2U6b1VSxs514A3gbhWvHsELmXzha1+s+pBilSEAx2l5RhoiHAoXdmVyc2lvbi5rbXMuZXhhbXBsZS5jb20SATEo\
         AQ==",
    ),
];

#[tokio::test]
async fn values_that_kube_apiserver_stored_are_read() {
    let plugin = FakePlugin::start();
    let kms = format!("{{kms: {{apiVersion: v2, name: plug, endpoint: '{}'}}}}", plugin.endpoint());
    let file = File::with(&[("[secrets]", &format!("[{CBC}, {GCM}, {SECRETBOX}, {kms}]"))]);
    let transformer = file.load().await.unwrap().transformer(&secrets());
    for (i, (key, word, stored)) in STORED.iter().enumerate() {
        let stored = Bytes::from(base64::decode(stored).unwrap());
        let opened = transformer.open(&stored, key.as_bytes()).await.unwrap_or_else(|error| panic!("{key}: {error}"));
        assert!(opened.value.starts_with(b"k8s\0"), "{key}");
        assert!(opened.value.windows(word.len()).any(|window| window == word.as_bytes()), "{key}");
        assert_eq!(opened.stale, i != 0, "{key}: only the first provider's values are fresh");
        if *word != "Opaque" && *word != "holderIdentity" {
            let moved = transformer.open(&stored, b"/registry/other").await;
            assert!(moved.is_err(), "{key} was read from another place");
        }
    }
}

#[tokio::test]
async fn the_first_provider_writes_and_all_read() {
    let plain = Bytes::from_static(b"{}");
    let prefixes = [
        (CBC, "k8s:enc:aescbc:v1:key1:"),
        (GCM, "k8s:enc:aesgcm:v1:key2:"),
        (SECRETBOX, "k8s:enc:secretbox:v1:key3:"),
        ("{identity: {}}", "{}"),
    ];
    for (first, prefix) in prefixes {
        let rest: Vec<&str> = prefixes.iter().map(|(provider, _)| *provider).filter(|p| *p != first).collect();
        let file = File::with(&[("[secrets]", &format!("[{first}, {}]", rest.join(", ")))]);
        let transformer = file.load().await.unwrap().transformer(&secrets());
        let stored = transformer.seal(plain.clone(), b"k").await.unwrap();
        assert!(stored.starts_with(prefix.as_bytes()), "{first}");
        let opened = transformer.open(&stored, b"k").await.unwrap();
        assert_eq!((opened.value, opened.stale), (plain.clone(), false), "{first}");
        for other in rest {
            let file = File::with(&[("[secrets]", &format!("[{other}]"))]);
            let stored = file.load().await.unwrap().transformer(&secrets()).seal(plain.clone(), b"k").await.unwrap();
            let opened = transformer.open(&stored, b"k").await.unwrap();
            assert_eq!((opened.value, opened.stale), (plain.clone(), true), "{other} after {first}");
        }
    }
}

#[tokio::test]
async fn unreadable_values_say_why() {
    let file = File::with(&[("[secrets]", &format!("[{GCM}]"))]);
    let transformer = file.load().await.unwrap().transformer(&secrets());
    let open = async |stored: &'static str| transformer.open(&stored.into(), b"k").await.unwrap_err();
    assert_eq!(open("{}").await, "no matching prefix found");
    assert_eq!(open("k8s:enc:aescbc:v1:key1:x").await, "no matching prefix found");
    let no_key = "no matching key was found for the provided AES transformer";
    assert_eq!(open("k8s:enc:aesgcm:v1:other:x").await, no_key);
    assert_eq!(
        open("k8s:enc:aesgcm:v1:key2:xxxxxxxxxxxxxxxxxxxxxxxxxxxx").await,
        "cipher: message authentication failed"
    );
    let identity = File::with(&[("[secrets]", "[{identity: {}}]")]);
    let identity = identity.load().await.unwrap().transformer(&secrets());
    assert_eq!(identity.open(&"k8s:enc:aesgcm:v1:key2:x".into(), b"k").await.unwrap_err(), "no matching prefix found");
}

#[tokio::test]
async fn rotated_keys_are_stale() {
    let keys = |names: &[&str]| {
        let key = |name: &&str| format!("{{name: {name}, secret: MDEyMzQ1Njc4OTAxMjM0N{}==}}", &name[..1]);
        format!("[{{aesgcm: {{keys: [{}]}}}}]", names.iter().map(key).collect::<Vec<_>>().join(", "))
    };
    let file = File::with(&[("[secrets]", &keys(&["A"]))]);
    let encryption = file.load().await.unwrap();
    let stored = encryption.transformer(&secrets()).seal("v".into(), b"k").await.unwrap();
    file.write(&[("[secrets]", &keys(&["Q", "A"]))]);
    assert_eq!(encryption.reload().await.unwrap(), Reloaded::Changed);
    assert_eq!(encryption.reload().await.unwrap(), Reloaded::Unchanged);
    let opened = encryption.transformer(&secrets()).open(&stored, b"k").await.unwrap();
    assert!(opened.stale);
    assert_eq!(opened.value, "v");
    let before = encryption.config_hash();
    std::fs::write(file.path(), "nonsense").unwrap();
    assert!(encryption.reload().await.is_err());
    assert_eq!(encryption.config_hash(), before, "what is in force stays in force");
    assert!(encryption.transformer(&secrets()).open(&stored, b"k").await.is_ok());
}

#[tokio::test]
async fn rules_are_found_by_resource_group_and_wildcard() {
    let file = File::with(&[
        ("[secrets]", &format!("[{CBC}]")),
        ("['*.apps']", &format!("[{GCM}]")),
        ("['*.*']", &format!("[{SECRETBOX}]")),
    ]);
    let encryption = file.load().await.unwrap();
    for (group, resource, prefix) in [
        ("", "secrets", "k8s:enc:aescbc"),
        ("apps", "deployments", "k8s:enc:aesgcm"),
        ("", "pods", "k8s:enc:secretbox"),
    ] {
        let stored = encryption.transformer(&GroupResource::new(group, resource)).seal("v".into(), b"k").await.unwrap();
        assert!(stored.starts_with(prefix.as_bytes()), "{resource}.{group}");
    }
    let core = File::with(&[("['*.']", &format!("[{CBC}]"))]);
    let encryption = core.load().await.unwrap();
    assert!(!encryption.transformer(&GroupResource::new("", "pods")).is_identity_only());
    assert!(encryption.transformer(&GroupResource::new("apps", "deployments")).is_identity_only());
}

#[tokio::test]
async fn files_that_cannot_be_used_are_refused() {
    let masked = |first: &str, second: &str| {
        let rules = [(first, "[{identity: {}}]"), (second, "[{identity: {}}]")];
        let file = File::with(&rules);
        async move { file.load().await.err() }
    };
    let error = |name: &str, mask: &str| {
        Some(format!("error while building transformers: resource {name:?} is masked by earlier rule {mask:?}"))
    };
    assert_eq!(masked("['*.*']", "[secrets]").await, error("secrets", "*.*"));
    assert_eq!(masked("['*.apps']", "[deployments.apps]").await, error("deployments.apps", "*.apps"));
    assert_eq!(masked("['*.']", "[secrets]").await, error("secrets", "*."));
    assert_eq!(masked("[secrets]", "['*.']").await, None);

    let v1 = File::with(&[("[secrets]", "[{kms: {name: p, endpoint: 'unix:///s'}}]")]);
    let refused = v1.load().await.err().unwrap();
    assert!(refused.starts_with("error while building transformers: KMSv1 is deprecated"), "{refused}");
    let missing = Encryption::load(Path::new("/nonexistent"), ReloadMode::Once).await.err().unwrap();
    assert!(missing.starts_with("error while parsing file: error while loading file: error reading"), "{missing}");
    let empty = File::with(&[]);
    std::fs::write(empty.path(), "").unwrap();
    assert!(empty.load().await.err().unwrap().ends_with("is empty"));
}

#[tokio::test]
async fn kms_health_is_one_check_per_plugin_or_one_for_all() {
    let plugin = FakePlugin::start();
    let kms = format!("[{{kms: {{apiVersion: v2, name: plug, endpoint: '{}'}}}}]", plugin.endpoint());
    let file = File::with(&[("[secrets]", &kms)]);
    let encryption = Encryption::load(&file.path(), ReloadMode::Once).await.unwrap();
    let checks = encryption.health_checks();
    assert_eq!((checks.len(), checks[0].name(), checks[0].check().await), (1, "kms-providers".into(), Ok(())));
    *plugin.answers().key_id.lock().unwrap() = "v1beta1".into();
    let with_old = format!(
        "[{{kms: {{apiVersion: v2, name: plug, endpoint: '{0}'}}}}, {{kms: {{name: old, endpoint: '{0}'}}}}]",
        plugin.endpoint()
    );
    let with_old = File::with(&[("[secrets]", &with_old)]);
    let both = Encryption::load_observed(&with_old.path(), ReloadMode::Once, LegacyKms::Allowed, Arc::new(())).await;
    let both = both.unwrap().health_checks();
    assert_eq!(both.iter().map(HealthCheck::name).collect::<Vec<_>>(), ["kms-provider-0", "kms-provider-1"]);
    assert_eq!(both[1].check().await, Ok(()));
    let all = file.load().await.unwrap().health_checks();
    assert_eq!((all.len(), all[0].name(), all[0].check().await), (1, "kms-providers".into(), Ok(())));
    let stored = encryption.transformer(&secrets()).seal("v".into(), b"k").await.unwrap();
    assert!(stored.starts_with(b"k8s:enc:kms:v2:plug:"));
    let plain = File::with(&[("[secrets]", &format!("[{CBC}]"))]);
    let once = Encryption::load(&plain.path(), ReloadMode::Once).await.unwrap();
    assert!(once.health_checks().is_empty());
    assert_eq!(plain.load().await.unwrap().health_checks().len(), 1, "plugins may come with a reload");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encrypted_store_conforms() {
    let file = File::with(&[("[secrets]", &format!("[{GCM}]"))]);
    let encryption = file.load().await.unwrap();
    let store = EncryptedStore::new(Arc::new(MemoryStore::default()), Arc::new(encryption.for_resource(secrets())));
    crate::conformance::run(Arc::new(store)).await;
}

#[tokio::test]
async fn a_store_encrypts_tells_staleness_and_lets_unreadable_values_be_deleted() {
    let file = File::with(&[("[secrets]", &format!("[{GCM}, {{identity: {{}}}}]"))]);
    let encryption = file.load().await.unwrap();
    let raw: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let store = EncryptedStore::new(raw.clone(), Arc::new(encryption.for_resource(secrets())));
    let plain = raw.put("a".into(), "plain".into(), Expect::Any, None).await.unwrap();
    store.put("b".into(), "secret".into(), Expect::Any, None).await.unwrap();
    assert!(raw.get("b".into(), None).await.unwrap().item.unwrap().value.starts_with(b"k8s:enc:aesgcm:v1:key2:"));
    let listed = store.range(RangeRequest::prefix("")).await.unwrap().items;
    let found: Vec<_> = listed.iter().map(|kv| (&kv.value[..], kv.stale)).collect();
    assert_eq!(found, [(&b"plain"[..], true), (&b"secret"[..], false)]);

    let mut watch = store.watch(WatchRequest::new(KeyRange::all(), plain)).await.unwrap();
    assert_eq!(watch.next().await.unwrap().unwrap().events[0].revision().0, plain.0 + 1);
    raw.put("c".into(), "k8s:enc:aesgcm:v1:lost:xyz".into(), Expect::Any, None).await.unwrap();
    let ended = watch.next().await.unwrap();
    assert!(matches!(ended, Err(WatchError::Store(StoreError::Undecryptable { .. }))), "{ended:?}");
    assert!(watch.next().await.is_none());

    let get = store.get("c".into(), None).await;
    let Err(StoreError::Undecryptable { key, reason }) = get else { panic!("{get:?}") };
    assert_eq!((key.as_str(), reason.as_str()), ("c", "no matching key was found for the provided AES transformer"));
    assert!(store.range(RangeRequest::prefix("")).await.is_err());
    let deleted = store.delete("c".into(), Expect::Any).await.unwrap();
    assert!(deleted.previous.value.is_empty());
    assert_eq!(store.range(RangeRequest::prefix("")).await.unwrap().items.len(), 2);
}
