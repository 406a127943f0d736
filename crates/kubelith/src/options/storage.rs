//! Options of storage.

use crate::flags::Flags;
use kubelith_meta::text::Quoted;
use kubelith_store::TlsFiles;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageBackend {
    Embedded,
    Memory,
    Etcd3,
}

#[derive(Debug, Clone)]
pub struct StorageOptions {
    pub backend: StorageBackend,
    pub etcd_servers: Vec<String>,
    pub etcd_prefix: String,
    pub etcd_tls: TlsFiles,
    /// `None` leaves compaction to others.
    pub etcd_compaction_interval: Option<Duration>,
    pub garbage_collector: bool,
    /// `--runtime-config`, as it was given.
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
        let media_types = ["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];
        if !media_type.is_empty() && !media_types.contains(&media_type.as_str()) {
            let (shown, allowed) = (Quoted(&media_type), media_types.join(", "));
            errors.push(format!("--storage-media-type {shown} invalid, allowed values: {allowed}"));
        }
        let file = |name: &str| Some(flags.text(name)).filter(|path| !path.is_empty()).map(PathBuf::from);
        let interval = Duration::from(flags.duration("etcd-compaction-interval"));
        StorageOptions {
            backend,
            etcd_servers,
            etcd_prefix: flags.text("etcd-prefix"),
            etcd_tls: TlsFiles {
                ca: file("etcd-cafile"),
                certificate: file("etcd-certfile"),
                key: file("etcd-keyfile"),
            },
            etcd_compaction_interval: Some(interval).filter(|i| !i.is_zero()),
            garbage_collector: flags.bool("enable-garbage-collector"),
            runtime_config: flags.pairs("runtime-config").into_iter().collect(),
        }
    }
}
