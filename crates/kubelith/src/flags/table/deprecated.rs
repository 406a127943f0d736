//! Flags that the reference takes and does not show any more.

use super::super::{Flag, Kind::*};
use super::{flag, no_use};

const fn deprecated(flag: Flag, message: &'static str) -> Flag {
    Flag { deprecated: Some(message), ..flag }
}

pub const FLAGS: &[Flag] = &[
    deprecated(
        flag("apiserver-count", Int, "1", "Servers of the cluster, for --endpoint-reconciler-type=master-count."),
        "apiserver-count is deprecated and will be removed in a future version.",
    ),
    deprecated(
        flag("enable-logs-handler", Bool, "", "Serve /var/log under /logs."),
        "Log handler functionality is deprecated",
    ),
    deprecated(
        no_use("kubelet-port", Int, "10250", "Port of kubelets that do not tell it."),
        "kubelet-port is deprecated and will be removed.",
    ),
    deprecated(
        no_use("kubelet-read-only-port", Int, "10255", "Port of kubelets without authentication."),
        "kubelet-read-only-port is deprecated and will be removed.",
    ),
];
