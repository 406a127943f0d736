//! Options of storage.

use crate::flags::Flags;
use crate::storage::CountObjects;
use kubelith_companion::Announcement;
use kubelith_meta::GroupResource;
use kubelith_meta::text::Quoted;
use kubelith_schema::Encoding;
use kubelith_store::TlsFiles;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageBackend {
    Embedded,
    Memory,
    Etcd3,
    /// Embedded, in the folder of the companion that answers where an etcd was expected.
    Companion,
}

const WORKERS: &str = "delete-collection-workers";
/// Enough that a wait for the disk is shared, few enough that others come between.
const TOGETHER: usize = 16;

#[derive(Debug, Clone)]
pub struct StorageOptions {
    pub backend: StorageBackend,
    /// Who answers where an etcd was expected, if that is the backend.
    pub companion: Option<Announcement>,
    pub etcd_servers: Vec<String>,
    pub etcd_prefix: String,
    pub etcd_tls: TlsFiles,
    /// `None` leaves compaction to others.
    pub etcd_compaction_interval: Option<Duration>,
    /// `--etcd-servers-overrides`: sets of servers with the resources that live there.
    pub etcd_overrides: Vec<(Vec<String>, Vec<GroupResource>)>,
    pub lease_reuse: Duration,
    pub health_timeout: Duration,
    pub ready_timeout: Duration,
    /// Time between looks at the size of the store; zero for none.
    pub size_interval: Duration,
    pub count_objects: CountObjects,
    pub event_ttl: Duration,
    /// The form in which built-in objects are written. JSON is YAML, so it does for that as well.
    pub encoding: Encoding,
    /// `--storage-media-type` says it.
    pub is_encoding_given: bool,
    /// `--watch-cache`: lists of any age are answered whole, and watches begin in what this server has seen. Reads come from memory
    /// either way.
    pub watch_cache: bool,
    /// `--watch-cache-sizes`: resources of which that does not hold.
    pub uncached: Vec<GroupResource>,
    pub encryption_config: Option<PathBuf>,
    pub encryption_reload: bool,
    /// If it is given.
    pub delete_collection_workers: Option<usize>,
    pub garbage_collector: bool,
    /// How long a store is waited for.
    pub initialization_timeout: Duration,
    /// `--runtime-config`, every API by its present name.
    pub runtime_config: BTreeMap<String, String>,
}

impl StorageOptions {
    pub fn from_flags(flags: &Flags, errors: &mut Vec<String>) -> StorageOptions {
        let etcd_servers = flags.list("etcd-servers");
        let backend = match flags.text("storage-backend").as_str() {
            "embedded" => StorageBackend::Embedded,
            "memory" => StorageBackend::Memory,
            "etcd3" => StorageBackend::Etcd3,
            "" if etcd_servers.is_empty() => StorageBackend::Embedded,
            "" => StorageBackend::Etcd3,
            _ => {
                errors.push(
                    "--storage-backend invalid, allowed values: embedded, etcd3, memory. If not specified, it will \
                     default to 'embedded', or to 'etcd3' with --etcd-servers"
                        .into(),
                );
                StorageBackend::Memory
            }
        };
        if backend == StorageBackend::Etcd3 && etcd_servers.is_empty() {
            errors.push("--etcd-servers must be specified".into());
        }
        if flags.text("encryption-provider-config").is_empty()
            && flags.bool("encryption-provider-config-automatic-reload")
        {
            errors.push(
                "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config".into(),
            );
        }
        let media_type = flags.text("storage-media-type");
        let media_types = ["application/json", PROTOBUF, "application/yaml"];
        if !media_type.is_empty() && !media_types.contains(&media_type.as_str()) {
            let (shown, allowed) = (Quoted(&media_type), media_types.join(", "));
            errors.push(format!("--storage-media-type {shown} invalid, allowed values: {allowed}"));
        }
        let event_ttl = Duration::from(flags.duration("event-ttl"));
        let file = |name: &str| Some(flags.text(name)).filter(|path| !path.is_empty()).map(PathBuf::from);
        let interval = Duration::from(flags.duration("etcd-compaction-interval"));
        StorageOptions {
            backend,
            companion: None,
            etcd_servers,
            etcd_prefix: flags.text("etcd-prefix"),
            etcd_tls: TlsFiles {
                ca: file("etcd-cafile"),
                certificate: file("etcd-certfile"),
                key: file("etcd-keyfile"),
            },
            etcd_compaction_interval: Some(interval).filter(|i| !i.is_zero()),
            etcd_overrides: overrides(&flags.list("etcd-servers-overrides"), errors),
            lease_reuse: Duration::from_secs(flags.int("lease-reuse-duration-seconds").max(0) as u64),
            health_timeout: flags.duration("etcd-healthcheck-timeout").into(),
            ready_timeout: flags.duration("etcd-readycheck-timeout").into(),
            size_interval: flags.duration("etcd-db-metric-poll-interval").into(),
            count_objects: match Duration::from(flags.duration("etcd-count-metric-poll-period")).is_zero() {
                true => CountObjects::No,
                false => CountObjects::Yes,
            },
            event_ttl,
            encoding: match media_type.as_str() {
                PROTOBUF => Encoding::Protobuf,
                _ => Encoding::Json,
            },
            is_encoding_given: flags.is_given("storage-media-type"),
            watch_cache: flags.bool("watch-cache"),
            uncached: uncached(&flags.list("watch-cache-sizes"), errors),
            encryption_config: file("encryption-provider-config"),
            encryption_reload: flags.bool("encryption-provider-config-automatic-reload"),
            delete_collection_workers: flags.is_given(WORKERS).then(|| flags.int(WORKERS).max(1) as usize),
            garbage_collector: flags.bool("enable-garbage-collector"),
            runtime_config: runtime_config(flags.pairs("runtime-config")),
            initialization_timeout: super::authentication::duration(flags, "storage-initialization-timeout"),
        }
    }
}

impl StorageOptions {
    /// Objects of a collection that are deleted at a time. What is deleted together is written to our own disk together.
    pub fn delete_collection_workers(&self) -> usize {
        let usual = match self.backend {
            StorageBackend::Embedded | StorageBackend::Companion => TOGETHER,
            StorageBackend::Memory | StorageBackend::Etcd3 => 1,
        };
        self.delete_collection_workers.unwrap_or(usual)
    }

    /// Objects are stored as readers get them: in a store of our own, unless another form is asked for.
    pub fn is_served(&self) -> bool {
        self.backend != StorageBackend::Etcd3 && self.etcd_overrides.is_empty() && !self.is_encoding_given
    }
}

/// The core group has several names from before there were groups; a resource in it cannot be named this way, and stands
/// for the whole. `api/legacy` says nothing any more.
fn runtime_config(pairs: Vec<(String, String)>) -> BTreeMap<String, String> {
    let is_core = |key: &str| {
        let key = key.strip_prefix("api/").unwrap_or(key);
        key == "v1" || key.starts_with("v1/")
    };
    let known = pairs.into_iter().filter(|(key, _)| key != "api/legacy");
    known.map(|(key, value)| (if is_core(&key) { "/v1".to_owned() } else { key }, value)).collect()
}

/// Overrides by their servers, in whatever order these are named; the store of each set is opened once.
fn overrides(given: &[String], errors: &mut Vec<String>) -> Vec<(Vec<String>, Vec<GroupResource>)> {
    let mut sets: Vec<(Vec<String>, Vec<GroupResource>)> = Vec::new();
    for one in given {
        let Some((resource, servers)) = one_override(one) else {
            errors.push(
                "--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, \
                 semicolon separated"
                    .into(),
            );
            return Vec::new();
        };
        let sorted = |servers: &[String]| {
            let mut sorted = servers.to_vec();
            sorted.sort();
            sorted
        };
        match sets.iter_mut().find(|(known, _)| sorted(known) == sorted(&servers)) {
            Some((_, resources)) => resources.push(resource),
            None => sets.push((servers, vec![resource])),
        }
    }
    sets
}

fn one_override(text: &str) -> Option<(GroupResource, Vec<String>)> {
    let (resource, servers) = text.split_once('#').filter(|(_, servers)| !servers.contains('#'))?;
    let (group, resource) = resource.split_once('/').filter(|(_, resource)| !resource.contains('/'))?;
    let servers: Vec<String> = servers.split(';').map(str::to_owned).collect();
    let complete = servers.iter().all(|server| !server.is_empty());
    complete.then(|| (GroupResource::new(group, resource), servers))
}

/// Caches size themselves here. What counts is who has none in the reference: whose size is 0, and events if they are given none.
fn uncached(given: &[String], errors: &mut Vec<String>) -> Vec<GroupResource> {
    let mut uncached = vec![GroupResource::new("", "events")];
    for one in given {
        let Some((resource, size)) = one.split_once('#').filter(|(_, size)| !size.contains('#')) else {
            errors.push(format!("invalid value of watch cache size: {one}"));
            return uncached;
        };
        match size.parse::<i64>() {
            Err(_) => errors.push(format!("invalid size of watch cache size: {one}")),
            Ok(size) if size < 0 => errors.push(format!("watch cache size cannot be negative: {one}")),
            Ok(size) => {
                let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
                let resource = GroupResource::new(group, resource);
                uncached.retain(|other| *other != resource);
                if size == 0 {
                    uncached.push(resource);
                }
            }
        }
    }
    uncached
}
