//! The rules of an EncryptionConfiguration, in the reference's order and words.

use super::{EncryptionConfiguration, Key, KmsConfiguration, Provider, ReloadMode};
use kubelith_codec::base64;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::{GroupResource, Value};
use std::collections::HashSet;

const AES_KEY_SIZES: &[usize] = &[16, 24, 32];
const SECRETBOX_KEY_SIZES: &[usize] = &[32];
/// Stored, but never served as an API.
const INTERNAL_RESOURCES: [&str; 3] = ["apiserveripinfo", "serviceipallocations", "servicenodeportallocations"];

impl EncryptionConfiguration {
    /// All that is wrong with the configuration.
    pub fn validate(&self, mode: ReloadMode) -> ErrorList {
        let mut errors = ErrorList::new();
        let root = Path::new("resources");
        if self.resources.is_empty() {
            errors.push(Error::required(&root, "at least one resources is required"));
            return errors;
        }
        let mut kms_names = HashSet::new();
        for (i, config) in self.resources.iter().enumerate() {
            let item = root.index(i);
            let (resources, providers) = (item.child("resources"), item.child("providers"));
            if config.resources.is_empty() {
                errors.push(Error::required(&resources, format!("at least one {resources} is required")));
            }
            validate_overlap(&config.resources, &resources, &mut errors);
            validate_names(&config.resources, &resources, &mut errors);
            if config.providers.is_empty() {
                errors.push(Error::required(&providers, format!("at least one {providers} is required")));
            }
            for (j, provider) in config.providers.iter().enumerate() {
                validate_provider(provider, &providers.index(j), mode, &mut kms_names, &mut errors);
            }
        }
        errors
    }
}

/// `a.b.c` is resource `a` in group `b.c`; without a dot the group is the core group.
pub(crate) fn parse_group_resource(text: &str) -> GroupResource {
    match text.split_once('.') {
        Some((resource, group)) => GroupResource::new(group, resource),
        None => GroupResource::new("", text),
    }
}

fn validate_overlap(resources: &[String], path: &Path<'_>, errors: &mut ErrorList) {
    let parsed: Vec<GroupResource> = resources.iter().map(|resource| parse_group_resource(resource)).collect();
    let (mut duplicate, mut overlap) = (false, false);
    for (i, one) in parsed.iter().enumerate() {
        for (j, other) in parsed.iter().enumerate() {
            if i == j {
                continue;
            }
            // As the reference has it: the first pair of equals is only a duplicate.
            if one == other && !duplicate {
                duplicate = true;
                continue;
            }
            let any = one.group == "*" && one.resource == "*";
            let same_group = one.group == other.group && (one.resource == "*" || other.resource == "*");
            overlap |= any || same_group;
        }
    }
    let list = || BadValue::json(Value::from(resources.to_vec()));
    if duplicate {
        errors.push(Error::invalid(path, list(), "the same resource cannot be specified multiple times"));
    }
    if overlap {
        errors.push(Error::invalid(
            path,
            list(),
            "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as \
             they will be masked",
        ));
    }
}

fn validate_names(resources: &[String], path: &Path<'_>, errors: &mut ErrorList) {
    for (i, name) in resources.iter().enumerate() {
        let parsed = parse_group_resource(name);
        let wrong = if name.to_lowercase() != *name {
            "resource name should not contain capital letters"
        } else if name == "*" {
            "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
        } else if INTERNAL_RESOURCES.contains(&name.as_str()) {
            "resources which do not have REST API/s cannot be encrypted"
        } else if parsed.group == "events.k8s.io" {
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the \
             config file"
        } else if parsed.group == "extensions" {
            "'extensions' group has been removed and cannot be used for encryption"
        } else if parsed.group == "*" && parsed.resource != "*" {
            "encrypting the same resource across groups is not supported"
        } else {
            continue;
        };
        errors.push(Error::invalid(&path.index(i), name.as_str(), wrong));
    }
}

fn validate_provider(
    provider: &Provider,
    path: &Path<'_>,
    mode: ReloadMode,
    kms_names: &mut HashSet<String>,
    errors: &mut ErrorList,
) {
    let Provider { aesgcm, aescbc, secretbox, identity, kms } = provider;
    let found = [aesgcm.is_some(), aescbc.is_some(), secretbox.is_some(), *identity, kms.is_some()];
    match found.into_iter().filter(|found| *found).count() {
        0 => errors.push(Error::invalid(
            path,
            shown(provider),
            "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity",
        )),
        1 => {}
        _ => errors.push(Error::invalid(
            path,
            shown(provider),
            "more than one provider specified in a single element, should split into different list elements",
        )),
    }
    if let Some(kms) = kms {
        validate_kms(kms, &path.child("kms"), mode, kms_names, errors);
        kms_names.insert(kms.name.clone());
    } else if let Some(keys) = aesgcm {
        validate_keys(keys, &path.children(&["aesgcm", "keys"]), AES_KEY_SIZES, errors);
    } else if let Some(keys) = aescbc {
        validate_keys(keys, &path.children(&["aescbc", "keys"]), AES_KEY_SIZES, errors);
    } else if let Some(keys) = secretbox {
        validate_keys(keys, &path.children(&["secretbox", "keys"]), SECRETBOX_KEY_SIZES, errors);
    }
}

/// The provider as the reference shows it (its internal type as JSON), but without the secrets.
fn shown(provider: &Provider) -> BadValue {
    let keys = |keys: &Option<Vec<Key>>| -> String {
        let Some(keys) = keys else { return "null".into() };
        let each = keys.iter().map(|key| {
            let name = BadValue::json(key.name.as_str());
            let BadValue::Text(name) = name else { return String::new() };
            format!("{{\"Name\":{name},\"Secret\":\"REDACTED\"}}")
        });
        format!("{{\"Keys\":[{}]}}", each.collect::<Vec<_>>().join(","))
    };
    let identity = if provider.identity { "{}" } else { "null" };
    let kms = if provider.kms.is_some() { "{}" } else { "null" };
    let (gcm, cbc, secretbox) = (keys(&provider.aesgcm), keys(&provider.aescbc), keys(&provider.secretbox));
    BadValue::text(format!(
        "{{\"AESGCM\":{gcm},\"AESCBC\":{cbc},\"Secretbox\":{secretbox},\"Identity\":{identity},\"KMS\":{kms}}}"
    ))
}

fn validate_keys(keys: &[Key], path: &Path<'_>, sizes: &[usize], errors: &mut ErrorList) {
    if keys.is_empty() {
        errors.push(Error::required(path, "at least one keys is required"));
    }
    for (i, key) in keys.iter().enumerate() {
        let path = path.index(i);
        if key.name.is_empty() {
            errors.push(Error::required(&path.child("name"), "name is a mandatory field for a key"));
        }
        let secret = path.child("secret");
        if key.secret.is_empty() {
            errors.push(Error::required(&secret, "secret is a mandatory field for a key"));
            continue;
        }
        match base64::decode(&key.secret) {
            Err(_) => errors.push(Error::invalid(&secret, "REDACTED", "secrets must be base64 encoded")),
            Ok(bytes) if !sizes.contains(&bytes.len()) => {
                let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
                let (got, expected) = (bytes.len(), sizes.join(" "));
                let text = format!("secret is not of the expected length, got {got}, expected one of [{expected}]");
                errors.push(Error::invalid(&secret, "REDACTED", text));
            }
            Ok(_) => {}
        }
    }
}

fn validate_kms(
    kms: &KmsConfiguration,
    path: &Path<'_>,
    mode: ReloadMode,
    names: &HashSet<String>,
    errors: &mut ErrorList,
) {
    let is_v1 = kms.api_version == "v1";
    let name = path.child("name");
    if kms.name.is_empty() {
        errors.push(Error::required(&name, "name is a mandatory field for a provider"));
    }
    if !is_v1 && kms.name.contains(':') {
        let text = format!("invalid KMS provider name {}, must not contain ':'", kms.name);
        errors.push(Error::invalid(&name, kms.name.as_str(), text));
    }
    if (mode == ReloadMode::OnChange || !is_v1) && names.contains(&kms.name) {
        let text = format!("duplicate KMS provider name {}, names must be unique", kms.name);
        errors.push(Error::invalid(&name, kms.name.as_str(), text));
    }
    if kms.timeout.as_nanos() <= 0 {
        let shown = BadValue::json(kms.timeout.to_string());
        errors.push(Error::invalid(&path.child("timeout"), shown, "timeout should be a positive value"));
    }
    validate_endpoint(&kms.endpoint, &path.child("endpoint"), errors);
    match kms.cache_size {
        Some(size) if !is_v1 => {
            errors.push(Error::invalid(&path.child("cachesize"), size, "cachesize is not supported in v2"));
        }
        Some(0) => {
            let text = "cachesize should be a positive value, or negative to disable";
            errors.push(Error::invalid(&path.child("cachesize"), 0i64, text));
        }
        _ => {}
    }
    if !is_v1 && kms.api_version != "v2" {
        let text = "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported";
        errors.push(Error::invalid(&path.child("apiVersion"), kms.api_version.as_str(), text));
    }
}

fn validate_endpoint(endpoint: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if endpoint.is_empty() {
        errors.push(Error::invalid(path, "", "endpoint is a mandatory field for a kms"));
        return;
    }
    let scheme = endpoint.split_once(':').map_or("", |(scheme, _)| scheme);
    if scheme != "unix" {
        let text = format!("unsupported scheme {scheme:?} for KMS provider, only unix is supported");
        errors.push(Error::invalid(path, endpoint, text));
    }
}
