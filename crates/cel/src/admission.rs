//! The variables and types of admission: policies, mutations, match conditions of webhooks.

use crate::declared::{Declared, Field, ListKind, MemberKind, Object};
use crate::env::Env;
use crate::libraries::{AUTHORIZER, RESOURCE_CHECK};
use crate::types::Type;
use std::sync::Arc;

/// What a policy's expressions can see beside the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sees {
    pub params: bool,
    pub authorizer: bool,
}

/// The environment of a policy's expressions.
pub fn env(base: &Env, sees: Sees) -> Env {
    let (request, namespace) = (request(), namespace());
    let mut env = base
        .clone()
        .variable("object", Type::Dyn)
        .variable("oldObject", Type::Dyn)
        .declare("namespaceObject", namespace.clone())
        .declare("request", request.clone())
        .types(vec![namespace, request]);
    if sees.params {
        env = env.variable("params", Type::Dyn);
    }
    if sees.authorizer {
        env = env
            .variable("authorizer", Type::Named(AUTHORIZER))
            .variable("authorizer.requestResource", Type::Named(RESOURCE_CHECK));
    }
    env
}

fn object(name: &str, fields: Vec<(&str, Declared)>) -> Declared {
    let fields = sorted(fields.into_iter().map(|(name, declared)| field(name, declared)));
    Declared::object(
        Arc::new(Object { name: name.into(), fields, open: false, preserve_unknown: false, hidden: Vec::new() }),
        2,
    )
}

fn field(name: &str, declared: Declared) -> Field {
    Field { name: name.into(), property: name.into(), declared, required: false }
}

fn sorted(fields: impl Iterator<Item = Field>) -> Vec<Field> {
    let mut fields: Vec<Field> = fields.collect();
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    fields
}

fn scalar(cel: Type, kind: MemberKind) -> Declared {
    Declared { cel, kind, nullable: true, min_size: 1, max_elements: 0 }
}

fn string() -> Declared {
    scalar(Type::String, MemberKind::String)
}

fn time() -> Declared {
    scalar(Type::Timestamp, MemberKind::DateTime)
}

fn strings() -> Declared {
    Declared::list(string(), ListKind::Atomic, u64::MAX)
}

fn string_map() -> Declared {
    Declared::map(string(), u64::MAX)
}

/// `request`.
pub fn request() -> Declared {
    let kind = || {
        let fields = vec![("group", string()), ("version", string()), ("kind", string())];
        object("kubernetes.GroupVersionKind", fields)
    };
    let resource = || {
        let fields = vec![("group", string()), ("version", string()), ("resource", string())];
        object("kubernetes.GroupVersionResource", fields)
    };
    let user = object(
        "kubernetes.UserInfo",
        vec![
            ("username", string()),
            ("uid", string()),
            ("groups", strings()),
            ("extra", Declared::map(strings(), u64::MAX)),
        ],
    );
    object(
        "kubernetes.AdmissionRequest",
        vec![
            ("kind", kind()),
            ("resource", resource()),
            ("subResource", string()),
            ("requestKind", kind()),
            ("requestResource", resource()),
            ("requestSubResource", string()),
            ("name", string()),
            ("namespace", string()),
            ("operation", string()),
            ("userInfo", user),
            ("dryRun", scalar(Type::Bool, MemberKind::Bool)),
            // Plain JSON, of which any member can be asked for.
            ("options", Declared::escaped(Type::Dyn)),
        ],
    )
}

/// `namespaceObject`: without what the reference leaves out.
pub fn namespace() -> Declared {
    let condition = object(
        "kubernetes.NamespaceCondition",
        vec![
            ("status", string()),
            ("type", string()),
            ("lastTransitionTime", time()),
            ("message", string()),
            ("reason", string()),
        ],
    );
    let conditions = Declared::list(condition, ListKind::Atomic, u64::MAX);
    let int = || scalar(Type::Int, MemberKind::Int);
    let metadata = object(
        "kubernetes.NamespaceMetadata",
        vec![
            ("name", string()),
            ("generateName", string()),
            ("namespace", string()),
            ("labels", string_map()),
            ("annotations", string_map()),
            ("UID", string()),
            ("creationTimestamp", time()),
            ("deletionGracePeriodSeconds", int()),
            ("deletionTimestamp", time()),
            ("generation", int()),
            ("resourceVersion", string()),
            ("finalizers", strings()),
        ],
    );
    object(
        "kubernetes.Namespace",
        vec![
            ("metadata", metadata),
            ("spec", object("kubernetes.NamespaceSpec", vec![("finalizers", strings())])),
            ("status", object("kubernetes.NamespaceStatus", vec![("conditions", conditions), ("phase", string())])),
        ],
    )
}

/// The type `JSONPatch`.
pub fn json_patch() -> Arc<Object> {
    let fields = vec![("op", string()), ("path", string()), ("from", string()), ("value", Declared::dynamic())];
    let fields = fields.into_iter().map(|(name, declared)| field(name, declared));
    // Other fields pass the check, and fail when they are read.
    Arc::new(Object {
        name: "JSONPatch".into(),
        fields: sorted(fields),
        open: true,
        preserve_unknown: false,
        hidden: Vec::new(),
    })
}

/// `Object`, `Object.spec`, …: the path of the field is the name of its type; what is in it is not known.
pub fn apply_object(name: &str) -> Arc<Object> {
    Arc::new(Object { name: name.into(), fields: Vec::new(), open: true, preserve_unknown: true, hidden: Vec::new() })
}
