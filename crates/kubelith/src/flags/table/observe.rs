//! Flags of features, metrics, logs and traces.

use super::super::{Flag, FlagKind::*};
use super::{flag, no_use};

pub const FEATURES: &[Flag] = &[
    no_use("contention-profiling", Bool, "", "Profile waiting for locks."),
    flag("debug-socket-path", Text, "", "Unix socket that serves profiles without authentication."),
    flag(
        "enable-priority-and-fairness",
        Bool,
        "true",
        "Share the server fairly among flows of requests, instead of one limit for all.",
    ),
    flag("profiling", Bool, "true", "Serve /debug/pprof and /debug/flags."),
];

pub const METRICS: &[Flag] = &[
    flag(
        "allow-metric-labels",
        TextMap,
        "",
        "Values that labels may take; others are reported as unexpected: metric,label=value,…",
    ),
    flag("allow-metric-labels-manifest", Text, "", "File with such lists."),
    flag("disabled-metrics", List, "", "Metrics to leave out."),
    no_use(
        "show-hidden-metrics-for-version",
        Text,
        "",
        "Show metrics that the given earlier minor release had and that are hidden now.",
    ),
];

pub const LOGS: &[Flag] = &[
    no_use("log-flush-frequency", Duration, "5s", "Time between flushes of the log. Lines are written at once."),
    no_use("log-json-info-buffer-size", Quantity, "", "Buffer of JSON lines that are no errors."),
    no_use("log-json-split-stream", Bool, "", "Write JSON lines that are no errors to standard output."),
    no_use("log-text-info-buffer-size", Quantity, "", "Buffer of text lines that are no errors."),
    no_use("log-text-split-stream", Bool, "", "Write text lines that are no errors to standard output."),
    flag("logging-format", Text, "text", "text or json."),
    flag(
        "v",
        Level,
        "",
        "How much to log: 0 for operators, 2 the story, 3 every request, 4 details, 6 and more everything.",
    ),
    flag(
        "vmodule",
        VModule,
        "",
        "Higher levels for some source files, in text format: pattern=N,… A pattern (* and ? as in a shell) is matched with \
         a file's name without .rs, or with its path if it has a slash.",
    ),
];

pub const TRACES: &[Flag] =
    &[flag("tracing-config-file", Text, "", "File that says where traces go and how many are taken.")];
