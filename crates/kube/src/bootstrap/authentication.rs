//! The config map by which extension servers know whom to trust: the authorities of client certificates, and the
//! front proxy with its headers. Servers of one cluster may differ; the map holds what all of them have.

use super::{Bootstrap, KUBE_SYSTEM, ensure_namespace};
use kubelith_codec::json;
use kubelith_meta::time::Time;
use kubelith_meta::{GroupVersionResource, Map, Value};
use kubelith_server::controller::{Controller, Next};
use kubelith_server::lifecycle::{Begun, PostStartHook};
use kubelith_server::loopback::ResourceRef;
use kubelith_tls::bundle;
use kubelith_tls::server_config::RELOAD_INTERVAL;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const NAME: &str = "extension-apiserver-authentication";
const AGAIN: Duration = Duration::from_secs(60);

const CLIENT_CA: &str = "client-ca-file";
const PROXY_CA: &str = "requestheader-client-ca-file";
const USERNAMES: &str = "requestheader-username-headers";
const UIDS: &str = "requestheader-uid-headers";
const GROUPS: &str = "requestheader-group-headers";
const EXTRAS: &str = "requestheader-extra-headers-prefix";
const ALLOWED: &str = "requestheader-allowed-names";

/// What this server checks credentials against.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthenticationInfo {
    /// PEM; empty if client certificates are not taken.
    pub client_ca: String,
    /// The front proxy, if there is one.
    pub request_header: Option<RequestHeaderInfo>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestHeaderInfo {
    /// PEM.
    pub client_ca: String,
    pub username_headers: Vec<String>,
    pub uid_headers: Vec<String>,
    pub group_headers: Vec<String>,
    pub extra_header_prefixes: Vec<String>,
    pub allowed_names: Vec<String>,
}

pub fn hook(config: &Arc<Bootstrap>) -> PostStartHook {
    let config = config.clone();
    PostStartHook::new("start-cluster-authentication-info-controller", |context| async move {
        let Some(cache) = config.cache("", "configmaps") else { return Ok(()) };
        let key = format!("{KUBE_SYSTEM}/{NAME}");
        let watched = key.clone();
        context.tasks.spawn_until_stopped("cluster-authentication-files", publish_changes(config.clone()));
        let first = Arc::new(Mutex::new(Some(context.first_passes.token())));
        // A copy has the map of the server that it is a copy of, and the same files.
        let is_inherited = context.begun == Begun::AsCopy && config.has("", "configmaps", &key);
        let is_inherited = Arc::new(AtomicBool::new(is_inherited));
        Controller::new("cluster-authentication-trust", move |_| {
            let (config, first, is_inherited) = (config.clone(), first.clone(), is_inherited.clone());
            async move {
                let done = match is_inherited.swap(false, Ordering::Relaxed) {
                    true => Ok(()),
                    false => sync(&config).await,
                };
                first.lock().unwrap_or_else(PoisonError::into_inner).take();
                done.map(|()| Next::Done)
            }
        })
        .key(key)
        .watches(&cache, move |change| {
            // Changes by others are put right by the periodic pass, as in the reference; a deletion at once.
            let concerns = *change.object().key == *watched && (change.old.is_none() || change.is_deletion());
            concerns.then(|| change.key()).into_iter().collect()
        })
        .every(AGAIN)
        .metrics(&context.metrics)
        .start(&context.tasks);
        Ok(())
    })
}

/// Files that are replaced while the server runs are published as soon as they count.
async fn publish_changes(config: Arc<Bootstrap>) {
    let mut published = (config.authentication)();
    loop {
        tokio::time::sleep(RELOAD_INTERVAL).await;
        let now = (config.authentication)();
        // What fails is tried again the next time.
        if now != published && sync(&config).await.is_ok() {
            published = now;
        }
    }
}

async fn sync(config: &Bootstrap) -> Result<(), String> {
    let resource = GroupVersionResource::new("", "v1", "configmaps");
    let collection = ResourceRef::new(&resource).namespace(KUBE_SYSTEM);
    let target = collection.clone().name(NAME);
    let client = &config.client;
    let existing = super::find(client, &target).await.map_err(|e| e.to_string())?;
    let empty = Map::default();
    let data = existing.as_ref().and_then(|e| e.get("data")).and_then(Value::as_object).unwrap_or(&empty);
    let wanted = combine(data, &(config.authentication)(), config.clock.now())?;
    if existing.is_some() && *data == wanted {
        return Ok(());
    }
    ensure_namespace(client, KUBE_SYSTEM).await.map_err(|e| e.to_string())?;
    let written = match existing {
        None => {
            let metadata = Value::from([("name", NAME), ("namespace", KUBE_SYSTEM)]);
            let object = Value::from([("metadata", metadata), ("data", Value::Object(wanted))]);
            client.create(&collection, &object).await
        }
        Some(mut object) => {
            object.make_object().insert("data", Value::Object(wanted));
            let written = client.update(&target, &object).await;
            let too_large = |e: &kubelith_meta::Status| e.code == 413 || e.message.contains("Too long");
            if written.as_ref().is_err_and(too_large) {
                // What has piled up is forgotten; every server adds its own again.
                client.delete(&target, None).await.map_err(|e| e.to_string())?;
            }
            written
        }
    };
    written.map(drop).map_err(|e| e.to_string())
}

/// What is published and what this server has, together.
fn combine(data: &Map, own: &AuthenticationInfo, now: Time) -> Result<Map, String> {
    let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or("");
    let mut out = Map::default();
    let client_ca = bundle::join(&[text(CLIENT_CA), &own.client_ca], now)?;
    if !client_ca.is_empty() {
        out.insert(CLIENT_CA, client_ca);
    }
    let none = RequestHeaderInfo::default();
    let proxy = own.request_header.as_ref().unwrap_or(&none);
    let proxy_ca = bundle::join(&[text(PROXY_CA), &proxy.client_ca], now)?;
    if proxy_ca.is_empty() {
        return Ok(out);
    }
    out.insert(PROXY_CA, proxy_ca);
    for (key, own) in [
        (USERNAMES, &proxy.username_headers),
        (UIDS, &proxy.uid_headers),
        (GROUPS, &proxy.group_headers),
        (EXTRAS, &proxy.extra_header_prefixes),
        (ALLOWED, &proxy.allowed_names),
    ] {
        let mut list = names(key, text(key))?;
        for name in own {
            if !list.contains(name) {
                list.push(name.clone());
            }
        }
        if key != UIDS || !list.is_empty() {
            let json = json::to_vec(&Value::from(list));
            out.insert(key, String::from_utf8_lossy(&json).into_owned());
        }
    }
    Ok(out)
}

/// A list as the map holds it: JSON in a string.
fn names(key: &str, text: &str) -> Result<Vec<String>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let value = json::parse(text.as_bytes()).map_err(|e| format!("{key}: {e}"))?;
    let list = value.as_array().ok_or_else(|| format!("{key} is not a list"))?;
    let mut names: Vec<String> = Vec::new();
    for item in list {
        let name = item.as_str().ok_or_else(|| format!("{key} holds something that is no string"))?;
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_unix(1_800_000_000);

    #[test]
    fn nothing_is_published_without_authorities() {
        let own = AuthenticationInfo { request_header: Some(RequestHeaderInfo::default()), ..Default::default() };
        assert_eq!(combine(&Map::default(), &own, NOW).unwrap(), Map::default());
    }

    #[test]
    fn lists_are_joined_without_duplicates() {
        assert_eq!(names("k", r#"["a","b","a"]"#).unwrap(), ["a", "b"]);
        assert_eq!(names("k", "").unwrap(), Vec::<String>::new());
        assert!(names("k", "{}").is_err());
        assert!(names("k", "[1]").is_err());
    }
}
