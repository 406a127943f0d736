//! Flags that kube-apiserver does not have, and those every program has.

use super::super::{Flag, FlagKind::*};
use super::flag;

pub const FLAGS: &[Flag] = &[
    flag(
        "clock",
        Text,
        "system",
        "Where the time comes from: 'system', or 'manual' for a clock that stands still until it is turned through the test \
         API, from now on or, if a time as 2026-01-31T12:00:00Z is given instead, from then on. For tests; needs \
         --enable-test-api.",
    ),
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
        "enable-console",
        Bool,
        "false",
        "Serve a page at /console/ that shows what this server knows, and /kubelith/v1 for it. If not given, it is served with \
         the embedded store, unless flags of kube-apiserver are given that say more than where to listen.",
    ),
    flag(
        "enable-service-quality",
        Bool,
        "false",
        "Hold users, groups, service accounts and namespaces to budgets that ConfigMaps in kube-system with the label \
         kubelith.dev/service-quality declare.",
    ),
    flag(
        "enable-test-api",
        Bool,
        "false",
        "Serve /kubelith/v1: snapshots, forks, faults and the clock, for tests. Who may use it is up to authorization; with \
         AlwaysAllow it is system:masters.",
    ),
    flag(
        "memory-budget",
        Text,
        "",
        "Memory that the process may use, as 512Mi. When most of it is used, lists are refused with 429, then all but \
         administrators, deletions, leases and health; histories and concurrent requests are held to shares of it. If not \
         given, the limit of the cgroup, if there is one; 0 for none.",
    ),
    flag(
        "random-seed",
        Text,
        "",
        "A number that uids and generated names follow from, so that they are the same in every run. For tests; needs \
         --enable-test-api.",
    ),
];

pub const GLOBAL: &[Flag] = &[
    flag("help", Bool, "", "Show this help."),
    flag("version", Version, "", "Show the version and end; --version=raw shows all of it."),
];
