//! What bindings hand to the expressions of a policy: objects of any kind, by name or by labels.

use super::policy::{Binding, Policy};
use crate::attributes::{is_namespace, namespace_of};
use crate::config::FindCustom;
use crate::expression::Namespace;
use kubelith_meta::selector::LabelSelector;
use kubelith_meta::{GroupResource, GroupVersionKind, GroupVersionResource, Status, Str, Value};
use kubelith_registry::admission::Request;
use kubelith_registry::objects::{Collection, parse};
use kubelith_registry::{Objects, Resource};
use kubelith_schema::Scope;
use std::sync::Arc;

/// The namespace of a request, unless that is about a namespace itself.
pub async fn namespace(namespaces: &Collection, request: Request<'_>) -> Result<Option<Namespace>, Status> {
    let name = namespace_of(request);
    if name.is_empty() || is_namespace(request) {
        return Ok(None);
    }
    match namespaces.find("", name).await? {
        Some(found) => Ok(Some(Namespace::new(found))),
        None => Err(Status::not_found(&GroupResource::new("", "namespaces"), name)),
    }
}

pub struct Params {
    pub objects: Arc<Objects>,
    pub custom: FindCustom,
}

/// A kind that is served.
pub enum Source {
    BuiltIn(Arc<Resource>, GroupVersionKind),
    Custom(GroupVersionResource, Scope),
}

impl Source {
    fn is_namespaced(&self) -> bool {
        match self {
            Source::BuiltIn(resource, _) => resource.namespaced(),
            Source::Custom(_, scope) => *scope == Scope::Namespaced,
        }
    }
}

impl Params {
    /// Where objects of the policy's kind are. The error is about the policy.
    pub fn source(&self, kind: &GroupVersionKind) -> Result<Source, String> {
        let built_in = kubelith_catalog::builtin().descriptor_of_kind(&kind.group, &kind.kind);
        let built_in = built_in.and_then(|d| self.objects.resource(&d.group, &d.plural));
        if let Some(resource) = built_in.filter(|r| r.served.contains(&kind.version)) {
            return Ok(Source::BuiltIn(resource, kind.clone()));
        }
        let definitions = self.objects.list("apiextensions.k8s.io", "customresourcedefinitions", "");
        let defines = |definition: &&Value| {
            let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or(&[]);
            let is_served = |v: &Value| v.get("served").and_then(Value::as_bool) == Some(true);
            definition.str_at(&["spec", "group"]) == kind.group
                && definition.str_at(&["status", "acceptedNames", "kind"]) == kind.kind
                && versions.iter().any(|v| v.str_at(&["name"]) == kind.version && is_served(v))
        };
        let Some(definition) = definitions.iter().find(defines) else {
            return Err(format!("failed to find resource referenced by paramKind: '{kind}'"));
        };
        let plural = definition.str_at(&["spec", "names", "plural"]);
        let scope = match definition.str_at(&["spec", "scope"]) {
            "Namespaced" => Scope::Namespaced,
            _ => Scope::Cluster,
        };
        Ok(Source::Custom(GroupVersionResource::new(kind.group.clone(), kind.version.clone(), plural), scope))
    }

    /// The parameters by which a policy is to be run for a binding: `None` stands for a run without.
    pub async fn collect(
        &self,
        policy: &Policy,
        binding: &Binding,
        source: Option<&Source>,
        request: Request<'_>,
    ) -> Result<Vec<Option<Value>>, String> {
        let (Some(_), Some(wanted), Some(source)) = (&policy.param_kind, &binding.param_ref, source) else {
            return Ok(vec![None]);
        };
        let given = wanted.str_at(&["namespace"]);
        let namespace = match (source.is_namespaced(), given) {
            (true, "") if namespace_of(request).is_empty() => {
                return Err(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources".into()
                );
            }
            (true, "") => namespace_of(request),
            (true, given) => given,
            (false, "") => "",
            (false, _) => {
                return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".into());
            }
        };
        let name = Some(wanted.str_at(&["name"])).filter(|name| !name.is_empty());
        let selector = wanted.get("selector").filter(|s| !s.is_null());
        let found = match (name, selector) {
            (Some(_), Some(_)) => return Err("paramRef.name and paramRef.selector are mutually exclusive".into()),
            (None, None) => return Err("one of name or selector must be provided".into()),
            (name, selector) => self.find(source, namespace, name, selector).await?,
        };
        if found.is_empty() && wanted.str_at(&["parameterNotFoundAction"]) == "Deny" {
            return Err("no params found for policy binding with `Deny` parameterNotFoundAction".into());
        }
        Ok(found.into_iter().map(Some).collect())
    }

    async fn find(
        &self,
        source: &Source,
        namespace: &str,
        name: Option<&str>,
        selector: Option<&Value>,
    ) -> Result<Vec<Value>, String> {
        let selector = match selector {
            Some(_) => LabelSelector::from_object(selector).map_err(|e| e.to_string())?,
            None => LabelSelector::new(Vec::new()),
        };
        let selects = |object: &Value| match object.at(&["metadata", "labels"]).and_then(Value::as_object) {
            Some(labels) => selector.matches(labels),
            None => selector.matches(&kubelith_meta::Map::new()),
        };
        match source {
            Source::Custom(resource, _) => {
                let found = (self.custom)(resource.clone(), namespace.into(), name.map(Str::from)).await;
                Ok(found.map_err(|status| status.message)?.into_iter().filter(selects).collect())
            }
            Source::BuiltIn(resource, kind) => {
                let (group, plural) = (&resource.descriptor.group, &resource.descriptor.plural);
                let found = match name {
                    Some(name) => {
                        let found = self.objects.find(group, plural, namespace, name).await;
                        found.map_err(|status| status.message)?.as_deref().and_then(parse).into_iter().collect()
                    }
                    None => self.objects.list(group, plural, namespace),
                };
                let mut objects = Vec::new();
                for object in found.into_iter().filter(selects) {
                    objects.push(resource.convert(object, kind).await.map_err(|status| status.message)?);
                }
                Ok(objects)
            }
        }
    }
}
