//! Flags of API enablement, egress and admission.

use super::super::{Flag, FlagKind::*};
use super::{deprecated, flag};

pub const API_ENABLEMENT: &[Flag] = &[flag(
    "runtime-config",
    ConfigMap,
    "",
    "Switch APIs on or off: group/version=true, group/version/resource=false, api/all, api/ga, api/beta, api/alpha.",
)];

pub const EGRESS: &[Flag] =
    &[flag("egress-selector-config-file", Text, "", "File that says by which proxies other networks are reached.")];

pub const ADMISSION: &[Flag] = &[
    deprecated(
        flag("admission-control", List, "", "Plugins to run, and no others. The order does not matter."),
        "Use --enable-admission-plugins or --disable-admission-plugins instead. Will be removed in a future version.",
    ),
    flag("admission-control-config-file", Text, "", "AdmissionConfiguration: a file with what plugins are told."),
    flag(
        "default-not-ready-toleration-seconds",
        Int,
        "300",
        "Seconds that pods without a say tolerate a node that is not ready.",
    ),
    flag(
        "default-unreachable-toleration-seconds",
        Int,
        "300",
        "Seconds that pods without a say tolerate a node that cannot be reached.",
    ),
    flag("disable-admission-plugins", List, "", "Plugins to switch off that are on by default."),
    flag(
        "enable-admission-plugins",
        List,
        "",
        "Plugins to switch on beside the default ones. The order does not matter.",
    ),
];
