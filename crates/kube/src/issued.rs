//! Counts whether signers gave certificates the duration that was asked for.

use futures::future::BoxFuture;
use kubelith_codec::base64;
use kubelith_meta::Value;
use kubelith_meta::call::Call;
use kubelith_observe::metrics::Counter;
use kubelith_observe::metrics::Registry;
use kubelith_observe::metrics::{Counters, counters};
use kubelith_registry::{Begun, Reservation};
use kubelith_rules::x509::{Certificate, pem};

/// A certificate may begin this much earlier than it was asked for: signers date back for clocks that are slow.
const BACKDATING_SECONDS: i64 = 5 * 60;
/// Names of signers with this prefix are few; all others are counted together, since users invent them.
const KNOWN_SIGNERS: &str = "kubernetes.io/";

pub struct IssuedMetrics {
    requested: Counters,
    honored: Counters,
}

impl IssuedMetrics {
    pub fn new(registry: &Registry) -> IssuedMetrics {
        let count = |name: &str, help: &str| {
            counters(registry, &format!("apiserver_certificates_registry_{name}"), help, &["signerName"])
        };
        IssuedMetrics {
            requested: count(
                "csr_requested_duration_total",
                "Issued certificates that were asked for with a duration.",
            ),
            honored: count("csr_honored_duration_total", "Issued certificates with about the duration asked for."),
        }
    }

    /// What is to be counted once the update of a signing request is stored.
    pub fn begin_update(&self, call: &Call, object: &Value, old: &Value) -> Begun {
        if call.subresource != "status" || call.dry_run() {
            return None;
        }
        let wanted = old.at(&["spec", "expirationSeconds"])?.as_i64()?;
        if certificate(old).is_some() {
            return None;
        }
        let issued = certificate(object)?;
        let signer = old.at(&["spec", "signerName"]).and_then(Value::as_str).unwrap_or_default();
        let signer = if signer.starts_with(KNOWN_SIGNERS) { signer } else { "other" };
        let mut counted = vec![self.requested.with_label_values(&[signer])];
        if duration(issued).is_some_and(|given| is_honored(wanted, given)) {
            counted.push(self.honored.with_label_values(&[signer]));
        }
        Some(Box::new(Counted(counted)))
    }
}

struct Counted(Vec<Counter>);

impl Reservation for Counted {
    fn commit(self: Box<Self>) -> BoxFuture<'static, ()> {
        self.0.iter().for_each(|counter| counter.inc());
        Box::pin(std::future::ready(()))
    }

    fn revert(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn certificate(object: &Value) -> Option<&str> {
    object.at(&["status", "certificate"]).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// How many seconds the first certificate is valid.
fn duration(issued: &str) -> Option<i64> {
    let text = base64::decode(issued).ok()?;
    let block = pem::blocks(&text).find(|block| block.label == "CERTIFICATE" && !block.has_headers)?;
    let first = Certificate::parse(&block.bytes).ok()?;
    Some(first.not_after.unix_seconds() - first.not_before.unix_seconds())
}

fn is_honored(wanted: i64, given: i64) -> bool {
    (wanted - given).abs() < BACKDATING_SECONDS + wanted / 20
}

#[cfg(test)]
mod tests {
    use super::is_honored;

    #[test]
    fn a_twentieth_and_five_minutes_may_be_missing() {
        for (wanted, given, honored) in
            [(600, 600, true), (600, 929, true), (600, 930, false), (36_000, 33_901, true), (36_000, 33_900, false)]
        {
            assert_eq!(is_honored(wanted, given), honored, "{wanted} {given}");
        }
    }
}
