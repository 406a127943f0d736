//! What an APIService object says, read once.

use base64::Engine;
use kubelith_meta::{GroupVersion, Str, Value};
use kubelith_server::readings::Readings;
use kubelith_store::cache::{CachedObject, ResourceCache};
use std::sync::Arc;

/// The port of services that name none.
const DEFAULT_PORT: u16 = 443;

#[derive(Debug, Clone, PartialEq)]
pub struct ApiService {
    /// `version.group`.
    pub name: Str,
    pub uid: Str,
    pub gv: GroupVersion,
    /// `None` if this server itself serves the group version.
    pub service: Option<ServiceReference>,
    pub insecure_skip_tls_verify: bool,
    /// PEM; empty for the system's authorities.
    pub ca_bundle: Vec<u8>,
    pub group_priority: i32,
    pub version_priority: i32,
    /// The condition Available; `None` before anybody looked.
    pub available: Option<Condition>,
    pub managed: Managed,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceReference {
    pub namespace: Str,
    pub name: Str,
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub status: Str,
    pub reason: Str,
    pub message: Str,
}

/// Who keeps an APIService, by its label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Managed {
    /// People.
    No,
    /// This server, once when it starts.
    OnStart,
    /// This server, always.
    Always,
}

impl Managed {
    pub const LABEL: &str = "kube-aggregator.kubernetes.io/automanaged";

    pub fn label_value(self) -> Option<&'static str> {
        match self {
            Managed::No => None,
            Managed::OnStart => Some("onstart"),
            Managed::Always => Some("true"),
        }
    }

    fn of(label: &str) -> Managed {
        match label {
            "onstart" => Managed::OnStart,
            "true" => Managed::Always,
            _ => Managed::No,
        }
    }
}

impl ApiService {
    pub fn read(object: &Value) -> ApiService {
        let text = |path: &[&str]| Str::from(object.str_at(path));
        let priority = |key: &str| {
            let value = object.at(&["spec", key]).and_then(Value::as_i64).unwrap_or(0);
            i32::try_from(value).unwrap_or(i32::MAX)
        };
        let service = object.at(&["spec", "service"]).filter(|s| !s.is_null()).map(|s| ServiceReference {
            namespace: s.str_at(&["namespace"]).into(),
            name: s.str_at(&["name"]).into(),
            port: s.get("port").and_then(Value::as_i64).and_then(|p| u16::try_from(p).ok()).unwrap_or(DEFAULT_PORT),
        });
        let bundle = object.str_at(&["spec", "caBundle"]);
        ApiService {
            name: text(&["metadata", "name"]),
            uid: text(&["metadata", "uid"]),
            gv: GroupVersion::new(text(&["spec", "group"]), text(&["spec", "version"])),
            service,
            insecure_skip_tls_verify: object
                .at(&["spec", "insecureSkipTLSVerify"])
                .and_then(Value::as_bool)
                .unwrap_or(false),
            ca_bundle: base64::engine::general_purpose::STANDARD.decode(bundle).unwrap_or_default(),
            group_priority: priority("groupPriorityMinimum"),
            version_priority: priority("versionPriority"),
            available: available(object),
            managed: Managed::of(object.str_at(&["metadata", "labels", Managed::LABEL])),
        }
    }

    pub fn is_available(&self) -> bool {
        self.available.as_ref().is_some_and(|c| c.status == "True")
    }
}

/// The condition Available of an object.
pub fn available(object: &Value) -> Option<Condition> {
    let conditions = object.at(&["status", "conditions"])?.as_array()?;
    let found = conditions.iter().find(|c| c.str_at(&["type"]) == "Available")?;
    let text = |key: &str| Str::from(found.str_at(&[key]));
    Some(Condition { status: text("status"), reason: text("reason"), message: text("message") })
}

/// `v1beta1.metrics.k8s.io`: a version has no dots, so the first one ends it.
pub fn group_version_of(name: &str) -> GroupVersion {
    let (version, group) = name.split_once('.').unwrap_or((name, ""));
    GroupVersion::new(group, version)
}

/// The object itself; `None` if it cannot be read.
pub fn value_of(object: &CachedObject) -> Option<Value> {
    kubelith_codec::json::parse_stored(&object.json()).ok()
}

/// What APIServices say, read once for all who look at them.
pub type ApiServiceReadings = Readings<ApiService>;

/// The APIServices as they are now.
#[derive(Clone)]
pub struct ApiServices {
    pub cache: Arc<ResourceCache>,
    pub readings: Arc<ApiServiceReadings>,
}

impl ApiServices {
    /// The whole object, if it still says the same. One that changed brings those who follow it here again.
    pub fn value_as(&self, api_service: &ApiService) -> Option<Value> {
        let object = self.cache.get(&api_service.name).and_then(|object| value_of(&object))?;
        (ApiService::read(&object) == *api_service).then_some(object)
    }

    pub fn get(&self, name: &str) -> Option<Arc<ApiService>> {
        self.readings.get(&self.cache, name, |object| Some(ApiService::read(&value_of(object)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_codec::json;

    #[test]
    fn objects_are_read() {
        let object = json::parse(
            br#"{"metadata":{"name":"v1.a.b","labels":{"kube-aggregator.kubernetes.io/automanaged":"true"}},
            "spec":{"group":"a.b","version":"v1","service":{"namespace":"n","name":"s"},"caBundle":"YWJj",
            "groupPriorityMinimum":1000,"versionPriority":15},
            "status":{"conditions":[{"type":"Available","status":"False","reason":"R","message":"M"}]}}"#,
        )
        .unwrap();
        let read = ApiService::read(&object);
        assert_eq!(read.service.as_ref().unwrap().port, 443);
        assert_eq!(read.ca_bundle, b"abc");
        assert_eq!((read.managed, read.is_available()), (Managed::Always, false));
        assert_eq!(read.available.unwrap().reason, "R");
        assert_eq!(group_version_of("v1."), GroupVersion::new("", "v1"));
        assert_eq!(group_version_of("v1beta1.metrics.k8s.io"), GroupVersion::new("metrics.k8s.io", "v1beta1"));
    }
}
