//! What a request is for: a collection, an object or a subresource, and the options.

use kubelith_meta::GroupVersionResource;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use std::fmt::Write;

/// What must be escaped in a path segment.
const SEGMENT: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'/').add(b'<').add(b'>').add(b'?');
/// What must be escaped in a query's names and values.
const QUERY: &AsciiSet = &SEGMENT.add(b'&').add(b'+').add(b'=').add(b';');

/// ```text
/// ResourceRef::new(&pods).namespace("default").name("web-0").subresource("status")
/// ```
#[derive(Debug, Clone)]
pub struct ResourceRef<'a> {
    resource: &'a GroupVersionResource,
    namespace: &'a str,
    name: &'a str,
    subresource: &'a str,
    query: String,
}

impl<'a> ResourceRef<'a> {
    /// All objects of a resource.
    pub fn new(resource: &'a GroupVersionResource) -> ResourceRef<'a> {
        ResourceRef { resource, namespace: "", name: "", subresource: "", query: String::new() }
    }

    pub fn namespace(mut self, namespace: &'a str) -> ResourceRef<'a> {
        self.namespace = namespace;
        self
    }

    pub fn name(mut self, name: &'a str) -> ResourceRef<'a> {
        self.name = name;
        self
    }

    pub fn subresource(mut self, subresource: &'a str) -> ResourceRef<'a> {
        self.subresource = subresource;
        self
    }

    /// Adds a query parameter.
    pub fn with(mut self, key: &str, value: &str) -> ResourceRef<'a> {
        let separator = if self.query.is_empty() { '?' } else { '&' };
        // Writing to a string cannot fail.
        let _ =
            write!(self.query, "{separator}{}={}", utf8_percent_encode(key, QUERY), utf8_percent_encode(value, QUERY));
        self
    }

    pub(super) fn is_collection(&self) -> bool {
        self.name.is_empty()
    }

    pub fn path(&self) -> String {
        let (group, version) = (&self.resource.group, &self.resource.version);
        let mut path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        let mut push = |part: &str| {
            if !part.is_empty() {
                let _ = write!(path, "/{}", utf8_percent_encode(part, SEGMENT));
            }
        };
        if !self.namespace.is_empty() {
            push("namespaces");
            push(self.namespace);
        }
        push(&self.resource.resource);
        push(self.name);
        push(self.subresource);
        path + &self.query
    }

    pub(super) fn watch_path(&self) -> String {
        self.clone().with("watch", "true").path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let pods = GroupVersionResource::new("", "v1", "pods");
        let deployments = GroupVersionResource::new("apps", "v1", "deployments");
        assert_eq!(ResourceRef::new(&pods).path(), "/api/v1/pods");
        let status = ResourceRef::new(&deployments).namespace("n").name("a/b").subresource("status");
        assert_eq!(status.path(), "/apis/apps/v1/namespaces/n/deployments/a%2Fb/status");
        let list = ResourceRef::new(&pods).with("labelSelector", "a=b,c").with("limit", "5");
        assert_eq!(list.watch_path(), "/api/v1/pods?labelSelector=a%3Db,c&limit=5&watch=true");
    }
}
