//! What the configuration file has for the plugins of webhooks.

use crate::manifests;
use kubelith_codec::config::{Format, Shape, Unknown};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, Path};
use std::path::PathBuf;

const FORMAT: Format = Format {
    group: "apiserver.config.k8s.io",
    versions: &["v1"],
    kind: "WebhookAdmissionConfiguration",
    fields: &[("kubeConfigFile", Shape::Text), ("staticManifestsDir", Shape::Text)],
    unknown: Unknown::Refused,
    scheme: Some("k8s.io/apiserver/pkg/admission/plugin/webhook/config/kubeconfig.go:34"),
};

/// Who this server is to webhooks, and where more of them are.
#[derive(Debug, Default)]
pub struct Settings {
    /// The kubeconfig file with credentials.
    pub kubeconfig: Option<PathBuf>,
    /// The folder with manifests.
    pub manifests: Option<PathBuf>,
}

impl Settings {
    pub fn read(plugin: Option<&[u8]>, gates: &dyn Fn(&str) -> bool) -> Result<Settings, String> {
        let Some(text) = plugin else { return Ok(Settings::default()) };
        let document = FORMAT.read(text).map_err(|e| e.to_string())?;
        let file = document.get("kubeConfigFile").and_then(Value::as_str).unwrap_or("");
        let path = PathBuf::from(file);
        if !file.is_empty() && !path.is_absolute() {
            return Err(Error::invalid(&Path::new("kubeConfigFile"), file, "must be an absolute file path").to_string());
        }
        let kubeconfig = (!file.is_empty()).then_some(path);
        Ok(Settings { kubeconfig, manifests: manifests::folder(&document, gates)? })
    }
}
