//! Selectors of webhooks and policies: by the labels of a request's namespace, and of its object.

use crate::attributes::{is_namespace, labels, namespace_of};
use kubelith_meta::selector::LabelSelector;
use kubelith_meta::{GroupResource, Map, Status, Value};
use kubelith_registry::admission::{Operation, Request};
use kubelith_registry::objects::Collection;

pub struct Selectors {
    namespace: Result<LabelSelector, String>,
    object: Result<LabelSelector, String>,
}

impl Selectors {
    /// `namespaceSelector` and `objectSelector`. Without one there is nothing to select by.
    pub fn read(of: &Value) -> Selectors {
        let selector = |key: &str| match of.get(key).filter(|s| !s.is_null()) {
            None => Ok(LabelSelector::new(Vec::new())),
            object => LabelSelector::from_object(object).map_err(|e| e.to_string()),
        };
        Selectors { namespace: selector("namespaceSelector"), object: selector("objectSelector") }
    }

    /// Whether both select the request. What is wrong with one counts only if the other does not say no.
    pub async fn select(&self, namespaces: &Collection, request: Request<'_>, object: &Value) -> Result<bool, Status> {
        let in_namespace = self.select_namespace(namespaces, request, object).await;
        if matches!(in_namespace, Ok(false)) {
            return Ok(false);
        }
        let selected = self.select_object(request, object);
        if matches!(selected, Ok(false)) {
            return Ok(false);
        }
        in_namespace?;
        selected
    }

    async fn select_namespace(
        &self,
        namespaces: &Collection,
        request: Request<'_>,
        object: &Value,
    ) -> Result<bool, Status> {
        let namespace = namespace_of(request);
        // What is in no namespace is not exempted by its labels.
        if namespace.is_empty() && !is_namespace(request) {
            return Ok(true);
        }
        let selector = self.namespace.as_ref().map_err(Status::internal_error)?;
        if selector.is_everything() {
            return Ok(true);
        }
        let is_written = matches!(request.operation, Operation::Create | Operation::Update);
        if is_namespace(request) && request.call.subresource.is_empty() && is_written {
            return Ok(selects(selector, labels(object)));
        }
        let found = namespaces.find("", namespace).await.map_err(|s| Status::internal_error(s.message))?;
        match found {
            Some(found) => Ok(selector.matches(&found.labels[..])),
            None => Err(Status::not_found(&GroupResource::new("", "namespaces"), namespace)),
        }
    }

    /// By the labels that the object has, or those that it had.
    fn select_object(&self, request: Request<'_>, object: &Value) -> Result<bool, Status> {
        let selector = self.object.as_ref().map_err(Status::internal_error)?;
        if selector.is_everything() {
            return Ok(true);
        }
        let by = |object: &Value| object.get("metadata").is_some() && selects(selector, labels(object));
        Ok(by(object) || request.old.is_some_and(by))
    }
}

fn selects(selector: &LabelSelector, labels: Option<&Map>) -> bool {
    match labels {
        Some(labels) => selector.matches(labels),
        None => selector.matches(&Map::new()),
    }
}
