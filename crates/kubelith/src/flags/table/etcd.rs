//! Flags of storage.

use super::super::{Flag, FlagKind::*};
use super::flag;

pub const FLAGS: &[Flag] = &[
    flag(
        "delete-collection-workers",
        Int,
        "1",
        "Objects that a collection's deletion handles at once; 16 with the embedded store if not given.",
    ),
    flag(
        "enable-garbage-collector",
        Bool,
        "true",
        "Keep finalizers for the garbage collector. Must match that of the controller manager.",
    ),
    flag("encryption-provider-config", Text, "", "File with the providers that encrypt resources at rest."),
    flag("encryption-provider-config-automatic-reload", Bool, "", "Read that file again when it changes."),
    flag("etcd-cafile", Text, "", "Authorities that etcd's certificate must come from."),
    flag("etcd-certfile", Text, "", "Client certificate for etcd."),
    flag("etcd-compaction-interval", Duration, "5m0s", "Time between compactions; 0 leaves it to others."),
    flag(
        "etcd-count-metric-poll-period",
        Duration,
        "1m0s",
        "Time between counts of objects; 0 for none. They are counted when they are asked for.",
    ),
    flag("etcd-db-metric-poll-interval", Duration, "30s", "Time between looks at the size of the database."),
    flag("etcd-healthcheck-timeout", Duration, "2s", "Time for the health check of etcd."),
    flag("etcd-keyfile", Text, "", "Key of the client certificate for etcd."),
    flag("etcd-prefix", Text, "/registry", "Prefix of all keys."),
    flag("etcd-readycheck-timeout", Duration, "2s", "Time for the readiness check of etcd."),
    flag("etcd-servers", List, "", "Addresses of etcd: scheme://host:port,…"),
    flag("etcd-servers-overrides", List, "", "Other etcd servers for some resources: group/resource#server;server,…"),
    flag("lease-reuse-duration-seconds", Int, "60", "Seconds for which objects that expire share a lease."),
    flag(
        "storage-backend",
        Text,
        "",
        "Where objects are kept: embedded (in --data-dir, the default), memory (lost at the end), or etcd3 (the \
         default if --etcd-servers is given).",
    ),
    flag(
        "storage-media-type",
        Text,
        "application/vnd.kubernetes.protobuf",
        "Form in which built-in objects are stored: application/vnd.kubernetes.protobuf, application/json or \
         application/yaml (for which JSON is written, as that is YAML). Objects in any of these forms are read.",
    ),
    flag(
        "watch-cache",
        Bool,
        "true",
        "Answer lists of any age (resourceVersion=0) whole, whatever their limit, and begin watches only in what this server \
         has seen. Reads and watches are served from memory either way, and are as new as the store.",
    ),
    flag(
        "watch-cache-sizes",
        List,
        "",
        "Sizes of watch caches: resource[.group]#size,… With size 0, which is that of events by default, lists of any age of a \
         built-in resource have pages, as with --watch-cache=false. Other sizes have no effect: caches size themselves.",
    ),
];
