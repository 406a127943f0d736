//! PodTolerationRestriction and ExtendedResourceToleration: tolerations that pods get, and those that they may have.

use super::amounts::amounts;
use super::{list, list_mut};
use crate::plugin::{Plugin, Verdict};
use kubelith_codec::config::{Field, Format, Item, Shape, Unknown};
use kubelith_codec::json;
use kubelith_meta::field::{ErrorList, Path};
use kubelith_meta::text::json_kind;
use kubelith_meta::{GroupResource, Map, Status, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::{Operation, Request};
use kubelith_registry::objects::{Collection, parse};
use kubelith_rules::{Env, Features};
use std::collections::BTreeSet;
use std::sync::Arc;

const PATH: [&str; 2] = ["spec", "tolerations"];
const DEFAULTS: &str = "scheduler.alpha.kubernetes.io/defaultTolerations";
const ALLOWED: &str = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";
const MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";

fn toleration(key: &str) -> Value {
    let mut toleration = Map::with_capacity(3);
    toleration.insert("effect", "NoSchedule");
    toleration.insert("key", key);
    toleration.insert("operator", "Exists");
    Value::Object(toleration)
}

/// Nodes with rare devices are kept free of other pods by a taint; who asks for the device tolerates it.
pub struct ExtendedResourceToleration;

impl Plugin for ExtendedResourceToleration {
    fn admit<'a>(&'a self, request: Request<'a>, pod: &'a mut Value) -> Verdict<'a> {
        if !request.is_for("", "pods") {
            return Verdict::Idle;
        }
        let containers = list(pod, &["spec", "containers"]).iter().chain(list(pod, &["spec", "initContainers"]));
        let asked = containers.flat_map(|container| amounts(container.at(&["resources", "requests"])).into_keys());
        let extended: BTreeSet<_> = asked.filter(|name| super::resource_quota::is_extended(name)).collect();
        for name in extended {
            let wanted = toleration(&name);
            let is_it = |known: &Value| {
                ["effect", "key", "operator", "value"]
                    .iter()
                    .all(|part| known.str_at(&[part]) == wanted.str_at(&[part]))
            };
            let tolerations = list_mut(pod, &PATH);
            match tolerations.iter_mut().find(|known| is_it(known)) {
                Some(known) => *known = wanted,
                None => tolerations.push(wanted),
            }
        }
        Verdict::PASSED
    }
}

const TOLERATION: &[Field] = &[
    ("key", Shape::Text),
    ("operator", Shape::Text),
    ("value", Shape::Text),
    ("effect", Shape::Text),
    ("tolerationSeconds", Shape::Int),
];
const TOLERATIONS: Shape = Shape::List(&Item { shape: Shape::Object(TOLERATION), list: "[]v1.Toleration" });

const FORMAT: Format = Format {
    group: "podtolerationrestriction.admission.k8s.io",
    versions: &["v1alpha1"],
    kind: "Configuration",
    fields: &[("default", TOLERATIONS), ("whitelist", TOLERATIONS)],
    unknown: Unknown::PassedOver,
    scheme: Some("pkg/admission/podtolerationrestriction/config.go:32"),
};

/// Annotations of a namespace, or else the configuration, give tolerations to pods and say which they may have.
pub struct PodTolerationRestriction {
    namespaces: Collection,
    features: Features,
    defaults: Vec<Value>,
    allowed: Vec<Value>,
}

impl PodTolerationRestriction {
    pub fn new(
        objects: &Arc<Objects>,
        features: Features,
        text: Option<&[u8]>,
    ) -> Result<PodTolerationRestriction, String> {
        let document = match text.filter(|text| !text.is_empty()) {
            Some(text) => FORMAT.read(text).map_err(|why| why.to_string())?,
            None => Value::Null,
        };
        let of = |name: &str| document.get(name).and_then(Value::as_array).unwrap_or(&[]).to_vec();
        let (mut errors, root, env) = (ErrorList::default(), Path::new("podtolerationrestriction"), Env::default());
        for name in ["default", "whitelist"] {
            kubelith_pods::validate::tolerations(&env, &of(name), &root.child(name), &mut errors);
        }
        if !errors.is_empty() {
            let all: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
            return Err(format!("invalid config: [{}]", all.join(" ")));
        }
        Ok(PodTolerationRestriction {
            namespaces: objects.of("", "namespaces"),
            features,
            defaults: of("default"),
            allowed: of("whitelist"),
        })
    }

    /// What an annotation of the namespace lists; `None` if it does not have it.
    async fn annotated(&self, namespace: &str, key: &str) -> Result<Option<Vec<Value>>, Status> {
        let found = self.namespaces.find("", namespace).await.map_err(|why| Status::internal_error(why.message))?;
        let found = found.ok_or_else(|| Status::not_found(&GroupResource::new("", "namespaces"), namespace))?;
        let object = parse(&found).unwrap_or_default();
        match object.meta().annotation(key) {
            None => Ok(None),
            Some("") => Ok(Some(Vec::new())),
            Some(text) => read(text).map(Some).map_err(Status::unknown),
        }
    }

    async fn check(&self, namespace: &str, pod: &Value) -> Result<(), Status> {
        let tolerations = list(pod, &PATH);
        if tolerations.is_empty() {
            return Ok(());
        }
        let own = self.annotated(namespace, ALLOWED).await?;
        let (allowed, scope) = match &own {
            Some(own) => (own, "namespace"),
            None => (&self.allowed, "cluster"),
        };
        let covered = |toleration: &Value| allowed.iter().any(|allowed| covers(allowed, toleration));
        match allowed.is_empty() || tolerations.iter().all(covered) {
            true => Ok(()),
            false => Err(Status::unknown(format!(
                "pod tolerations (possibly merged with namespace default tolerations) conflict with its {scope} whitelist"
            ))),
        }
    }
}

impl Plugin for PodTolerationRestriction {
    fn admit<'a>(&'a self, request: Request<'a>, pod: &'a mut Value) -> Verdict<'a> {
        if !request.is_for("", "pods") {
            return Verdict::Idle;
        }
        Verdict::pending(async move {
            let namespace = request.call.namespace.as_str();
            let mut more = Vec::new();
            if request.operation == Operation::Create {
                more = self.annotated(namespace, DEFAULTS).await?.unwrap_or_else(|| self.defaults.clone());
            }
            if !super::resource_quota::is_best_effort(pod, &self.features) {
                more.push(toleration(MEMORY_PRESSURE));
            }
            if !more.is_empty() {
                let tolerations = list_mut(pod, &PATH);
                *tolerations = merge(std::mem::take(tolerations), more);
            }
            self.check(namespace, pod).await
        })
    }

    fn validate<'a>(&'a self, request: Request<'a>, pod: &'a Value) -> Verdict<'a> {
        match request.is_for("", "pods") {
            true => Verdict::pending(async move { self.check(&request.call.namespace, pod).await }),
            false => Verdict::PASSED,
        }
    }
}

/// Tolerations in an annotation, with the errors of Go's decoder, which passes over what it does not know.
fn read(text: &str) -> Result<Vec<Value>, String> {
    let list = match json::parse(text.as_bytes()).map_err(|why| why.to_string())? {
        Value::Array(list) => list,
        Value::Null => return Ok(Vec::new()),
        other => {
            return Err(format!("json: cannot unmarshal {} into Go value of type []v1.Toleration", json_kind(&other)));
        }
    };
    list.iter().map(read_one).collect()
}

fn read_one(given: &Value) -> Result<Value, String> {
    let members = match given {
        Value::Object(members) => members,
        Value::Null => return Ok(Value::object()),
        other => {
            return Err(format!("json: cannot unmarshal {} into Go value of type v1.Toleration", json_kind(other)));
        }
    };
    let mut toleration = Value::object();
    for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
        let Some((field, shape)) = TOLERATION.iter().find(|(field, _)| field.eq_ignore_ascii_case(name)) else {
            continue;
        };
        let (fits, go) = match (shape, *field) {
            (Shape::Int, _) => (value.as_i64().is_some(), "int64"),
            (_, "operator") => (value.as_str().is_some(), "v1.TolerationOperator"),
            (_, "effect") => (value.as_str().is_some(), "v1.TaintEffect"),
            _ => (value.as_str().is_some(), "string"),
        };
        if !fits {
            let kind = json_kind(value);
            return Err(format!("json: cannot unmarshal {kind} into Go struct field Toleration.{field} of type {go}"));
        }
        if value.as_str() != Some("") {
            toleration.set_at(&[field], value.clone());
        }
    }
    Ok(toleration)
}

/// Both, without those that another one covers.
pub(super) fn merge(mut all: Vec<Value>, more: Vec<Value>) -> Vec<Value> {
    all.extend(more);
    let mut merged: Vec<Value> = Vec::new();
    for (i, toleration) in all.iter().enumerate() {
        let later = || all[i + 1..].iter().any(|other| !same(other, toleration) && covers(other, toleration));
        if !merged.iter().any(|other| covers(other, toleration)) && !later() {
            merged.push(toleration.clone());
        }
    }
    merged
}

const PARTS: [&str; 4] = ["key", "operator", "value", "effect"];

fn seconds(toleration: &Value) -> Option<i64> {
    toleration.get("tolerationSeconds").and_then(Value::as_i64)
}

fn same(a: &Value, b: &Value) -> bool {
    PARTS.iter().all(|part| a.str_at(&[part]) == b.str_at(&[part])) && seconds(a) == seconds(b)
}

/// Whether `wide` tolerates all that `narrow` does.
fn covers(wide: &Value, narrow: &Value) -> bool {
    if same(wide, narrow) {
        return true;
    }
    let [key, operator, value, effect] = PARTS.map(|part| (wide.str_at(&[part]), narrow.str_at(&[part])));
    let any_key = key.0.is_empty() && operator.0 == "Exists";
    let longer = match seconds(wide).filter(|_| effect.0 == "NoExecute") {
        Some(most) => seconds(narrow).is_some_and(|seconds| seconds <= most),
        None => true,
    };
    if (key.0 != key.1 && !any_key) || (effect.0 != effect.1 && !effect.0.is_empty()) || !longer {
        return false;
    }
    match operator.0 {
        "Exists" => true,
        "" | "Equal" => operator.1 == "Equal" && value.0 == value.1,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Value> {
        super::read(text).unwrap()
    }

    #[test]
    fn annotations() {
        assert_eq!(read(r#"[{"Key":"a","odd":1,"tolerationSeconds":null},null]"#), read(r#"[{"key":"a"},{}]"#));
        assert_eq!(read("null"), Vec::<Value>::new());
        for (text, why) in [
            (r#"{"key":"a"}"#, "json: cannot unmarshal object into Go value of type []v1.Toleration"),
            ("[1]", "json: cannot unmarshal number into Go value of type v1.Toleration"),
            (r#"[{"key":1}]"#, "json: cannot unmarshal number into Go struct field Toleration.key of type string"),
            (
                r#"[{"effect":true}]"#,
                "json: cannot unmarshal bool into Go struct field Toleration.effect of type v1.TaintEffect",
            ),
            (
                r#"[{"tolerationSeconds":"1"}]"#,
                "json: cannot unmarshal string into Go struct field Toleration.tolerationSeconds of type int64",
            ),
        ] {
            assert_eq!(super::read(text).unwrap_err(), why, "{text}");
        }
    }

    #[test]
    fn wider_tolerations_cover() {
        for (wide, narrow, want) in [
            (r#"{"operator":"Exists"}"#, r#"{"key":"a","operator":"Equal","value":"b","effect":"NoSchedule"}"#, true),
            (r#"{"key":"a","operator":"Exists"}"#, r#"{"key":"b","operator":"Exists"}"#, false),
            (r#"{"key":"a","value":"v"}"#, r#"{"key":"a","operator":"Equal","value":"v"}"#, true),
            (r#"{"key":"a","value":"v"}"#, r#"{"key":"a","operator":"Exists"}"#, false),
            (r#"{"key":"a","operator":"Exists","effect":"NoSchedule"}"#, r#"{"key":"a","operator":"Exists"}"#, false),
            (
                r#"{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":5}"#,
                r#"{"key":"a","operator":"Exists","effect":"NoExecute"}"#,
                false,
            ),
            (
                r#"{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":5}"#,
                r#"{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":4}"#,
                true,
            ),
        ] {
            let [wide, narrow] = [wide, narrow].map(|text| json::parse(text.as_bytes()).unwrap());
            assert_eq!(covers(&wide, &narrow), want, "{wide:?} {narrow:?}");
        }
    }

    #[test]
    fn the_widest_stay() {
        let own = read(r#"[{"key":"a","operator":"Equal","value":"v"},{"key":"b","operator":"Exists"}]"#);
        let more = read(r#"[{"key":"a","operator":"Exists"},{"key":"b","operator":"Exists"}]"#);
        let want = read(r#"[{"key":"b","operator":"Exists"},{"key":"a","operator":"Exists"}]"#);
        assert_eq!(merge(own, more), want);
    }
}
