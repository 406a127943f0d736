//! Metrics of encryption at rest with KMS plugins.

use kubelith_meta::time::unix_time;
use kubelith_observe::metrics::prometheus::{Gauge, Histogram, HistogramOpts, IntCounter, exponential_buckets};
use kubelith_observe::metrics::{
    Counters, Family, FloatGauges, Gauges, Histograms, Registry, counters, float_gauges, gauges, histograms,
};
use kubelith_store::KeyLayout;
use kubelith_store::encryption::{EncryptionObserver, KeyUse};
use std::sync::Arc;
use std::time::Duration;

pub struct EncryptionMetrics {
    calls: Histograms,
    keys: Counters,
    keys_at: FloatGauges,
    confirmed_at: FloatGauges,
    refused: Counters,
    seeds: Gauges,
    made: Family<Histogram>,
    not_made: Family<IntCounter>,
    missed: Family<IntCounter>,
    keys_share: Family<Gauge>,
    transformations: Counters,
    transformation_times: Histograms,
    layout: Arc<KeyLayout>,
    /// A hash of the server's id.
    server: String,
}

impl EncryptionMetrics {
    pub fn new(registry: &Registry, layout: Arc<KeyLayout>, server: &str) -> EncryptionMetrics {
        const USES: &[&str] = &["transformation_type", "provider_name", "key_id_hash", "apiserver_id_hash"];
        let times = |name: &str, help: &str, labels: &[&str]| float_gauges(registry, name, help, labels);
        let name = |rest: &str| format!("apiserver_envelope_encryption_{rest}");
        let buckets = |start: f64, count: usize| exponential_buckets(start, 2.0, count).expect("a valid series");
        let one = |name: &'static str, help: &'static str| {
            Family::single(registry, move || IntCounter::new(name, help)).shown(registry, |_| ())
        };
        let made = move || {
            let made = HistogramOpts::new(
                "apiserver_storage_data_key_generation_duration_seconds",
                "Time to get random bytes for data keys.",
            );
            Histogram::with_opts(made.buckets(buckets(5e-6, 14)))
        };
        let keys_share = move || {
            Gauge::new(name("dek_cache_fill_percent"), "How much of the memory for keys of KMS v1 is used, 0 to 1.")
        };
        EncryptionMetrics {
            layout,
            transformations: counters(
                registry,
                "apiserver_storage_transformation_operations_total",
                "Values that were encrypted or decrypted, by resource, provider and outcome.",
                &["resource", "transformation_type", "transformer_prefix", "status"],
            ),
            transformation_times: histograms(
                registry,
                "apiserver_storage_transformation_duration_seconds",
                "Time to encrypt or decrypt a value.",
                &buckets(5e-6, 25),
                &["transformation_type", "transformer_prefix"],
            ),
            keys_share: Family::single(registry, keys_share).shown(registry, |_| ()),
            server: server.to_owned(),
            calls: histograms(
                registry,
                &name("kms_operations_latency_seconds"),
                "Time of calls of KMS plugins, by method and outcome.",
                &buckets(0.0001, 20),
                &["provider_name", "method_name", "grpc_status_code"],
            ),
            keys: counters(registry, &name("key_id_hash_total"), "Uses of plugins' keys.", USES),
            keys_at: times(&name("key_id_hash_last_timestamp_seconds"), "When a plugin's key was last used.", USES),
            confirmed_at: times(
                &name("key_id_hash_status_last_timestamp_seconds"),
                "When a plugin last said that this is its key.",
                &["provider_name", "key_id_hash", "apiserver_id_hash"],
            ),
            refused: counters(
                registry,
                &name("invalid_key_id_from_status_total"),
                "Times that a plugin named its key by an id that cannot be.",
                &["provider_name", "error"],
            ),
            seeds: gauges(
                registry,
                &name("dek_source_cache_size"),
                "Seeds of data keys in memory: about as many calls as a restart takes.",
                &["provider_name"],
            ),
            made: Family::single(registry, made).shown(registry, |_| ()),
            not_made: one(
                "apiserver_storage_data_key_generation_failures_total",
                "Times that there were no random bytes for data keys.",
            ),
            missed: one(
                "apiserver_storage_envelope_transformation_cache_misses_total",
                "Values whose data key had to be asked of a plugin.",
            ),
        }
    }
}

fn now() -> f64 {
    unix_time().as_secs_f64()
}

fn direction(how: KeyUse) -> &'static str {
    match how {
        KeyUse::Sealed => "to_storage",
        KeyUse::Opened => "from_storage",
    }
}

/// The code of a plugin's answer in an error, if it is from one.
fn status(error: &str) -> &str {
    let code = error.split_once("rpc error: code = ").and_then(|(_, rest)| rest.split_once(' '));
    code.map_or("unknown-non-grpc", |(code, _)| code)
}

impl EncryptionObserver for EncryptionMetrics {
    fn plugin_called(&self, provider: &str, method: &str, code: &str, took: Duration) {
        self.calls.with_label_values(&[provider, method, code]).observe(took.as_secs_f64());
    }

    fn transformed(&self, how: KeyUse, key: &[u8], prefix: &str, took: Duration, outcome: Result<(), &str>) {
        let resource = self.layout.resource(key).map(|resource| resource.to_string()).unwrap_or_default();
        let status = outcome.map_or_else(status, |()| "OK");
        self.transformations.with_label_values(&[&*resource, direction(how), prefix, status]).inc();
        if outcome.is_ok() {
            self.transformation_times.with_label_values(&[direction(how), prefix]).observe(took.as_secs_f64());
        }
    }

    fn key_used(&self, how: KeyUse, provider: &str, key_id_hash: &str) {
        let labels = [direction(how), provider, key_id_hash, &self.server];
        self.keys.with_label_values(&labels).inc();
        self.keys_at.with_label_values(&labels).set(now());
    }

    fn key_confirmed(&self, provider: &str, key_id_hash: &str) {
        self.confirmed_at.with_label_values(&[provider, key_id_hash, &self.server]).set(now());
    }

    fn key_refused(&self, provider: &str, why: &str) {
        self.refused.with_label_values(&[provider, why]).inc();
    }

    fn seed_made(&self, outcome: Result<(), ()>, took: Duration) {
        self.made.observe(took.as_secs_f64());
        if outcome.is_err() {
            self.not_made.inc();
        }
    }

    fn seed_missed(&self) {
        self.missed.inc();
    }

    fn keys_share(&self, share: f64) {
        self.keys_share.set(share);
    }

    fn seeds_known(&self, provider: &str, count: usize) {
        self.seeds.with_label_values(&[provider]).set(i64::try_from(count).unwrap_or(i64::MAX));
    }
}
