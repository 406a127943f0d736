//! What a document says, before it is written in one of the dialects: paths with their operations.

use kubelith_meta::{GroupVersionKind, Str};
use std::collections::{BTreeMap, BTreeSet};

/// Paths in their order in a document.
pub type Paths = BTreeMap<String, PathItem>;

/// One path and what can be done there.
#[derive(Debug, Clone, Default)]
pub struct PathItem {
    pub operations: BTreeMap<Method, Operation>,
    /// Those that every operation takes; `gather` moves them here.
    pub parameters: BTreeSet<Parameter>,
}

/// In the order in which a path item lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    Get,
    Put,
    Post,
    Delete,
    Options,
    Head,
    Patch,
}

#[derive(Debug, Clone, Default)]
pub struct Operation {
    pub id: String,
    pub tag: String,
    pub description: String,
    pub consumes: Vec<&'static str>,
    pub produces: Vec<&'static str>,
    /// Sorted by name.
    pub parameters: BTreeSet<Parameter>,
    pub body: Option<Body>,
    pub responses: Vec<Answer>,
    /// `x-kubernetes-action` and the kind it acts on. Documents that are no resources have none.
    pub action: Option<(&'static str, GroupVersionKind)>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parameter {
    pub name: Str,
    pub place: Place,
    pub kind: &'static str,
    pub description: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Path,
    Query,
}

#[derive(Debug, Clone)]
pub struct Body {
    pub content: Content,
    pub required: bool,
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub code: u16,
    pub description: &'static str,
    pub content: Option<Content>,
}

/// What is sent or answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    Text,
    /// A type by its OpenAPI name.
    Model(Str),
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "get",
            Method::Put => "put",
            Method::Post => "post",
            Method::Delete => "delete",
            Method::Options => "options",
            Method::Head => "head",
            Method::Patch => "patch",
        }
    }
}

impl Place {
    pub fn name(self) -> &'static str {
        match self {
            Place::Path => "path",
            Place::Query => "query",
        }
    }
}

impl Operation {
    /// Adds an answer with the content of the others.
    pub fn answers(mut self, code: u16, description: &'static str, content: Content) -> Operation {
        self.responses.push(Answer { code, description, content: Some(content) });
        self
    }
}

impl PathItem {
    /// Parameters that every operation takes are said once for the path.
    pub fn gather(&mut self) {
        let Some(first) = self.operations.values().next() else { return };
        let everywhere = |p: &Parameter| {
            self.operations.values().all(|o| o.parameters.iter().any(|q| q.name == p.name && q.place == p.place))
        };
        let common: BTreeSet<Parameter> = first.parameters.iter().filter(|p| everywhere(p)).cloned().collect();
        let is_common = |p: &Parameter| common.iter().any(|c| c.name == p.name && c.place == p.place);
        for operation in self.operations.values_mut() {
            operation.parameters.retain(|p| !is_common(p));
        }
        self.parameters.extend(common);
    }
}

/// The types that the paths name.
pub fn models(paths: &Paths) -> BTreeSet<Str> {
    let contents = paths.values().flat_map(|p| p.operations.values()).flat_map(|o| {
        let body = o.body.as_ref().map(|b| &b.content);
        body.into_iter().chain(o.responses.iter().filter_map(|r| r.content.as_ref()))
    });
    contents
        .filter_map(|content| match content {
            Content::Model(name) => Some(name.clone()),
            Content::Text => None,
        })
        .collect()
}
