//! Keys, sizes, what each type must hold, and the promise not to change.

use crate::core::data::{MAX_BYTES, check_frozen, decoded_len};
use base64::Engine;
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{is_config_map_key, name_is_dns_subdomain};
use kubelith_meta::object::Namespacing;
use kubelith_rules::Rules;
use kubelith_rules::common::{Fields, immutable_text, invalid_all, meta, meta_update};

pub const RULES: Rules = Rules {
    create: |_, object| secret(object),
    update: |_, new, old| {
        let mut errors = meta_update(new, old);
        immutable_text(new, old, "type", &Path::ROOT, &mut errors);
        check_frozen(new, old, &["data"], &mut errors);
        errors.extend(secret(new));
        errors
    },
};

fn secret(object: &Value) -> ErrorList {
    let mut errors = meta(object, Namespacing::Required, name_is_dns_subdomain);
    let data = Path::new("data");
    let mut size = 0;
    for (key, value) in object.entries("data") {
        invalid_all(is_config_map_key(key), &data.key(key), key, &mut errors);
        size += decoded_len(value);
    }
    if size > MAX_BYTES {
        errors.push(Error::too_long(&data, MAX_BYTES));
    }
    let value = |key: &str| object.map("data").and_then(|d| d.get(key));
    let mut required = |keys: &[&str]| errors.extend(keys.iter().map(|k| Error::required(&data.key(k), "")));
    match object.text("type") {
        "kubernetes.io/service-account-token" => {
            const KEY: &str = "kubernetes.io/service-account.name";
            if object.meta().annotation(KEY).unwrap_or_default().is_empty() {
                errors.push(Error::required(&Path::of(&["metadata", "annotations"]).key(KEY), ""));
            }
        }
        "kubernetes.io/dockercfg" => docker_config(value(".dockercfg"), &data.key(".dockercfg"), &mut errors),
        "kubernetes.io/dockerconfigjson" => {
            docker_config(value(".dockerconfigjson"), &data.key(".dockerconfigjson"), &mut errors);
        }
        "kubernetes.io/basic-auth" if value("username").is_none() && value("password").is_none() => {
            required(&["username", "password"]);
        }
        "kubernetes.io/ssh-auth" if value("ssh-privatekey").is_none_or(Value::is_empty) => {
            required(&["ssh-privatekey"])
        }
        "kubernetes.io/tls" => {
            let absent: Vec<&str> = ["tls.crt", "tls.key"].into_iter().filter(|k| value(k).is_none()).collect();
            required(&absent);
        }
        _ => {}
    }
    errors
}

fn docker_config(value: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(text) = value.and_then(Value::as_str) else {
        errors.push(Error::required(path, ""));
        return;
    };
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default();
    if let Some(problem) = not_an_object(&bytes) {
        errors.push(Error::invalid(path, "<secret contents redacted>", problem));
    }
}

/// Why `bytes` are no JSON object, as Go's decoder says it.
fn not_an_object(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(serde_json::Value::Object(_) | serde_json::Value::Null) => None,
        Ok(other) => {
            let kind = match other {
                serde_json::Value::Bool(_) => "bool",
                serde_json::Value::Number(_) => "number",
                serde_json::Value::String(_) => "string",
                _ => "array",
            };
            Some(format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"))
        }
        Err(e) if e.is_eof() => Some("unexpected end of JSON input".into()),
        Err(_) => kubelith_codec::json::parse(bytes).err().map(|problem| problem.to_string()),
    }
}
