//! What the server counts, under the reference's names, and its text form for Prometheus.
//!
//! Each part of the server registers its own metrics in the shared registry. Labels that come from a request are those of
//! what is served; custom resources, of which there can be any number, are cut at [`MAX_SERIES`].

pub mod audit;
pub mod auth;
mod counter;
pub mod health;
mod histogram;
pub mod impersonation;
mod labelled;
pub mod process;
pub mod pulled;
pub mod reads;
mod registry;
pub mod requests;
pub mod rest_client;
pub mod route;
pub mod selection;
pub mod series;
mod stability;
pub mod workqueue;

pub use counter::Counter;
pub use histogram::Histogram;
pub use labelled::Labelled;
pub use prometheus;
pub use registry::Registry;
pub use route::metrics_route;
pub use selection::Selection;

use kubelith_auth::stats::TokenStats;
use kubelith_features::{FeatureGates, Stage, VersionInfo};
use kubelith_meta::time::unix_time;
use kubelith_outbound::proxy::TransportCounts;
use kubelith_tls::Flaws;
use prometheus::core::Collector;
use prometheus::{GaugeVec, IntGaugeVec, Opts};
use pulled::{PulledCounter, PulledFamilies};
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

/// Resources that are counted. Beyond it, further custom resources are not.
pub const MAX_SERIES: usize = 10_000;

#[derive(Clone)]
pub struct Metrics {
    pub registry: Registry,
    /// Service level indicators, scraped more often than the rest: /metrics/slis.
    pub slis: Registry,
    pub health: Arc<health::HealthMetrics>,
    pub requests: Arc<requests::RequestMetrics>,
    pub auth: Arc<auth::AuthMetrics>,
    pub impersonation: Arc<impersonation::ImpersonationMetrics>,
    pub audit: Arc<audit::AuditMetrics>,
    pub workqueues: Arc<workqueue::WorkqueueMetrics>,
    pub rest_client: Arc<rest_client::RestClientMetrics>,
    /// Old-fashioned certificates of webhooks.
    pub webhooks: Arc<Flaws>,
    /// And of extension servers.
    pub extension_servers: Arc<Flaws>,
    /// How those who call webhooks and extension servers share transports.
    pub transports: Arc<TransportCounts>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    pub fn new() -> Metrics {
        let registry = Registry::new();
        let started = unix_time();
        registry.later(move |registry| register(registry, process::ProcessMetrics::new(started)));
        registry.later(|registry| registry.registered().show(registry));
        let slis = Registry::new();
        Metrics {
            health: Arc::new(health::HealthMetrics::new(&slis)),
            slis,
            requests: Arc::new(requests::RequestMetrics::new(&registry)),
            auth: Arc::new(auth::AuthMetrics::new(&registry)),
            impersonation: Arc::new(impersonation::ImpersonationMetrics::new(&registry)),
            audit: Arc::new(audit::AuditMetrics::new(&registry)),
            workqueues: Arc::new(workqueue::WorkqueueMetrics::new(&registry)),
            rest_client: Arc::new(rest_client::RestClientMetrics::new(&registry)),
            webhooks: flaws(&registry, "webhooks"),
            extension_servers: flaws(&registry, "kube_aggregator"),
            transports: rest_client::transports(&registry),
            registry,
        }
    }

    /// Says which build this is and which features it has on.
    pub fn describe(&self, version: &VersionInfo, features: &FeatureGates) {
        let (version, features) = (version.clone(), features.clone());
        self.registry.later(move |registry| describe(registry, &version, features));
    }

    /// Says how much of it is not shown.
    pub fn describe_selection(&self, selection: &Selection) {
        let disabled = selection.disabled.len() as u64;
        self.registry.later(move |registry| {
            let count = |name: &str, help: &str| counters(registry, name, help, &[]).with_label_values(&[] as &[&str]);
            count("disabled_metrics_total", "Metrics that --disabled-metrics leaves out.").inc_by(disabled);
            count("hidden_metrics_total", "Metrics that are hidden because they are deprecated.");
            count(
                selection::CATEGORIZATIONS,
                "How often a label had a value that --allow-metric-labels does not list.",
            );
        });
    }

    /// Shows the counts of tokens.
    pub fn watch_tokens(&self, stats: &Arc<TokenStats>) {
        let stats = stats.clone();
        self.registry.later(move |registry| auth::watch_tokens(registry, &stats));
    }

    /// Shows the count of handshakes that failed: what happens before there is a request.
    pub fn watch_handshakes(&self, failed: impl Fn() -> u64 + Send + Sync + 'static) {
        let opts = Opts::new("apiserver_tls_handshake_errors_total", "Connections whose TLS handshake failed.");
        let counter = PulledCounter::new(opts, failed);
        // A second listener of one process is counted with the first.
        let _ = self.registry.register(Box::new(counter));
    }
}

/// Counts of certificates that servers of a kind have.
fn flaws(registry: &Registry, of: &str) -> Arc<Flaws> {
    let (flaws, of) = (Arc::new(Flaws::default()), of.to_owned());
    let [names, signatures] = [flaws.clone(), flaws.clone()];
    registry.later(move |registry| {
        let name = |what: &str| format!("apiserver_{of}_x509_{what}_total");
        let help = "Connections to servers whose certificate has its name in its subject alone.";
        register(registry, PulledCounter::new(Opts::new(name("missing_san"), help), move || names.missing_san()));
        let help = "Connections to servers whose certificate is signed with SHA-1.";
        register(registry, PulledCounter::new(Opts::new(name("insecure_sha1"), help), move || signatures.sha1()));
    });
    flaws
}

fn describe(registry: &Registry, version: &VersionInfo, features: FeatureGates) {
    let labels = version.metric_labels();
    let names: Vec<&str> = labels.iter().map(|(name, _)| *name).collect();
    let values: Vec<&str> = labels.iter().map(|(_, value)| value.as_str()).collect();
    gauges(registry, "kubernetes_build_info", "The build, as labels.", &names).with_label_values(&values).set(1);
    let release = format!("{}.{}", version.major, version.minor);
    gauges(
        registry,
        "version_info",
        "The version, the one that is emulated and the oldest one to be compatible with.",
        &["component", "binary", "emulation", "min_compat"],
    )
    .with_label_values(&[
        "kube",
        &release,
        &format!("{}.{}", version.emulation_major, version.emulation_minor),
        &format!("{}.{}", version.major, version.min_compatibility_minor),
    ])
    .set(1);
    let told = ("kubernetes_feature_enabled", "Feature gates: 1 if on.");
    let families = PulledFamilies::new(&[told], move || {
        let gate = |(gate, stage, on): (&'static str, Stage, bool)| {
            (vec![("name", gate), ("stage", stage.name())], f64::from(u8::from(on)))
        };
        vec![pulled::labelled_gauges(told, &features.groups().chain(features.all()).map(gate).collect::<Vec<_>>())]
    });
    register(registry, families);
}

/// Registers a metric. Two of one name are a mistake in the program.
pub fn register(registry: &Registry, collector: impl Collector + 'static) {
    registry.register(Box::new(collector)).expect("every metric has its own name");
}

/// A family of metrics that is made and registered when its first series is: until then there is nothing to show of it. A server has
/// a hundred and fifty of them, and one in a test uses a dozen. Gathering holds the registry: a collector must neither use a family that is not
/// there yet, nor wait for a lock under which others use one.
pub struct Family<V>(Arc<LazyLock<V, Making<V>>>);

type Making<V> = Box<dyn FnOnce() -> V + Send>;
pub type Counters = Family<Labelled<Counter>>;
pub type Gauges = Family<IntGaugeVec>;
pub type FloatGauges = Family<GaugeVec>;
pub type Histograms = Family<Labelled<Histogram>>;

impl<V> std::fmt::Debug for Family<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Family").finish_non_exhaustive()
    }
}

impl<V: Collector + Clone + 'static> Family<V> {
    fn new(
        registry: &Registry,
        labels: &[&str],
        make: impl FnOnce(&[&str]) -> prometheus::Result<V> + Send + 'static,
    ) -> Family<V> {
        let labels = labels.iter().map(|l| (*l).to_owned()).collect::<Vec<String>>();
        Family::single(registry, move || {
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            make(&labels)
        })
    }

    /// One without labels shows from the start; see [`Family::shown`].
    pub fn single(registry: &Registry, make: impl FnOnce() -> prometheus::Result<V> + Send + 'static) -> Family<V> {
        // A registry may keep a family that nobody has used.
        let registry = registry.downgrade();
        Family(Arc::new(LazyLock::new(Box::new(move || {
            let made = make().expect("names and labels are well-formed");
            if let Some(registry) = registry.upgrade() {
                register(&registry, made.clone());
            }
            made
        }))))
    }

    /// Shows from the start: it is made at the first look at the registry, if nobody has used it by then. `begin` makes its first series.
    #[must_use]
    pub fn shown(self, registry: &Registry, begin: impl FnOnce(&V) + Send + 'static) -> Family<V>
    where
        V: Sync + Send,
    {
        let family = self.clone();
        registry.later(move |_| begin(&family));
        self
    }
}

impl<V> Clone for Family<V> {
    fn clone(&self) -> Family<V> {
        Family(self.0.clone())
    }
}

impl<V> Deref for Family<V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.0
    }
}

pub fn counters(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> Counters {
    let (name, help) = (name.to_owned(), help.to_owned());
    Family::new(registry, labels, move |labels| Labelled::new(&name, &help, (), labels))
}

pub fn gauges(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> Gauges {
    let opts = Opts::new(name, help);
    Family::new(registry, labels, move |labels| IntGaugeVec::new(opts, labels))
}

pub fn float_gauges(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> FloatGauges {
    let opts = Opts::new(name, help);
    Family::new(registry, labels, move |labels| GaugeVec::new(opts, labels))
}

pub fn histograms(registry: &Registry, name: &str, help: &str, buckets: &[f64], labels: &[&str]) -> Histograms {
    let (name, help, buckets) = (name.to_owned(), help.to_owned(), buckets.into());
    Family::new(registry, labels, move |labels| Labelled::new(&name, &help, buckets, labels))
}
