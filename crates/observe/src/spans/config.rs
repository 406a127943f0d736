//! The file of `--tracing-config-file`: a TracingConfiguration.

use kubelith_codec::yaml;
use kubelith_meta::Value;
use kubelith_system::require_sockets;
use kubelith_tls::files::unopened;
use std::path::{Path, PathBuf};

const GROUP: &str = "apiserver.config.k8s.io/";
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
const MILLION: i64 = 1_000_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracingConfig {
    pub endpoint: TracingEndpoint,
    pub sampling_rate_per_million: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TracingEndpoint {
    /// `host:port`.
    Tcp(String),
    Unix(PathBuf),
}

impl TracingConfig {
    pub fn read(path: &Path) -> Result<TracingConfig, String> {
        let text = std::fs::read(path).map_err(|e| {
            let why = unopened(path, &e);
            format!("failed to read tracing config: unable to read tracing configuration from {path:?}: {why}")
        })?;
        TracingConfig::parse(&text)
    }

    fn parse(text: &[u8]) -> Result<TracingConfig, String> {
        let undecodable = |why: &dyn std::fmt::Display| {
            format!("failed to read tracing config: unable to decode tracing configuration data: {why}")
        };
        let value = yaml::read(text).map_err(|e| undecodable(&e))?.value;
        let (version, kind) = (value.str_at(&["apiVersion"]), value.str_at(&["kind"]));
        let known = version.strip_prefix(GROUP).is_some_and(|v| VERSIONS.contains(&v));
        if !known || kind != "TracingConfiguration" {
            return Err(undecodable(&format!("no kind {kind:?} is registered for version {version:?}")));
        }
        let rate = value.get("samplingRatePerMillion").and_then(Value::as_i64).unwrap_or(0);
        let invalid = |field: &str, value: &dyn std::fmt::Display, why: &str| {
            Err(format!("failed to validate tracing configuration: {field}: Invalid value: {value}: {why}"))
        };
        if rate < 0 {
            return invalid("samplingRatePerMillion", &rate, "sampling rate must be positive");
        }
        if rate > MILLION {
            let why = "sampling rate per million must be less than or equal to one million";
            return invalid("samplingRatePerMillion", &rate, why);
        }
        let endpoint = match value.str_at(&["endpoint"]) {
            "" => "localhost:4317",
            given => given,
        };
        let endpoint = match endpoint.split_once("://") {
            None => TracingEndpoint::Tcp(endpoint.to_owned()),
            Some(("dns", rest)) => TracingEndpoint::Tcp(rest.trim_start_matches('/').to_owned()),
            Some(("unix", path)) => TracingEndpoint::Unix(path.into()),
            // A leading zero is how Linux writes that the name is of no file.
            Some(("unix-abstract", name)) => TracingEndpoint::Unix(format!("\0{name}").into()),
            Some((scheme, _)) => {
                let why = format!(
                    "unsupported scheme: {scheme}.  Options are none, dns, unix, or unix-abstract.  See \
                     https://github.com/grpc/grpc/blob/master/doc/naming.md"
                );
                return invalid("endpoint", &format_args!("{endpoint:?}"), &why);
            }
        };
        if let TracingEndpoint::Unix(path) = &endpoint {
            require_sockets(&format!("failed to validate tracing configuration: endpoint {path:?}"))?;
        }
        Ok(TracingConfig { endpoint, sampling_rate_per_million: rate as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files() {
        let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n";
        let tcp = |at: &str| TracingEndpoint::Tcp(at.into());
        for (rest, endpoint, rate) in [
            ("", tcp("localhost:4317"), 0),
            ("endpoint: collector:1234\nsamplingRatePerMillion: 5", tcp("collector:1234"), 5),
            ("endpoint: dns:///collector:1", tcp("collector:1"), 0),
            ("endpoint: unix:///run/otlp", TracingEndpoint::Unix("/run/otlp".into()), 0),
            ("endpoint: unix-abstract:///otlp", TracingEndpoint::Unix("\0/otlp".into()), 0),
        ] {
            let config = TracingConfig::parse(format!("{head}{rest}").as_bytes()).unwrap();
            assert_eq!(config, TracingConfig { endpoint, sampling_rate_per_million: rate }, "{rest}");
        }
        for (text, error) in [
            ("kind: x", "no kind \"x\" is registered"),
            (&*format!("{head}samplingRatePerMillion: -1"), "Invalid value: -1: sampling rate must be positive"),
            (&*format!("{head}samplingRatePerMillion: 1000001"), "less than or equal to one million"),
            (&*format!("{head}endpoint: http://x"), "unsupported scheme: http."),
        ] {
            let why = TracingConfig::parse(text.as_bytes()).unwrap_err();
            assert!(why.contains(error), "{why}");
        }
    }
}
