//! Flags of the audit log.

use super::super::{Flag, Kind::*};
use super::later;

pub const FLAGS: &[Flag] = &[
    later("audit-log-batch-buffer-size", Int, "10000", "Events held before they are written, in batch mode."),
    later("audit-log-batch-max-size", Int, "1", "Events of one batch."),
    later("audit-log-batch-max-wait", Duration, "", "Time after which a batch is written though it is not full."),
    later("audit-log-batch-throttle-burst", Int, "", "Batches at once beyond the rate."),
    later("audit-log-batch-throttle-enable", Bool, "", "Limit the rate of batches."),
    later("audit-log-batch-throttle-qps", Float32, "", "Batches per second."),
    later("audit-log-compress", Bool, "", "Compress rotated files with gzip."),
    later("audit-log-format", Text, "json", "json or legacy (one line of text per event)."),
    later("audit-log-maxage", Int, "366", "Days to keep rotated files; 0 for ever."),
    later("audit-log-maxbackup", Int, "100", "Rotated files to keep; 0 for all."),
    later("audit-log-maxsize", Int, "100", "Megabytes at which a file is rotated."),
    later(
        "audit-log-mode",
        Text,
        "blocking",
        "batch, blocking, or blocking-strict (a request fails if its event cannot be written).",
    ),
    later("audit-log-path", Text, "", "File of the audit log; - is standard output."),
    later("audit-log-truncate-enabled", Bool, "", "Cut events and batches that are too large."),
    later("audit-log-truncate-max-batch-size", Int, "10485760", "Bytes of a batch; larger ones are split."),
    later(
        "audit-log-truncate-max-event-size",
        Int,
        "102400",
        "Bytes of an event; larger ones lose request and response, or are dropped.",
    ),
    later("audit-log-version", Text, "audit.k8s.io/v1", "API version of the events."),
    later("audit-policy-file", Text, "", "File with the audit policy."),
    later("audit-webhook-batch-buffer-size", Int, "10000", "Events held before they are sent, in batch mode."),
    later("audit-webhook-batch-max-size", Int, "400", "Events of one batch."),
    later("audit-webhook-batch-max-wait", Duration, "30s", "Time after which a batch is sent though it is not full."),
    later("audit-webhook-batch-throttle-burst", Int, "15", "Batches at once beyond the rate."),
    later("audit-webhook-batch-throttle-enable", Bool, "true", "Limit the rate of batches."),
    later("audit-webhook-batch-throttle-qps", Float32, "10", "Batches per second."),
    later("audit-webhook-config-file", Text, "", "Kubeconfig of the service that takes audit events."),
    later("audit-webhook-initial-backoff", Duration, "10s", "Time before the first retry."),
    later("audit-webhook-mode", Text, "batch", "batch, blocking, or blocking-strict."),
    later("audit-webhook-truncate-enabled", Bool, "", "Cut events and batches that are too large."),
    later("audit-webhook-truncate-max-batch-size", Int, "10485760", "Bytes of a batch; larger ones are split."),
    later(
        "audit-webhook-truncate-max-event-size",
        Int,
        "102400",
        "Bytes of an event; larger ones lose request and response, or are dropped.",
    ),
    later("audit-webhook-version", Text, "audit.k8s.io/v1", "API version of the events."),
];
