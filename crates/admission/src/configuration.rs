//! `--admission-control-config-file`: what the plugins that take a configuration are told.

use kubelith_codec::config::{Format, Item, Malformed, Shape, Unknown};
use kubelith_codec::{json, yaml};
use kubelith_meta::Value;
use kubelith_meta::text::Quoted;
use std::path::{Path, PathBuf};

/// The group was another one when the kind was young.
const FORMATS: [Format; 2] = [format("apiserver.config.k8s.io", &["v1"]), format("apiserver.k8s.io", &["v1alpha1"])];

const fn format(group: &'static str, versions: &'static [&'static str]) -> Format {
    let fields = &[(
        "plugins",
        Shape::List(&Item {
            shape: Shape::Object(&[("name", Shape::Text), ("path", Shape::Text), ("configuration", Shape::Any)]),
            list: "[]v1.AdmissionPluginConfiguration",
        }),
    )];
    Format { group, versions, kind: "AdmissionConfiguration", fields, unknown: Unknown::Refused, scheme: None }
}

/// Fields of files from before there was a kind, with the plugins that read them.
const LEGACY: [(&str, &str); 2] =
    [("imagePolicy", "ImagePolicyWebhook"), ("podNodeSelectorPluginConfig", "PodNodeSelector")];

/// The configuration of each plugin that has one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    plugins: Vec<(String, Source)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Text(Vec<u8>),
    File(PathBuf),
}

impl Configuration {
    pub fn read(path: &Path) -> Result<Configuration, String> {
        let text = std::fs::read(path).map_err(|e| {
            let shown = path.display().to_string();
            let why = os_error(&e);
            format!("unable to read admission control configuration from {} [open {shown}: {why}]", Quoted(&shown))
        })?;
        let [current, older] = FORMATS;
        let document = match current.read(&text) {
            Err(Malformed::Kind(why)) => match older.read(&text) {
                Err(Malformed::Kind(_)) => Err(Malformed::Kind(why)),
                read => read,
            },
            read => read,
        };
        let document = match document {
            Ok(document) => document,
            Err(Malformed::Kind(_)) if is_legacy(&text) => {
                let of = |plugin: &str| (plugin.to_owned(), Source::Text(text.clone()));
                return Ok(Configuration { plugins: LEGACY.iter().map(|(_, plugin)| of(plugin)).collect() });
            }
            Err(why) => return Err(why.to_string()),
        };
        let base = path.parent().unwrap_or(Path::new(""));
        let plugins = document.get("plugins").and_then(Value::as_array).unwrap_or(&[]);
        let named = |plugin: &Value| Some((plugin.str_at(&["name"]).to_owned(), Source::of(plugin, base)?));
        Ok(Configuration { plugins: plugins.iter().filter_map(named).collect() })
    }

    /// The first that is meant for the plugin. Only files of plugins that run are read.
    pub fn of(&self, plugin: &str) -> Result<Option<Vec<u8>>, String> {
        match self.plugins.iter().find(|(name, _)| name == plugin) {
            None => Ok(None),
            Some((_, Source::Text(text))) => Ok(Some(text.clone())),
            Some((_, Source::File(path))) => std::fs::read(path).map(Some).map_err(|e| {
                let why = os_error(&e);
                format!("couldn't open admission plugin configuration {}: {why}", path.display())
            }),
        }
    }
}

impl Source {
    /// What stands there, or the file that is named.
    fn of(plugin: &Value, base: &Path) -> Option<Source> {
        match (plugin.get("configuration").filter(|c| !c.is_null()), plugin.str_at(&["path"])) {
            (Some(inline), _) => Some(Source::Text(json::to_vec(inline))),
            (None, "") => None,
            (None, path) => Some(Source::File(base.join(path))),
        }
    }
}

fn is_legacy(text: &[u8]) -> bool {
    yaml::read(text).is_ok_and(|document| LEGACY.iter().any(|(field, _)| document.value.get(field).is_some()))
}

/// Without the number that Rust adds.
pub fn os_error(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n";

    fn read(text: &str) -> (tempfile::TempDir, Result<Configuration, String>) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("other.yaml"), "from: a file").unwrap();
        let path = folder.path().join("config.yaml");
        std::fs::write(&path, text).unwrap();
        let read = Configuration::read(&path);
        (folder, read)
    }

    #[test]
    fn plugins_get_what_is_meant_for_them() {
        let (_folder, config) = read(&format!(
            "{HEAD}plugins:\n- name: A\n  configuration: {{x: 1}}\n  path: nowhere\n- name: B\n  path: other.yaml\n- name: C\n"
        ));
        let config = config.unwrap();
        let text = |plugin: &str| config.of(plugin).unwrap().map(|t| String::from_utf8(t).unwrap());
        assert_eq!(text("A").unwrap(), r#"{"x":1}"#);
        assert_eq!(text("B").unwrap(), "from: a file");
        assert_eq!((text("C"), text("D")), (None, None));
        let older =
            "apiVersion: apiserver.k8s.io/v1alpha1\nkind: AdmissionConfiguration\nplugins: [{name: A, path: x}]\n";
        assert!(read(older).1.unwrap().of("A").is_err());
        let (_folder, legacy) = read("imagePolicy: {}\n");
        assert!(legacy.unwrap().of("ImagePolicyWebhook").unwrap().is_some());
    }

    #[test]
    fn what_is_wrong_is_told() {
        let none = Configuration::read(Path::new("/nowhere/at/all")).unwrap_err();
        let want = "unable to read admission control configuration from \"/nowhere/at/all\" [open /nowhere/at/all: no \
                    such file or directory]";
        assert_eq!(none, want);
        let group = read("apiVersion: apiserver.config.k8s.io/v1alpha1\nkind: AdmissionConfiguration\n").1.unwrap_err();
        let want = "no kind \"AdmissionConfiguration\" is registered for version \"apiserver.config.k8s.io/v1alpha1\"";
        assert_eq!(group, want);
        for (text, want) in [
            (format!("{HEAD}foo: 1\n"), "strict decoding error: unknown field \"foo\""),
            ("kind: Foo\n".into(), "Object 'apiVersion' is missing in 'kind: Foo\n'"),
        ] {
            assert_eq!(read(&text).1.unwrap_err(), want);
        }
        let (_folder, config) = read(&format!("{HEAD}plugins: [{{name: A, path: gone}}]\n"));
        let missing = config.unwrap().of("A").unwrap_err();
        assert!(missing.contains("couldn't open admission plugin configuration"), "{missing}");
    }
}
