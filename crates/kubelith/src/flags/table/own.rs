//! Flags that kube-apiserver does not have, and those every program has.

use super::super::{Flag, Kind::*};
use super::flag;

pub const FLAGS: &[Flag] = &[
    flag(
        "config",
        Text,
        "",
        "File with flags: YAML, one key per flag without dashes in front, lists for flags that repeat. Flags of the \
         command line win.",
    ),
    flag(
        "controllers",
        List,
        "",
        "Controllers of kube-controller-manager to run in this process: '*' for all that there are, 'foo' for the one \
         named so, '-foo' for all but that, '-*' for none. If not given, all with a store in memory or embedded \
         (without default service accounts and root certificates where the admission plugin ServiceAccount is off), and \
         none with --etcd-servers. Only the holder of the Lease kube-system/kube-controller-manager acts.",
    ),
    flag(
        "data-dir",
        Text,
        "kubelith-data",
        "Folder of everything that must survive a restart: the embedded store, certificates under pki, and \
         admin.kubeconfig.",
    ),
    flag(
        "enable-service-quality",
        Bool,
        "false",
        "Hold users, groups, service accounts and namespaces to budgets that ConfigMaps in kube-system with the label \
         kubelith.dev/service-quality declare.",
    ),
];

pub const GLOBAL: &[Flag] = &[
    flag("help", Bool, "", "Show this help."),
    flag("version", Version, "", "Show the version and end; --version=raw shows all of it."),
];
