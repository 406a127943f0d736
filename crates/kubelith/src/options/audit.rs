//! Options of the audit log.

use super::authentication::{duration, file};
use crate::flags::Flags;
use kubelith_meta::text::Quoted;
use kubelith_observe::audit::{BatchOptions, LogFormat, Mode, Rotation, Throttle, Truncation};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, Default)]
pub struct AuditOptions {
    pub policy_file: Option<PathBuf>,
    pub log: Option<AuditLogOptions>,
    pub webhook: Option<AuditWebhookOptions>,
}

#[derive(Debug, Clone)]
pub struct AuditLogOptions {
    /// `-` is standard output.
    pub path: PathBuf,
    pub format: LogFormat,
    pub rotation: Rotation,
    pub mode: Mode,
    pub truncation: Option<Truncation>,
}

#[derive(Debug, Clone)]
pub struct AuditWebhookOptions {
    pub config_file: PathBuf,
    pub initial_backoff: Duration,
    pub mode: Mode,
    pub truncation: Option<Truncation>,
}

/// Used if `--audit-log-maxsize` is 0, in megabytes.
const DEFAULT_MAX_SIZE: u64 = 100;
/// Batches to the webhook under way at once: the reference has no limit, memory has.
const WEBHOOK_BATCHES: usize = 32;

impl AuditOptions {
    pub fn from_flags(flags: &Flags, errors: &mut Vec<String>) -> AuditOptions {
        let log = file(flags, "audit-log-path").map(|path| AuditLogOptions::from_flags(flags, path, errors));
        let backoff = match flags.is_given("audit-webhook-batch-initial-backoff") {
            true => "audit-webhook-batch-initial-backoff",
            false => "audit-webhook-initial-backoff",
        };
        let webhook = file(flags, "audit-webhook-config-file").map(|config_file| AuditWebhookOptions {
            config_file,
            initial_backoff: duration(flags, backoff),
            mode: mode(flags, "webhook", WEBHOOK_BATCHES, errors),
            truncation: truncation(flags, "webhook", errors),
        });
        AuditOptions { policy_file: file(flags, "audit-policy-file"), log, webhook }
    }
}

impl AuditLogOptions {
    fn from_flags(flags: &Flags, path: PathBuf, errors: &mut Vec<String>) -> AuditLogOptions {
        let mode = mode(flags, "log", 1, errors);
        let truncation = truncation(flags, "log", errors);
        let format = match flags.text("audit-log-format").as_str() {
            "json" => LogFormat::Json,
            "legacy" => LogFormat::Legacy,
            other => {
                errors.push(format!("invalid audit log format {other}, allowed formats are \"legacy,json\""));
                LogFormat::Json
            }
        };
        let mut count = |name: &str| {
            let value = flags.int(name);
            u64::try_from(value).unwrap_or_else(|_| {
                errors.push(format!("--{name} {value} can't be a negative number"));
                0
            })
        };
        let (max_age_days, max_backups, megabytes) =
            (count("audit-log-maxage"), count("audit-log-maxbackup"), count("audit-log-maxsize"));
        let megabytes = if megabytes == 0 { DEFAULT_MAX_SIZE } else { megabytes };
        let rotation = Rotation {
            max_bytes: megabytes.saturating_mul(1 << 20),
            max_age_days,
            max_backups: usize::try_from(max_backups).unwrap_or(usize::MAX),
            compress: flags.bool("audit-log-compress"),
        };
        AuditLogOptions { path, format, rotation, mode, truncation }
    }
}

fn mode(flags: &Flags, plugin: &str, concurrency: usize, errors: &mut Vec<String>) -> Mode {
    let version = flags.text(&format!("audit-{plugin}-version"));
    if version != "audit.k8s.io/v1" {
        errors.push("invalid group version, allowed versions are [\"audit.k8s.io/v1\"]".into());
    }
    match flags.text(&format!("audit-{plugin}-mode")).as_str() {
        "batch" => Mode::Batch(batch(flags, plugin, concurrency, errors)),
        "blocking" => Mode::Blocking,
        "blocking-strict" => Mode::BlockingStrict,
        other => {
            let allowed = Quoted("batch,blocking,blocking-strict");
            errors.push(format!("invalid audit {plugin} mode {other}, allowed modes are {allowed}"));
            Mode::Blocking
        }
    }
}

/// Of several mistakes the first is told.
fn batch(flags: &Flags, plugin: &str, concurrency: usize, errors: &mut Vec<String>) -> BatchOptions {
    let name = |rest: &str| format!("audit-{plugin}-batch-{rest}");
    let earlier = errors.len();
    let positive = |errors: &mut Vec<String>, value: i64, what: &str| {
        usize::try_from(value).ok().filter(|v| *v > 0).unwrap_or_else(|| {
            errors.push(format!("invalid audit batch {plugin} {what} {value}, must be a positive number"));
            1
        })
    };
    let buffer = positive(errors, flags.int(&name("buffer-size")), "buffer size");
    let max_size = positive(errors, flags.int(&name("max-size")), "max batch size");
    let throttle = flags.bool(&name("throttle-enable")).then(|| {
        let qps = flags.float(&name("throttle-qps"));
        if qps <= 0.0 {
            errors.push(format!("invalid audit batch {plugin} throttle QPS {qps}, must be a positive number"));
        }
        Throttle { qps, burst: positive(errors, flags.int(&name("throttle-burst")), "throttle burst") }
    });
    errors.truncate(earlier + 1);
    BatchOptions { buffer, max_size, max_wait: duration(flags, &name("max-wait")), throttle, concurrency }
}

fn truncation(flags: &Flags, plugin: &str, errors: &mut Vec<String>) -> Option<Truncation> {
    let name = |rest: &str| format!("audit-{plugin}-truncate-{rest}");
    if !flags.bool(&name("enabled")) {
        return None;
    }
    let (event, batch) = (flags.int(&name("max-event-size")), flags.int(&name("max-batch-size")));
    if event <= 0 {
        errors.push(format!("invalid audit truncate {plugin} max event size {event}, must be a positive number"));
    }
    if batch < event {
        errors.push(format!(
            "invalid audit truncate {plugin} max batch size {batch}, must be greater than max event size ({event})"
        ));
    }
    let size = |value: i64| usize::try_from(value).unwrap_or(0);
    Some(Truncation { max_event_bytes: size(event), max_batch_bytes: size(batch) })
}
