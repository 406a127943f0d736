//! Which flow schema a request belongs to: the first whose rules match, in order of precedence.

use crate::spec::{Distinguisher, FlowSchema};
use kubelith_meta::Str;

/// What matching looks at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Digest<'a> {
    pub user: &'a str,
    pub groups: &'a [Str],
    pub is_resource_request: bool,
    pub path: &'a str,
    pub verb: &'a str,
    pub group: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub namespace: &'a str,
}

/// A request matches if one of the subjects made it and one of the rules of its kind covers it.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub subjects: Vec<Subject>,
    pub resources: Vec<ResourceRule>,
    pub non_resources: Vec<NonResourceRule>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    Anyone,
    User(Str),
    Group(Str),
    /// Without a name: all of the namespace.
    ServiceAccount {
        namespace: Str,
        name: Option<Str>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct ResourceRule {
    pub verbs: Names,
    pub groups: Names,
    /// `pods`, `pods/status`.
    pub resources: Names,
    /// Covers requests that name no namespace.
    pub cluster_scope: bool,
    pub namespaces: Names,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NonResourceRule {
    pub verbs: Names,
    pub paths: Vec<Str>,
}

/// The star counts only alone; validation allows nothing else.
#[derive(Debug, Clone, PartialEq)]
pub enum Names {
    All,
    Some(Vec<Str>),
}

impl Names {
    pub fn of(names: Vec<Str>) -> Names {
        if matches!(names.as_slice(), [only] if only == "*") { Names::All } else { Names::Some(names) }
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Names::All => true,
            Names::Some(names) => names.iter().any(|n| n == name),
        }
    }

    /// `resource` or `resource/subresource`, without joining them.
    fn has_resource(&self, resource: &str, subresource: &str) -> bool {
        let Names::Some(names) = self else { return true };
        if subresource.is_empty() {
            return names.iter().any(|n| n == resource);
        }
        names.iter().any(|n| {
            let rest = n.strip_prefix(resource).and_then(|rest| rest.strip_prefix('/'));
            rest == Some(subresource)
        })
    }
}

impl FlowSchema {
    pub fn matches(&self, request: &Digest<'_>) -> bool {
        self.rules.iter().any(|rule| rule.matches(request))
    }

    /// What the request's flow is called, within the schema.
    pub fn flow<'a>(&self, request: &Digest<'a>) -> &'a str {
        match self.distinguisher {
            Some(Distinguisher::User) => request.user,
            Some(Distinguisher::Namespace) => request.namespace,
            None => "",
        }
    }
}

/// By precedence, then by name.
pub fn sort(schemas: &mut [FlowSchema]) {
    schemas.sort_by(|a, b| (a.precedence, &a.name).cmp(&(b.precedence, &b.name)));
}

impl Rule {
    fn matches(&self, request: &Digest<'_>) -> bool {
        let by_subject = self.subjects.iter().any(|subject| subject.made(request));
        if request.is_resource_request {
            by_subject && self.resources.iter().any(|rule| rule.covers(request))
        } else {
            by_subject && self.non_resources.iter().any(|rule| rule.covers(request))
        }
    }
}

impl Subject {
    fn made(&self, request: &Digest<'_>) -> bool {
        match self {
            Subject::Anyone => true,
            Subject::User(name) => request.user == name,
            Subject::Group(name) => request.groups.iter().any(|group| group == name),
            Subject::ServiceAccount { namespace, name } => is_service_account(request.user, namespace, name.as_deref()),
        }
    }
}

/// Whether the user is this account, or, without a name, one of the namespace.
pub(crate) fn is_service_account(user: &str, namespace: &str, name: Option<&str>) -> bool {
    let account = user
        .strip_prefix("system:serviceaccount:")
        .and_then(|rest| rest.strip_prefix(namespace))
        .and_then(|rest| rest.strip_prefix(':'));
    account.is_some_and(|account| name.is_none_or(|name| account == name))
}

impl ResourceRule {
    fn covers(&self, request: &Digest<'_>) -> bool {
        let place =
            if request.namespace.is_empty() { self.cluster_scope } else { self.namespaces.has(request.namespace) };
        place
            && self.verbs.has(request.verb)
            && self.groups.has(request.group)
            && self.resources.has_resource(request.resource, request.subresource)
    }
}

impl NonResourceRule {
    fn covers(&self, request: &Digest<'_>) -> bool {
        self.verbs.has(request.verb) && self.paths.iter().any(|path| covers_path(path, request.path))
    }
}

/// A path covers itself and, with or without a star, all below it.
fn covers_path(rule: &str, path: &str) -> bool {
    if rule == "*" || rule == path {
        return true;
    }
    let root = rule.strip_suffix('*').unwrap_or(rule);
    let root = root.strip_suffix('/').unwrap_or(root);
    path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
#[path = "matching_tests.rs"]
mod tests;
