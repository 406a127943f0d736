//! Flags that the reference takes and does not show any more.

use super::super::{Flag, FlagKind::*};
use super::{deprecated, flag, no_use};

pub const FLAGS: &[Flag] = &[
    deprecated(
        flag("apiserver-count", Int, "1", "Servers of the cluster, for --endpoint-reconciler-type=master-count."),
        "apiserver-count is deprecated and will be removed in a future version.",
    ),
    deprecated(
        flag("audit-webhook-batch-initial-backoff", Duration, "10s", "Time before the first retry."),
        "Deprecated, use --audit-webhook-initial-backoff instead.",
    ),
    deprecated(
        no_use("default-watch-cache-size", Int, "100", "Size of watch caches; they size themselves here."),
        "watch caches are sized automatically and this flag will be removed in a future version",
    ),
    deprecated(
        flag("kubelet-port", Int, "10250", "Port of kubelets that do not tell it."),
        "kubelet-port is deprecated and will be removed.",
    ),
    deprecated(
        no_use("kubelet-read-only-port", Int, "10255", "Port of kubelets without authentication."),
        "kubelet-read-only-port is deprecated and will be removed.",
    ),
];
