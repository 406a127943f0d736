//! Bodies of built-in kinds in another version than the endpoint's. Clients may send what any version says, also versions
//! that are served no more: a patch may make such an object, a create is told that its version is the wrong one.

use super::body::Decoded;
use super::typed::internal_package;
use kubelith_codec::json::{self, Strictness};
use kubelith_meta::text::quote;
use kubelith_meta::{GroupVersionKind, Value};
use kubelith_schema::{Form, TypedSchema};

/// The version that the reference works with and no client should name.
pub const INTERNAL: &str = "__internal";

/// The kinds that a part of the reference's server knows. The text is what it calls itself in errors.
fn scheme(group: &str) -> Option<&'static str> {
    match group {
        "meta.k8s.io" | "audit.k8s.io" | "apidiscovery.k8s.io" => None,
        "apiextensions.k8s.io" => Some("k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55"),
        "apiregistration.k8s.io" => Some("k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28"),
        _ => Some("pkg/api/legacyscheme/scheme.go:30"),
    }
}

/// Kinds that all parts know, whatever version a body names.
const OF_NO_VERSION: [&str; 5] = ["Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"];

/// How to read a body of some kind.
pub struct Readable {
    pub schema: TypedSchema,
    /// Why it cannot become what is wanted: told if it could be read.
    pub mismatch: Option<String>,
}

impl Readable {
    /// The object, if it is what is wanted.
    pub fn take<T>(&self, read: Result<T, String>) -> Result<T, String> {
        match (read, &self.mismatch) {
            (Ok(_), Some(why)) => Err(why.clone()),
            (read, _) => read,
        }
    }
}

/// How to read a body of the kind `given` where `kind` is wanted, which has the schema `own`.
pub fn readable(given: &GroupVersionKind, kind: &GroupVersionKind, own: &TypedSchema) -> Result<Readable, String> {
    if given == kind {
        return Ok(Readable { schema: own.clone(), mismatch: None });
    }
    let catalog = kubelith_catalog::builtin();
    let is_of_no_version = OF_NO_VERSION.contains(&given.kind.as_str());
    let known = match is_of_no_version {
        true => catalog.type_schema(&format!("io.k8s.apimachinery.pkg.apis.meta.v1.{}", given.kind)),
        false if scheme(&given.group) == scheme(&kind.group) => catalog.kind_schema(given),
        false => None,
    };
    let Some(schema) = known else {
        return Err(format!(
            "no kind {} is registered for version {} in scheme \"{}\"",
            quote(&given.kind),
            quote(&given.group_version().to_string()),
            scheme(&kind.group).unwrap_or_default()
        ));
    };
    let mismatch = (is_of_no_version || !kubelith_catalog::is_same_kind(catalog, given, kind)).then(|| {
        let (from, to) = (if is_of_no_version { "v1" } else { &given.version }, internal_package(kind));
        format!("converting ({from}.{}) to ({to}.{}): unknown conversion", given.kind, kind.kind)
    });
    Ok(Readable { schema, mismatch })
}

/// Whether `given` is the internal version of `kind`.
pub fn is_internal(given: &GroupVersionKind, kind: &GroupVersionKind) -> bool {
    given.group == kind.group && given.kind == kind.kind
}

/// An object that says to be in the internal version. Its fields have other names there, so that nothing of it is known.
pub fn as_internal(text: &[u8], given: &GroupVersionKind, strictness: Strictness) -> Result<Decoded, String> {
    let mut strict = Vec::new();
    if strictness == Strictness::Report {
        let document = json::parse_document(text, strictness).map_err(|e| e.to_string())?;
        let members = document.value.as_object().into_iter().flat_map(|map| map.iter());
        let mut names: Vec<&str> = members.map(|(name, _)| name).collect();
        names.retain(|name| !matches!(*name, "apiVersion" | "kind"));
        // Metadata is what objects begin with.
        names.sort_by_key(|name| *name != "metadata");
        strict.extend(names.iter().map(|name| format!("unknown field \"{name}\"")));
    }
    let object = Value::from([("apiVersion", given.api_version().into()), ("kind", Value::String(given.kind.clone()))]);
    Ok(Decoded { object, strict, form: Form::Sent })
}

/// What the first versions of workloads fill in and later ones do not: labels are the template's.
pub fn complete(given: &GroupVersionKind, object: &mut Value) {
    let early = given.group == "extensions" || given.group == "apps" && given.version == "v1beta1";
    let workload = matches!(given.kind.as_str(), "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet");
    if !early || !workload {
        return;
    }
    let Some(labels) = object.at(&["spec", "template", "metadata", "labels"]).cloned() else { return };
    if object.at(&["spec", "selector"]).is_none() {
        object.set_at(&["spec", "selector", "matchLabels"], labels.clone());
    }
    if object.at(&["metadata", "labels"]).is_none_or(Value::is_empty) {
        object.set_at(&["metadata", "labels"], labels);
    }
}
