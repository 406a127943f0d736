//! What the configuration file has for the plugins of webhooks: who this server is to them.

use kubelith_codec::config::{Format, Shape};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, Path};
use std::path::PathBuf;

const FORMAT: Format = Format {
    group: "apiserver.config.k8s.io",
    versions: &["v1"],
    kind: "WebhookAdmissionConfiguration",
    fields: &[("kubeConfigFile", Shape::Text), ("staticManifestsDir", Shape::Text)],
};

/// The kubeconfig file with credentials for webhooks, if there is one.
pub fn kubeconfig(plugin: Option<&[u8]>) -> Result<Option<PathBuf>, String> {
    let Some(text) = plugin else { return Ok(None) };
    let document = FORMAT.read(text).map_err(|e| e.to_string())?;
    let directory = document.str_at(&["staticManifestsDir"]);
    if !directory.is_empty() {
        return Err(format!(
            "static webhook manifests dir \"{directory}\" configured but ManifestBasedAdmissionControlConfig feature gate \
             is not enabled"
        ));
    }
    let file = document.get("kubeConfigFile").and_then(Value::as_str).unwrap_or("");
    if file.is_empty() {
        return Ok(None);
    }
    let path = PathBuf::from(file);
    if !path.is_absolute() {
        return Err(Error::invalid(&Path::new("kubeConfigFile"), file, "must be an absolute file path").to_string());
    }
    Ok(Some(path))
}
