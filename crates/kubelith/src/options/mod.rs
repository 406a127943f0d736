//! The flags as typed options, one struct per concern, completed with defaults and checked with the reference's
//! messages. What comes out of here is sound; nobody behind it looks at a flag again.

mod admission;
mod aggregator;
mod audit;
mod authentication;
mod authorization;
mod compatibility;
mod console;
mod generic;
mod kubelet;
mod network;
mod serving;
mod storage;
mod test_api;
#[cfg(test)]
mod tests;

pub use admission::AdmissionOptions;
pub use aggregator::AggregatorOptions;
pub use audit::{AuditLogOptions, AuditOptions, AuditWebhookOptions};
pub use authentication::{
    AuthenticationOptions, OidcOptions, RequestHeaderOptions, ServiceAccountOptions, TokenWebhookOptions,
};
pub use authorization::{AuthorizationOptions, ModeOptions};
pub use compatibility::CompatibilityOptions;
pub use generic::GenericOptions;
pub use network::NetworkOptions;
pub use serving::ServingOptions;
pub use storage::{StorageBackend, StorageOptions};
pub use test_api::{ClockOptions, TestApiOptions};

use crate::flags::Flags;
use crate::flags::kind::MISSING;
use kubelith_admission::Switches;
use kubelith_cel::device::Gates;
use kubelith_cel::env::Libraries;
use kubelith_codec::yaml;
use kubelith_companion::Announcement;
use kubelith_controllers::{Name as Controller, Selection as Controllers};
use kubelith_features::FeatureGates;
use kubelith_kube::Emulation;
use kubelith_kube::connect::KubeletOptions;
use kubelith_observe::logging::Format;
use kubelith_observe::metrics::Selection;
use kubelith_observe::spans::TracingConfig;
use kubelith_outbound::egress::Egress;
use kubelith_registry::served;
use kubelith_rules::expression::Dialect;
use kubelith_system::require_sockets;
use kubelith_tls::files::unopened;
use std::path::PathBuf;

#[derive(Debug, Clone)]
pub struct Options {
    pub data_dir: PathBuf,
    /// The flag was given: the folder is meant to be used.
    pub data_dir_given: bool,
    pub logging: LoggingOptions,
    pub features: FeatureGates,
    pub compatibility: CompatibilityOptions,
    pub generic: GenericOptions,
    pub storage: StorageOptions,
    pub serving: ServingOptions,
    pub network: NetworkOptions,
    pub authentication: AuthenticationOptions,
    pub authorization: AuthorizationOptions,
    pub audit: AuditOptions,
    pub admission: AdmissionOptions,
    pub aggregator: AggregatorOptions,
    pub kubelet: KubeletOptions,
    /// Which controllers run in this process.
    pub controllers: Controllers,
    /// The ways to other servers.
    pub egress: Egress,
    pub profiling: bool,
    /// Profiles without authentication, for whoever may open this socket.
    pub debug_socket: Option<PathBuf>,
    pub metrics: Selection,
    /// Where traces go, if they are wanted.
    pub tracing: Option<TracingConfig>,
    pub test_api: TestApiOptions,
    /// A page is served that shows what the server knows.
    pub console: bool,
}

#[derive(Debug, Clone)]
pub struct LoggingOptions {
    pub format: Format,
    pub verbosity: u8,
    /// Other levels for some files.
    pub modules: Vec<(String, u8)>,
}

/// Everything that is wrong with the options; displays as one message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", kubelith_meta::text::aggregate(.0.iter().cloned()))]
pub struct InvalidOptions(pub Vec<String>);

impl From<String> for InvalidOptions {
    fn from(one: String) -> InvalidOptions {
        InvalidOptions(vec![one])
    }
}

impl Options {
    /// Reads and checks the flags. Values that cannot be read at all are reported alone, rules that are broken
    /// all together.
    pub fn from_flags(flags: &Flags) -> Result<Options, InvalidOptions> {
        let gates = flags.pairs("feature-gates");
        let gates = gates.iter().map(|(k, v)| (k.as_str(), (v != MISSING).then_some(v.as_str())));
        let mut errors = Vec::new();
        let compatibility = CompatibilityOptions::from_flags(flags, &mut errors)?;
        let features = FeatureGates::parse(gates, compatibility.releases()).map_err(|e| e.to_string())?;
        let logging = LoggingOptions::from_flags(flags, &features)?;
        let network = NetworkOptions::from_flags(flags)?;
        let egress = egress_of(flags)?;
        let generic = GenericOptions::from_flags(flags, &mut errors);
        let storage = StorageOptions::from_flags(flags, &mut errors);
        check_flow_control(&generic, &storage, &mut errors);
        let serving = ServingOptions::from_flags(flags, &mut errors);
        let authentication = AuthenticationOptions::from_flags(flags, &mut errors);
        let authorization = AuthorizationOptions::from_flags(flags, &mut errors);
        let audit = AuditOptions::from_flags(flags, &mut errors);
        let admission = AdmissionOptions::from_flags(flags, &mut errors);
        let aggregator = AggregatorOptions::from_flags(flags, &mut errors);
        let kubelet = kubelet::from_flags(flags, &egress.cluster, &mut errors);
        let controllers = controllers_of(flags, storage.backend, &admission.switches, &mut errors);
        let test_api = TestApiOptions::from_flags(flags, &mut errors);
        let console = console::served(flags, storage.backend);
        network.check(&features, &mut errors);
        check_peers(flags, &features, &mut errors);
        check_hidden_metrics(flags, &mut errors);
        let debug_socket = Some(flags.text("debug-socket-path")).filter(|p| !p.is_empty()).map(PathBuf::from);
        errors.extend(debug_socket.as_ref().and_then(|_| require_sockets("--debug-socket-path").err()));
        if !errors.is_empty() {
            return Err(InvalidOptions(errors));
        }
        serving.check_http2()?;
        let data_dir = PathBuf::from(flags.text("data-dir"));
        let profiling = flags.bool("profiling");
        let metrics = metrics_of(flags)?;
        let tracing = tracing_of(flags)?;
        Ok(Options {
            data_dir,
            data_dir_given: flags.is_given("data-dir"),
            logging,
            features,
            compatibility,
            generic,
            storage,
            serving,
            network,
            authentication,
            authorization,
            audit,
            admission,
            aggregator,
            kubelet,
            controllers,
            egress,
            profiling,
            debug_socket,
            metrics,
            tracing,
            test_api,
            console,
        })
    }
}

impl Options {
    /// Where clients outside find this server.
    pub fn external_address(&self) -> String {
        let (name, port) = (self.generic.external_hostname.as_str(), self.serving.bind.port);
        match name {
            "" => std::net::SocketAddr::new(self.network.advertise_address, port).to_string(),
            name => format!("{name}:{port}"),
        }
    }

    /// The number of the rules by which objects are completed, where they are stored as readers get them.
    pub fn served_by(&self) -> Option<u64> {
        let release = self.compatibility.releases().emulated_minor.to_string();
        let on = self.features.all().filter(|(_, _, is_on)| *is_on).map(|(name, _, _)| name);
        self.storage.is_served().then(|| served::rules(std::iter::once(release.as_str()).chain(on)))
    }

    /// Uses the embedded store, in the folder that the companion names; what this server makes for itself goes there, too.
    pub fn beside(mut self, companion: Announcement, flags: &Flags) -> Options {
        if !self.data_dir_given {
            self.data_dir.clone_from(&companion.folder);
        }
        // They name the same place.
        let servers = self.storage.etcd_servers.clone();
        self.storage.etcd_overrides.retain(|(others, _)| *others != servers);
        self.storage.backend = StorageBackend::Companion;
        self.storage.companion = Some(companion);
        // What is wrong with the flag has been told.
        self.controllers = controllers_of(flags, self.storage.backend, &self.admission.switches, &mut Vec::new());
        self
    }

    /// What new expressions in CEL may use: what the oldest server has that this one is compatible with.
    pub fn dialect(&self) -> Dialect {
        let on = |gate: &str| self.features.enabled(gate);
        let since = self.compatibility.min_compatibility.minor;
        Dialect {
            libraries: Libraries { since, authz_selectors: on("AuthorizeWithSelectors") },
            devices: Gates {
                consumable_capacity: on("DRAConsumableCapacity"),
                list_attributes: on("DRAListTypeAttributes"),
            },
        }
    }

    /// What the emulated release serves.
    pub fn emulation(&self) -> Emulation {
        let on = self.storage.runtime_config.iter().filter(|(_, value)| value.as_str() != "false");
        let explicit = on.map(|(key, _)| key.clone()).filter(|_| self.compatibility.runtime_config_forward);
        Emulation {
            minor: self.compatibility.emulation.minor,
            min_compatibility: self.compatibility.min_compatibility.minor,
            forward: self.compatibility.forward,
            explicit: explicit.collect(),
        }
    }
}

impl LoggingOptions {
    fn from_flags(flags: &Flags, features: &FeatureGates) -> Result<LoggingOptions, String> {
        let format = match flags.text("logging-format").as_str() {
            "text" | "" => Format::Text,
            "json" => Format::Json,
            other => {
                let shown = kubelith_meta::text::Quoted(other);
                return Err(format!("format: Invalid value: {shown}: Unsupported log format"));
            }
        };
        let modules = flags.pairs("vmodule");
        if format != Format::Text && !modules.is_empty() {
            return Err("vmodule: Forbidden: Only supported for text log format".into());
        }
        check_streams(flags, features)?;
        // The flag's kind has read the numbers.
        let level = |text: String| text.parse::<u32>().unwrap_or(0).min(u8::MAX.into()) as u8;
        let modules = modules.into_iter().map(|(pattern, text)| (pattern, level(text))).collect();
        Ok(LoggingOptions { format, verbosity: flags.int("v").clamp(0, 255) as u8, modules })
    }
}

/// Log streams apart, which kube-apiserver has behind a gate. With it they are taken and have no effect, which is told.
fn check_streams(flags: &Flags, features: &FeatureGates) -> Result<(), String> {
    const GATE: &str = "LoggingAlphaOptions";
    if features.enabled(GATE) {
        return Ok(());
    }
    let mut errors = Vec::new();
    for format in ["text", "json"] {
        let mut check = |is_set: bool, field: &str| {
            if is_set {
                errors.push(format!("options.{format}.{field}: Forbidden: Feature {GATE} is disabled"));
            }
        };
        check(flags.bool(&format!("log-{format}-split-stream")), "splitStream");
        let size = flags.text(&format!("log-{format}-info-buffer-size"));
        check(size.bytes().any(|b| (b'1'..=b'9').contains(&b)), "infoBufferSize");
    }
    if errors.is_empty() { Ok(()) } else { Err(kubelith_meta::text::aggregate(errors)) }
}

/// Metrics that are hidden are those of the release before; there are none here.
fn check_hidden_metrics(flags: &Flags, errors: &mut Vec<String>) {
    let (given, before) =
        (flags.text("show-hidden-metrics-for-version"), format!("1.{}", kubelith_features::NEWEST - 1));
    if !given.is_empty() && given != before {
        let given = kubelith_meta::text::Quoted(&given);
        errors.push(format!(
            "metrics.showHiddenMetricsForVersion: Invalid value: {given}: must be omitted or have the value '{before}'; only the \
             previous minor version is allowed"
        ));
    }
}

/// The configuration of flow control must be served if it is to be used.
fn check_flow_control(generic: &GenericOptions, storage: &StorageOptions, errors: &mut Vec<String>) {
    if !generic.priority_and_fairness {
        return;
    }
    for api in ["flowcontrol.apiserver.k8s.io/v1", "api/ga", "api/all"] {
        match storage.runtime_config.get(api).map(String::as_str) {
            Some("false") => {
                errors.push(format!("--runtime-config={api}=false conflicts with --enable-priority-and-fairness=true"));
                return;
            }
            Some("true") => return,
            _ => {}
        }
    }
}

/// Only with this gate are there peers.
fn check_peers(flags: &Flags, features: &FeatureGates, errors: &mut Vec<String>) {
    const GATE: &str = "UnknownVersionInteroperabilityProxy";
    if features.enabled(GATE) {
        return;
    }
    for flag in ["peer-ca-file", "peer-advertise-ip", "peer-advertise-port"] {
        if !flags.text(flag).is_empty() {
            errors.push(format!("--{flag} requires {GATE} feature to be turned on"));
        }
    }
}

/// What the admission plugin ServiceAccount gives to pods. Who switches that off, as test frameworks do, has no use for it, and
/// may count the accounts and config maps of a namespace.
const FOR_PODS: &[Controller] = &[Controller::ServiceAccount, Controller::RootCaPublisher];

/// Where nobody else has the store, nobody else can be meant to do their work.
fn controllers_of(flags: &Flags, backend: StorageBackend, plugins: &Switches, errors: &mut Vec<String>) -> Controllers {
    if !flags.is_given("controllers") {
        let has = |names: &[String]| names.iter().any(|name| name == "ServiceAccount");
        let for_pods = !has(&plugins.disabled) || has(&plugins.enabled);
        return match backend {
            StorageBackend::Embedded | StorageBackend::Memory | StorageBackend::Companion => {
                Controllers::all_but(if for_pods { &[] } else { FOR_PODS })
            }
            StorageBackend::Etcd3 => Controllers::default(),
        };
    }
    Controllers::parse(&flags.list("controllers")).unwrap_or_else(|unknown| {
        errors.extend(unknown);
        Controllers::default()
    })
}

fn metrics_of(flags: &Flags) -> Result<Selection, String> {
    let disabled = flags.list("disabled-metrics").into_iter().collect();
    let mut selection = Selection { disabled, ..Default::default() };
    let manifest = flags.text("allow-metric-labels-manifest");
    if !manifest.is_empty() {
        let text = std::fs::read(&manifest).map_err(|e| {
            let (given, why) = (kubelith_meta::text::quote(&manifest), unopened(manifest.as_ref(), &e));
            format!(
                "metrics.allowListMappingManifest: Invalid value: {given}: failed to read allow list manifest: {why}"
            )
        })?;
        let document = yaml::read(&text).map_err(|e| format!("failed to parse allow list manifest: {e}"))?;
        let mapping = document.value.get("allowListMapping").and_then(kubelith_meta::Value::as_object);
        for (metric_and_label, values) in mapping.into_iter().flat_map(|m| m.iter()) {
            selection.allow(metric_and_label, values.as_str().unwrap_or_default())?;
        }
    }
    // The flag wins over the file.
    for (metric_and_label, values) in flags.pairs("allow-metric-labels") {
        selection.allow(&metric_and_label, &values)?;
    }
    Ok(selection)
}

fn egress_of(flags: &Flags) -> Result<Egress, String> {
    match flags.text("egress-selector-config-file").as_str() {
        "" => Ok(Egress::default()),
        file => Egress::read(file.as_ref()),
    }
}

fn tracing_of(flags: &Flags) -> Result<Option<TracingConfig>, String> {
    let file = flags.text("tracing-config-file");
    if file.is_empty() {
        return Ok(None);
    }
    TracingConfig::read(file.as_ref()).map(Some)
}
