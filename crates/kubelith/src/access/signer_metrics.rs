//! What is counted of a program that signs tokens.

use kubelith_meta::time::unix_time;
use kubelith_observe::metrics::Registry;
use kubelith_observe::metrics::{Counters, FloatGauges, Histograms, counters, float_gauges, histograms};
use std::time::Duration;

/// Seconds.
const CALLS: [f64; 14] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
const NO_LABELS: [&str; 0] = [];
/// What failed without an answer of the program.
const NOT_GRPC: &str = "unknown-non-grpc";

/// Why a call did not give what was wanted.
#[derive(Debug)]
pub struct CallError {
    /// What the call ended with, if it was the call that failed.
    code: Option<tonic::Code>,
    pub text: String,
}

impl CallError {
    /// An answer that cannot be used.
    pub fn unusable(text: impl Into<String>) -> CallError {
        CallError { code: None, text: text.into() }
    }

    pub fn within(self, what: &str) -> CallError {
        CallError { text: format!("{what}: {}", self.text), ..self }
    }

    fn label(&self) -> &'static str {
        self.code.map_or(NOT_GRPC, code_name)
    }
}

impl From<tonic::Status> for CallError {
    fn from(status: tonic::Status) -> CallError {
        let text = format!("rpc error: code = {} desc = {}", code_name(status.code()), status.message());
        CallError { code: Some(status.code()), text }
    }
}

/// As Go calls a code.
pub fn code_name(code: tonic::Code) -> &'static str {
    use tonic::Code;
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
    }
}

#[derive(Clone)]
pub struct SignerMetrics {
    fetches: Counters,
    fetched_at: FloatGauges,
    data_of: FloatGauges,
    signatures: Counters,
    calls: Histograms,
}

impl SignerMetrics {
    pub fn new(registry: &Registry) -> SignerMetrics {
        let name = |what: &str| format!("apiserver_externaljwt_{what}");
        let gauge = |what: &str, help: &str| float_gauges(registry, &name(what), help, &NO_LABELS);
        SignerMetrics {
            fetches: counters(
                registry,
                &name("fetch_keys_request_total"),
                "Fetches of the keys by which tokens are known.",
                &["code"],
            ),
            fetched_at: gauge("fetch_keys_success_timestamp", "When keys were last fetched, in seconds of Unix time."),
            data_of: gauge("fetch_keys_data_timestamp", "Since when the keys are what they are, as the signer says."),
            signatures: counters(registry, &name("sign_request_total"), "Tokens that were to be signed.", &["code"]),
            calls: histograms(
                registry,
                &name("request_duration_seconds"),
                "Time of calls to the program that signs tokens.",
                &CALLS,
                &["method", "code"],
            ),
        }
    }

    pub fn called<A>(&self, method: &str, outcome: &Result<A, tonic::Status>, took: Duration) {
        let code = outcome.as_ref().map_or_else(tonic::Status::code, |_| tonic::Code::Ok);
        self.calls.with_label_values(&[method, code_name(code)]).observe(took.as_secs_f64());
    }

    /// Keys, with the time since when they are what they are.
    pub fn fetched(&self, outcome: Result<f64, &CallError>) {
        match outcome {
            Ok(data_of) => {
                self.fetches.with_label_values(&[code_name(tonic::Code::Ok)]).inc();
                self.fetched_at.with_label_values(&NO_LABELS).set(unix_time().as_secs_f64());
                self.data_of.with_label_values(&NO_LABELS).set(data_of);
            }
            Err(why) => self.fetches.with_label_values(&[why.label()]).inc(),
        }
    }

    pub fn signed<T>(&self, outcome: &Result<T, CallError>) {
        let code = outcome.as_ref().map_or_else(CallError::label, |_| code_name(tonic::Code::Ok));
        self.signatures.with_label_values(&[code]).inc();
    }
}
