//! EncryptionConfiguration (apiserver.config.k8s.io/v1): reading it strictly, and its defaults.

mod validate;

pub(super) use validate::parse_group_resource;

use kubelith_codec::yaml;
use kubelith_meta::time::Duration;
use kubelith_meta::{Map, Value, text};
use std::fmt;

const API_VERSION: &str = "apiserver.config.k8s.io/v1";
const KIND: &str = "EncryptionConfiguration";
const DEFAULT_KMS_TIMEOUT: Duration = Duration::from_secs(3);
const DEFAULT_KMS_CACHE: i64 = 1000;

/// Whether the file is read again when it changes; some rules are stricter then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReloadMode {
    Once,
    OnChange,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct EncryptionConfiguration {
    pub resources: Vec<ResourceConfiguration>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResourceConfiguration {
    /// `secrets`, `deployments.apps`, `*.apps`, `*.` (the core group), `*.*`.
    pub resources: Vec<String>,
    pub providers: Vec<Provider>,
}

/// One element of a list of providers. Exactly one of the fields should be set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Provider {
    pub aesgcm: Option<Vec<Key>>,
    pub aescbc: Option<Vec<Key>>,
    pub secretbox: Option<Vec<Key>>,
    pub identity: bool,
    pub kms: Option<KmsConfiguration>,
}

#[derive(Clone, Default, PartialEq)]
pub struct Key {
    pub name: String,
    /// Base64.
    pub secret: String,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name: {}, Secret: [REDACTED]", self.name)
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct KmsConfiguration {
    pub api_version: String,
    pub name: String,
    pub cache_size: Option<i64>,
    pub endpoint: String,
    pub timeout: Duration,
}

impl EncryptionConfiguration {
    /// Reads YAML or JSON. Unknown and repeated fields are errors. Validation is a step of its own.
    pub fn parse(data: &[u8]) -> Result<EncryptionConfiguration, String> {
        let document =
            yaml::read(data).map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))?;
        let root = &document.value;
        let (api_version, kind) = (root.str_at(&["apiVersion"]), root.str_at(&["kind"]));
        if kind.is_empty() {
            // The reference shows the whole file here. It holds keys, so this does not.
            return Err("Object 'Kind' is missing in the file".into());
        }
        if api_version.is_empty() {
            return Err("Object 'apiVersion' is missing in the file".into());
        }
        if api_version != API_VERSION || kind != KIND {
            let (kind, version) = (text::quote(kind), text::quote(api_version));
            return Err(format!("no kind {kind} is registered for version {version}"));
        }
        let mut problems: Vec<String> = document.strict_error().iter().map(|error| error.to_string()).collect();
        let mut reader = Reader { unknown: Vec::new() };
        let config = reader.configuration(root)?;
        problems.extend(reader.unknown.iter().map(|field| format!("unknown field {}", text::quote(field))));
        if !problems.is_empty() {
            return Err(format!("strict decoding error: {}", problems.join(", ")));
        }
        Ok(config)
    }
}

/// Walks the tree and notes fields that nobody asked for.
struct Reader {
    unknown: Vec<String>,
}

impl Reader {
    fn configuration(&mut self, root: &Value) -> Result<EncryptionConfiguration, String> {
        let fields = self.object(root, "", &["apiVersion", "kind", "resources"])?;
        let resources = each(fields.get("resources"), "resources", |item, path| self.resource(item, &path))?;
        Ok(EncryptionConfiguration { resources })
    }

    fn resource(&mut self, value: &Value, path: &str) -> Result<ResourceConfiguration, String> {
        let fields = self.object(value, path, &["resources", "providers"])?;
        let names = format!("{path}.resources");
        let resources = each(fields.get("resources"), &names, |item, path| string(Some(item), &path))?;
        let providers = format!("{path}.providers");
        let providers = each(fields.get("providers"), &providers, |item, path| self.provider(item, &path))?;
        Ok(ResourceConfiguration { resources, providers })
    }

    fn provider(&mut self, value: &Value, path: &str) -> Result<Provider, String> {
        let fields = self.object(value, path, &["aesgcm", "aescbc", "secretbox", "identity", "kms"])?;
        let present = |name: &str| fields.get(name).filter(|value| !value.is_null());
        let mut keys = |name: &str| present(name).map(|value| self.keys(value, &format!("{path}.{name}"))).transpose();
        let (aesgcm, aescbc, secretbox) = (keys("aesgcm")?, keys("aescbc")?, keys("secretbox")?);
        if let Some(identity) = present("identity") {
            self.object(identity, &format!("{path}.identity"), &[])?;
        }
        let kms = present("kms").map(|value| self.kms(value, &format!("{path}.kms"))).transpose()?;
        Ok(Provider { aesgcm, aescbc, secretbox, identity: present("identity").is_some(), kms })
    }

    fn keys(&mut self, value: &Value, path: &str) -> Result<Vec<Key>, String> {
        let fields = self.object(value, path, &["keys"])?;
        each(fields.get("keys"), &format!("{path}.keys"), |item, path| {
            let fields = self.object(item, &path, &["name", "secret"])?;
            let name = string(fields.get("name"), &format!("{path}.name"))?;
            let secret = string(fields.get("secret"), &format!("{path}.secret"))?;
            Ok(Key { name, secret })
        })
    }

    fn kms(&mut self, value: &Value, path: &str) -> Result<KmsConfiguration, String> {
        let fields = self.object(value, path, &["apiVersion", "name", "cachesize", "endpoint", "timeout"])?;
        let text = |name: &str| string(fields.get(name), &format!("{path}.{name}"));
        let mut api_version = text("apiVersion")?;
        if api_version.is_empty() {
            api_version = "v1".into();
        }
        let cache_size = match fields.get("cachesize") {
            None | Some(Value::Null) => (api_version == "v1").then_some(DEFAULT_KMS_CACHE),
            Some(Value::Int(size)) => Some(*size),
            Some(_) => return Err(wrong_type(&format!("{path}.cachesize"), "int32")),
        };
        let timeout = match fields.get("timeout") {
            None | Some(Value::Null) => DEFAULT_KMS_TIMEOUT,
            Some(value) => {
                let value = string(Some(value), &format!("{path}.timeout"))?;
                Duration::parse(&value).map_err(|error| error.to_string())?
            }
        };
        Ok(KmsConfiguration { api_version, name: text("name")?, cache_size, endpoint: text("endpoint")?, timeout })
    }

    fn object<'v>(&mut self, value: &'v Value, path: &str, known: &[&str]) -> Result<&'v Map, String> {
        static EMPTY: Map = Map::new();
        let fields = match value {
            Value::Object(fields) => fields,
            Value::Null => &EMPTY,
            _ => return Err(wrong_type(path, "object")),
        };
        for key in fields.keys().filter(|key| !known.contains(key)) {
            self.unknown.push(if path.is_empty() { key.to_string() } else { format!("{path}.{key}") });
        }
        Ok(fields)
    }
}

fn each<T>(
    value: Option<&Value>,
    path: &str,
    mut read: impl FnMut(&Value, String) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => {
            items.iter().enumerate().map(|(i, item)| read(item, format!("{path}[{i}]"))).collect()
        }
        Some(_) => Err(wrong_type(path, "array")),
    }
}

fn string(value: Option<&Value>, path: &str) -> Result<String, String> {
    match value {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.to_string()),
        Some(_) => Err(wrong_type(path, "string")),
    }
}

fn wrong_type(path: &str, expected: &str) -> String {
    format!("json: cannot unmarshal the value of field {path} into a {expected}")
}

#[cfg(test)]
mod tests;
