//! The configuration in force: loaded from a file, and loaded again when the file changes.

use super::ciphers::{Cbc, Cipher, CipherResult, Gcm, hex, sha256};
use super::config::{
    EncryptionConfiguration, Key, KmsConfiguration, Provider, ReloadMode, ResourceConfiguration, parse_group_resource,
};
use super::kms::Kms;
use super::kms::v1::KmsV1;
use super::observe::EncryptionObserver;
use super::transformer::{Kind, NamedCipher, ProviderTransformer, ResourceTransformer, Transformer};
use arc_swap::ArcSwap;
use kubelith_codec::base64;
use kubelith_meta::{GroupResource, text};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const AESCBC_PREFIX: &str = "k8s:enc:aescbc:v1:";
const AESGCM_PREFIX: &str = "k8s:enc:aesgcm:v1:";
const SECRETBOX_PREFIX: &str = "k8s:enc:secretbox:v1:";
const KMS_V1_PREFIX: &str = "k8s:enc:kms:v1:";
const KMS_V2_PREFIX: &str = "k8s:enc:kms:v2:";
/// How often the file is looked at: reading a few hundred bytes costs nothing, and who rotates keys waits for it.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long the plugins of a new configuration get to become healthy, at least, and how often they are asked.
const MIN_HEALTH_PATIENCE: Duration = Duration::from_secs(10);
const HEALTH_POLL: Duration = Duration::from_millis(100);

/// Encryption as configured. Shared by the stores of all resources.
pub struct Encryption {
    path: PathBuf,
    mode: ReloadMode,
    loaded: ArcSwap<Loaded>,
    by: By,
}

/// What providers are made with.
#[derive(Clone)]
struct By {
    legacy: LegacyKms,
    observer: Arc<dyn EncryptionObserver>,
}

/// Whether plugins of KMS v1 may be used (the gate KMSv1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LegacyKms {
    Refused,
    Allowed,
}

/// One state of the file. Requests under way keep theirs.
struct Loaded {
    transformers: HashMap<GroupResource, Arc<Transformer>>,
    unconfigured: Arc<Transformer>,
    plugins: Vec<Plugin>,
    hash: String,
    kms_timeouts: Duration,
}

/// What looking at the file led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reloaded {
    Unchanged,
    Changed,
}

/// A health check to serve, named as the reference names it.
#[derive(Clone)]
pub struct HealthCheck {
    encryption: Arc<Encryption>,
    /// One plugin, or all that are in use.
    plugin: Option<usize>,
}

impl HealthCheck {
    pub fn name(&self) -> String {
        match self.plugin {
            Some(i) => format!("kms-provider-{i}"),
            None => "kms-providers".into(),
        }
    }

    /// Asks the KMS plugins.
    pub async fn check(&self) -> Result<(), String> {
        let loaded = self.encryption.loaded.load_full();
        match self.plugin.and_then(|i| loaded.plugins.get(i)) {
            Some(plugin) => plugin.check().await,
            None => loaded.check().await,
        }
    }
}

impl Encryption {
    /// Reads the file and starts the KMS providers that it names.
    pub async fn load(path: &Path, mode: ReloadMode) -> Result<Arc<Encryption>, String> {
        Encryption::load_observed(path, mode, LegacyKms::Refused, Arc::new(())).await
    }

    /// As [`Encryption::load`]; `observer` is told what happens.
    pub async fn load_observed(
        path: &Path,
        mode: ReloadMode,
        legacy: LegacyKms,
        observer: Arc<dyn EncryptionObserver>,
    ) -> Result<Arc<Encryption>, String> {
        let by = By { legacy, observer };
        let loaded = ArcSwap::from_pointee(Loaded::load(path, mode, &by).await?);
        Ok(Arc::new(Encryption { path: path.to_path_buf(), mode, loaded, by }))
    }

    /// The transformer to store a resource with.
    pub fn for_resource(self: &Arc<Self>, resource: GroupResource) -> ResourceTransformer {
        ResourceTransformer::new(self.clone(), resource)
    }

    pub(super) fn transformer(&self, resource: &GroupResource) -> Arc<Transformer> {
        let loaded = self.loaded.load();
        let any_of_group = GroupResource::new(resource.group.clone(), "*");
        let found = loaded.transformers.get(resource).or_else(|| loaded.transformers.get(&any_of_group));
        let found = found.or_else(|| loaded.transformers.get(&GroupResource::new("*", "*")));
        found.unwrap_or(&loaded.unconfigured).clone()
    }

    /// `sha256:…` of the file in force.
    pub fn config_hash(&self) -> String {
        self.loaded.load().hash.clone()
    }

    /// Whether changes of the file are followed.
    pub fn reloads(&self) -> bool {
        self.mode == ReloadMode::OnChange
    }

    /// One check for all plugins if they can change, or if none is of KMS v1; else one each.
    pub fn health_checks(self: &Arc<Self>) -> Vec<HealthCheck> {
        let check = |plugin| HealthCheck { encryption: self.clone(), plugin };
        let plugins = &self.loaded.load().plugins;
        let newer_alone = !plugins.is_empty() && plugins.iter().all(|plugin| matches!(plugin, Plugin::V2(_)));
        match self.mode {
            ReloadMode::Once if !newer_alone => (0..plugins.len()).map(|i| check(Some(i))).collect(),
            _ => vec![check(None)],
        }
    }

    /// Takes over the file if it has changed, is valid, and its plugins are healthy. On an error the
    /// configuration in force stays.
    pub async fn reload(&self) -> Result<Reloaded, String> {
        let (_, hash) = read(&self.path)?;
        if hash == self.loaded.load().hash {
            return Ok(Reloaded::Unchanged);
        }
        let new = Loaded::load(&self.path, ReloadMode::OnChange, &self.by).await?;
        if new.hash == self.loaded.load().hash {
            return Ok(Reloaded::Unchanged);
        }
        new.wait_until_healthy().await?;
        self.loaded.store(Arc::new(new));
        Ok(Reloaded::Changed)
    }

    /// Reloads whenever the file changes, until the future is dropped. `tell` hears of every attempt that was not
    /// in vain.
    pub async fn follow_file(&self, tell: impl Fn(&Result<Reloaded, String>)) {
        let mut said = String::new();
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let reloaded = self.reload().await;
            match &reloaded {
                Ok(Reloaded::Unchanged) => continue,
                Ok(Reloaded::Changed) => tracing::info!(path = %self.path.display(), "loaded new encryption config"),
                // The same mistake is reported once.
                Err(error) if *error == said => continue,
                Err(error) => {
                    tracing::error!(path = %self.path.display(), error, "error processing encryption config file");
                    said = error.clone();
                }
            }
            tell(&reloaded);
        }
    }
}

/// The file's content and the hash that tells its versions apart without keeping keys in memory.
fn read(path: &Path) -> Result<(Vec<u8>, String), String> {
    let shown = text::quote(&path.to_string_lossy());
    let data = std::fs::read(path).map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => "no such file or directory".to_owned(),
            _ => error.to_string(),
        };
        format!("error reading encryption provider configuration file {shown}: open {}: {why}", path.display())
    })?;
    if data.is_empty() {
        return Err(format!("encryption provider configuration file {shown} is empty"));
    }
    let hash = format!("sha256:{}", hex(&sha256(&data)));
    Ok((data, hash))
}

impl Loaded {
    async fn load(path: &Path, mode: ReloadMode, by: &By) -> Result<Loaded, String> {
        let parsing = |error: String| format!("error while parsing file: {error}");
        let (data, hash) = read(path).map_err(|error| parsing(format!("error while loading file: {error}")))?;
        let config = EncryptionConfiguration::parse(&data).map_err(|error| {
            let shown = text::quote(&path.to_string_lossy());
            parsing(format!("error decoding encryption provider configuration file {shown}: {error}"))
        })?;
        config.validate(mode).into_result().map_err(|errors| parsing(errors.to_string()))?;
        let mut loaded =
            Loaded::build(&config, by).await.map_err(|error| format!("error while building transformers: {error}"))?;
        loaded.hash = hash;
        Ok(loaded)
    }

    async fn build(config: &EncryptionConfiguration, by: &By) -> Result<Loaded, String> {
        let mut plugins = Plugins::default();
        let mut chains: HashMap<GroupResource, Vec<ProviderTransformer>> = HashMap::new();
        for resources in &config.resources {
            check_masks(resources, &chains)?;
            for provider in &resources.providers {
                plugins.start(provider, by).await?;
            }
            for name in &resources.resources {
                let chain = chains.entry(parse_group_resource(name)).or_default();
                for provider in &resources.providers {
                    chain.push(provider_transformer(provider, &plugins)?);
                }
            }
        }
        let transformers = chains
            .into_iter()
            .map(|(resource, chain)| (resource, Arc::new(Transformer::new(chain, by.observer.clone()))))
            .collect();
        let kms_timeouts = plugins.timeouts;
        let plugins = plugins.in_order;
        Ok(Loaded {
            transformers,
            unconfigured: Arc::new(Transformer::unconfigured()),
            plugins,
            hash: String::new(),
            kms_timeouts,
        })
    }

    async fn check(&self) -> Result<(), String> {
        let mut errors = Vec::new();
        for (i, plugin) in self.plugins.iter().enumerate() {
            if let Err(error) = plugin.check().await {
                errors.push(format!("kms-provider-{i}: {error}"));
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(text::aggregate(errors)) }
    }

    async fn wait_until_healthy(&self) -> Result<(), String> {
        let patience = (2 * self.kms_timeouts).max(MIN_HEALTH_PATIENCE);
        let started = Instant::now();
        loop {
            let Err(error) = self.check().await else { return Ok(()) };
            if started.elapsed() >= patience {
                return Err(format!(
                    "health check for new transformers failed, polling error context deadline exceeded: {error}"
                ));
            }
            tokio::time::sleep(HEALTH_POLL).await;
        }
    }
}

/// A rule that an earlier wildcard hides would never be used: that is an error.
fn check_masks(
    resources: &ResourceConfiguration,
    chains: &HashMap<GroupResource, Vec<ProviderTransformer>>,
) -> Result<(), String> {
    for name in &resources.resources {
        let resource = parse_group_resource(name);
        for mask in [GroupResource::new(resource.group.clone(), "*"), GroupResource::new("*", "*")] {
            if chains.contains_key(&mask) {
                let (name, mask) = (written(&resource), written(&mask));
                return Err(format!("resource {name:?} is masked by earlier rule {mask:?}"));
            }
        }
    }
    Ok(())
}

/// As it is written in the file.
fn written(resource: &GroupResource) -> String {
    match (resource.group.as_str(), resource.resource.as_str()) {
        ("", "*") => "*.".into(),
        ("", name) => name.into(),
        (group, name) => format!("{name}.{group}"),
    }
}

/// The KMS providers of a configuration: one connection each, however many resources use it.
#[derive(Default)]
struct Plugins {
    in_order: Vec<Plugin>,
    /// By version, name and endpoint: two of KMS v1 may have one name.
    started: HashMap<[String; 3], Plugin>,
    timeouts: Duration,
}

#[derive(Clone)]
enum Plugin {
    V1(Arc<KmsV1>),
    V2(Arc<Kms>),
}

impl Plugin {
    async fn check(&self) -> Result<(), String> {
        match self {
            Plugin::V1(kms) => kms.check().await,
            Plugin::V2(kms) => kms.check().await,
        }
    }
}

fn plugin_key(config: &KmsConfiguration) -> [String; 3] {
    [&config.api_version, &config.name, &config.endpoint].map(Clone::clone)
}

impl Plugins {
    async fn start(&mut self, provider: &Provider, by: &By) -> Result<(), String> {
        let Some(config) = &provider.kms else { return Ok(()) };
        let timeout = Duration::from_nanos(config.timeout.as_nanos().max(0) as u64);
        // To find out how the first version is, it is asked twice.
        let (plugin, timeouts) = match config.api_version.as_str() {
            "v1" if by.legacy == LegacyKms::Refused => {
                return Err("KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 \
                            instead.  Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature."
                    .into());
            }
            "v1" => (Plugin::V1(KmsV1::start(config, by.observer.clone())?), 2 * timeout),
            "v2" => (Plugin::V2(Kms::start_observed(config, by.observer.clone()).await?), timeout),
            other => {
                let name = &config.name;
                return Err(format!("could not configure KMS plugin {name:?}, unsupported KMS API version {other:?}"));
            }
        };
        self.timeouts += timeouts;
        self.started.insert(plugin_key(config), plugin.clone());
        self.in_order.push(plugin);
        Ok(())
    }
}

fn provider_transformer(provider: &Provider, plugins: &Plugins) -> Result<ProviderTransformer, String> {
    const NO_AES_KEY: &str = "no matching key was found for the provided AES transformer";
    const NO_BOX_KEY: &str = "no matching key was found for the provided Secretbox transformer";
    let keys = |prefix: &str, keys: &[Key], none_matches, make: &dyn Fn(&[u8]) -> CipherResult<Cipher>| {
        let kind = Kind::Keys { keys: named_ciphers(keys, make)?, none_matches };
        Ok(ProviderTransformer { prefix: prefix.into(), kind })
    };
    if let Some(list) = &provider.aesgcm {
        return keys(AESGCM_PREFIX, list, NO_AES_KEY, &|key| Ok(Cipher::Gcm(Gcm::new(key)?)));
    }
    if let Some(list) = &provider.aescbc {
        return keys(AESCBC_PREFIX, list, NO_AES_KEY, &|key| Ok(Cipher::Cbc(Box::new(Cbc::new(key)?))));
    }
    if let Some(list) = &provider.secretbox {
        return keys(SECRETBOX_PREFIX, list, NO_BOX_KEY, &|key| {
            let key = <[u8; 32]>::try_from(key);
            let key = key.map_err(|_| "expected key size 32 for secretbox provider".to_string())?;
            Ok(Cipher::Secretbox(Box::new(key)))
        });
    }
    if let Some(config) = &provider.kms {
        let (prefix, kind) = match plugins.started.get(&plugin_key(config)) {
            None => return Err(format!("KMS plugin {:?} was not started", config.name)),
            Some(Plugin::V1(kms)) => (KMS_V1_PREFIX, Kind::KmsV1(kms.clone())),
            Some(Plugin::V2(kms)) => (KMS_V2_PREFIX, Kind::Kms(kms.clone())),
        };
        let prefix = format!("{prefix}{}:", config.name).into_bytes();
        return Ok(ProviderTransformer { prefix, kind });
    }
    Ok(ProviderTransformer { prefix: Vec::new(), kind: Kind::Identity })
}

fn named_ciphers(keys: &[Key], make: &dyn Fn(&[u8]) -> CipherResult<Cipher>) -> Result<Vec<NamedCipher>, String> {
    let named = |key: &Key| {
        let name = &key.name;
        let secret = base64::decode(&key.secret)
            .map_err(|error| format!("could not obtain secret for named key {name}: {error}"))?;
        let cipher =
            make(&secret).map_err(|error| format!("error while creating cipher for named key {name}: {error}"))?;
        Ok(NamedCipher { prefix: format!("{name}:").into_bytes(), cipher })
    };
    keys.iter().map(named).collect()
}

#[cfg(test)]
mod tests;
