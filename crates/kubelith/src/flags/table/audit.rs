//! Flags of the audit log.

use super::super::{Flag, FlagKind::*};
use super::flag;

pub const FLAGS: &[Flag] = &[
    flag("audit-log-batch-buffer-size", Int, "10000", "Events held before they are written, in batch mode."),
    flag("audit-log-batch-max-size", Int, "1", "Events of one batch."),
    flag("audit-log-batch-max-wait", Duration, "", "Time after which a batch is written though it is not full."),
    flag("audit-log-batch-throttle-burst", Int, "", "Batches at once beyond the rate."),
    flag("audit-log-batch-throttle-enable", Bool, "", "Limit the rate of batches."),
    flag("audit-log-batch-throttle-qps", Float32, "", "Batches per second."),
    flag("audit-log-compress", Bool, "", "Compress rotated files with gzip."),
    flag("audit-log-format", Text, "json", "json or legacy (one line of text per event)."),
    flag("audit-log-maxage", Int, "366", "Days to keep rotated files; 0 for ever."),
    flag("audit-log-maxbackup", Int, "100", "Rotated files to keep; 0 for all."),
    flag("audit-log-maxsize", Int, "100", "Megabytes at which a file is rotated."),
    flag(
        "audit-log-mode",
        Text,
        "blocking",
        "batch, blocking, or blocking-strict (a request fails if its event cannot be written).",
    ),
    flag("audit-log-path", Text, "", "File of the audit log; - is standard output."),
    flag("audit-log-truncate-enabled", Bool, "", "Cut events and batches that are too large."),
    flag("audit-log-truncate-max-batch-size", Int, "10485760", "Bytes of a batch; larger ones are split."),
    flag(
        "audit-log-truncate-max-event-size",
        Int,
        "102400",
        "Bytes of an event; larger ones lose request and response, or are dropped.",
    ),
    flag("audit-log-version", Text, "audit.k8s.io/v1", "API version of the events."),
    flag("audit-policy-file", Text, "", "File with the audit policy."),
    flag("audit-webhook-batch-buffer-size", Int, "10000", "Events held before they are sent, in batch mode."),
    flag("audit-webhook-batch-max-size", Int, "400", "Events of one batch."),
    flag("audit-webhook-batch-max-wait", Duration, "30s", "Time after which a batch is sent though it is not full."),
    flag("audit-webhook-batch-throttle-burst", Int, "15", "Batches at once beyond the rate."),
    flag("audit-webhook-batch-throttle-enable", Bool, "true", "Limit the rate of batches."),
    flag("audit-webhook-batch-throttle-qps", Float32, "10", "Batches per second."),
    flag("audit-webhook-config-file", Text, "", "Kubeconfig of the service that takes audit events."),
    flag("audit-webhook-initial-backoff", Duration, "10s", "Time before the first retry."),
    flag("audit-webhook-mode", Text, "batch", "batch, blocking, or blocking-strict."),
    flag("audit-webhook-truncate-enabled", Bool, "", "Cut events and batches that are too large."),
    flag("audit-webhook-truncate-max-batch-size", Int, "10485760", "Bytes of a batch; larger ones are split."),
    flag(
        "audit-webhook-truncate-max-event-size",
        Int,
        "102400",
        "Bytes of an event; larger ones lose request and response, or are dropped.",
    ),
    flag("audit-webhook-version", Text, "audit.k8s.io/v1", "API version of the events."),
];
