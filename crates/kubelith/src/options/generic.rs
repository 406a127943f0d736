//! Options of the server as such: limits, timeouts, stopping, headers.

use crate::flags::Flags;
use kubelith_kube::bootstrap::LeadershipTimes;
use kubelith_meta::Quantity;
use kubelith_meta::time::Duration;
use kubelith_server::filters::memory_budget::anonymous_memory;
use regex::Regex;
use std::time::Duration as Span;

#[derive(Debug, Clone)]
pub struct GenericOptions {
    pub external_hostname: String,
    pub cors_allowed_origins: Vec<Regex>,
    pub goaway_chance: f64,
    pub livez_grace_period: Span,
    pub max_reads_in_flight: usize,
    pub max_writes_in_flight: usize,
    /// Instead of plain limits.
    pub priority_and_fairness: bool,
    /// Bytes that the process may use before it refuses requests.
    pub memory_budget: Option<u64>,
    /// Budgets of classes of users.
    pub service_quality: bool,
    pub min_request_timeout: Span,
    pub request_timeout: Span,
    pub shutdown_delay: Span,
    pub shutdown_send_retry_after: bool,
    pub shutdown_watch_termination_grace_period: Span,
    pub hsts_directives: Vec<String>,
    /// Of the server that elects leaders.
    pub leadership: LeadershipTimes,
}

/// Ends both messages about `--cors-allowed-origins`.
const CORS_HELP: &str = "List of allowed origins for CORS, comma separated. An allowed origin can be a regular \
    expression to support subdomain matching. If this list is empty CORS will not be enabled. Please ensure each \
    expression matches the entire hostname by anchoring to the start with '^' or including the '//' prefix, and by \
    anchoring to the end with '$' or including the ':' port separator suffix. Examples of valid expressions are \
    '//example\\.com(:|$)' and '^https://example\\.com(:|$)'";

impl GenericOptions {
    pub fn from_flags(flags: &Flags, errors: &mut Vec<String>) -> GenericOptions {
        let mut span = |name: &str, message: &str| {
            let value = flags.duration(name);
            span_of(value).unwrap_or_else(|| {
                errors.push(message.into());
                Span::ZERO
            })
        };
        let livez_grace_period = span("livez-grace-period", "--livez-grace-period can not be a negative value");
        let mut count = |name: &str| {
            let value = flags.int(name);
            usize::try_from(value).unwrap_or_else(|_| {
                errors.push(format!("--{name} can not be negative value"));
                0
            })
        };
        let max_reads_in_flight = count("max-requests-inflight");
        let max_writes_in_flight = count("max-mutating-requests-inflight");
        let priority_and_fairness = flags.bool("enable-priority-and-fairness");
        if priority_and_fairness && errors.is_empty() && max_reads_in_flight + max_writes_in_flight == 0 {
            errors.push(
                "invalid configuration: MaxRequestsInFlight=0 and MaxMutatingRequestsInFlight=0; they must add up to \
                 something positive"
                    .into(),
            );
        }
        let mut span = |name: &str| {
            span_of(flags.duration(name)).unwrap_or_else(|| {
                errors.push(format!("--{name} can not be negative value"));
                Span::ZERO
            })
        };
        let request_timeout = span("request-timeout");
        let goaway_chance = flags.float("goaway-chance");
        if !(0.0..=0.02).contains(&goaway_chance) {
            errors.push("--goaway-chance can not be less than 0 or greater than 0.02".into());
        }
        let min_request_timeout = u64::try_from(flags.int("min-request-timeout")).unwrap_or_else(|_| {
            errors.push("--min-request-timeout can not be negative value".into());
            0
        });
        let mut span = |name: &str, message: String| {
            span_of(flags.duration(name)).unwrap_or_else(|| {
                errors.push(message);
                Span::ZERO
            })
        };
        let negative = |name: &str| format!("--{name} can not be negative value");
        span("storage-initialization-timeout", negative("storage-initialization-timeout"));
        let shutdown_delay = span("shutdown-delay-duration", negative("shutdown-delay-duration"));
        let shutdown_watch_termination_grace_period = span(
            "shutdown-watch-termination-grace-period",
            "shutdown-watch-termination-grace-period, if provided, can not be a negative value".into(),
        );
        let leadership = |name: &str| flags.duration(&format!("coordinated-leadership-{name}")).as_nanos();
        for (longer, shorter) in [("lease-duration", "renew-deadline"), ("renew-deadline", "retry-period")] {
            if leadership(longer) <= leadership(shorter) {
                errors.push(format!(
                    "--coordinated-leadership-{longer} must be greater than --coordinated-leadership-{shorter}"
                ));
            }
        }
        let leadership_time =
            |name: &str| span_of(flags.duration(&format!("coordinated-leadership-{name}"))).unwrap_or_default();
        let hsts_directives = flags.list("strict-transport-security-directives");
        check_hsts(&hsts_directives, errors);
        let cors_allowed_origins = parse_origins(&flags.list("cors-allowed-origins"), errors);
        GenericOptions {
            external_hostname: flags.text("external-hostname"),
            cors_allowed_origins,
            goaway_chance,
            livez_grace_period,
            max_reads_in_flight,
            max_writes_in_flight,
            priority_and_fairness,
            memory_budget: memory_budget(&flags.text("memory-budget"), errors),
            service_quality: flags.bool("enable-service-quality"),
            min_request_timeout: Span::from_secs(min_request_timeout),
            request_timeout,
            shutdown_delay,
            shutdown_send_retry_after: flags.bool("shutdown-send-retry-after"),
            shutdown_watch_termination_grace_period,
            hsts_directives,
            leadership: LeadershipTimes {
                lease: leadership_time("lease-duration"),
                renew_deadline: leadership_time("renew-deadline"),
                retry: leadership_time("retry-period"),
            },
        }
    }
}

/// `--memory-budget`, or what the system lets the process have; 0 is none.
fn memory_budget(text: &str, errors: &mut Vec<String>) -> Option<u64> {
    if text.is_empty() {
        return crate::limits::memory();
    }
    let bytes = text.parse::<Quantity>().ok().and_then(|quantity| u64::try_from(quantity.value()).ok());
    if bytes.is_none() {
        errors.push(format!("--memory-budget: {text:?} is no amount of bytes, as 512Mi"));
    }
    let budget = bytes.filter(|bytes| *bytes > 0);
    if budget.is_some() && anonymous_memory().is_none() {
        errors.push("--memory-budget: this operating system does not tell how much memory the server has".to_owned());
    }
    budget
}

/// `None` if it is negative.
pub fn span_of(duration: Duration) -> Option<Span> {
    u64::try_from(duration.as_nanos()).ok().map(Span::from_nanos)
}

fn check_hsts(directives: &[String], errors: &mut Vec<String>) {
    for directive in directives {
        if directive.trim().is_empty() {
            errors.push("empty value in strict-transport-security-directives".into());
        } else if directive != "includeSubDomains"
            && directive != "preload"
            && !matches!(directive.split('=').collect::<Vec<_>>().as_slice(), ["max-age", _])
        {
            errors.push(
                "--strict-transport-security-directives invalid, allowed values: max-age=expireTime, \
                 includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information"
                    .into(),
            );
        }
    }
}

/// An expression that does not pin the host would let `example.com.evil.org` in.
fn parse_origins(expressions: &[String], errors: &mut Vec<String>) -> Vec<Regex> {
    let mut origins = Vec::new();
    for expression in expressions {
        if expression.is_empty() {
            errors.push(format!("empty value in --cors-allowed-origins, help: {CORS_HELP}"));
            continue;
        }
        let pins = expression.contains(['^']) || expression.contains("//");
        let pins = pins && expression.contains(['$', ':']);
        let why = match Regex::new(expression) {
            Ok(regex) if pins => {
                origins.push(regex);
                continue;
            }
            Ok(_) => "regular expression does not pin to start/end of host in the origin header".to_owned(),
            Err(e) => e.to_string(),
        };
        errors.push(format!("--cors-allowed-origins has an invalid regular expression: {why}, help: {CORS_HELP}"));
    }
    origins
}
