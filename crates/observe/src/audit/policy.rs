//! Which requests are kept, and how much of them: rules, of which the first that fits decides.

use super::event::Stage;
use kubelith_auth::User;
use kubelith_http::RequestInfo;
use kubelith_http::audit::Level;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::is_dns1123_subdomain;
use kubelith_meta::{Str, Value};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Policy {
    rules: Vec<Rule>,
    omit_stages: Stages,
    omit_managed_fields: bool,
}

/// What is kept of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestAudit {
    pub level: Level,
    pub omit_stages: Stages,
    pub omit_managed_fields: bool,
}

/// A set of stages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stages(u8);

impl Stages {
    pub fn contains(self, stage: Stage) -> bool {
        self.0 & (1 << stage as u8) != 0
    }

    fn with(self, stage: Stage) -> Stages {
        Stages(self.0 | 1 << stage as u8)
    }

    fn union(self, other: Stages) -> Stages {
        Stages(self.0 | other.0)
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Rule {
    level: Level,
    users: Vec<Str>,
    groups: Vec<Str>,
    verbs: Vec<Str>,
    resources: Vec<GroupResources>,
    namespaces: Vec<Str>,
    non_resource_urls: Vec<Str>,
    omit_stages: Stages,
    omit_managed_fields: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct GroupResources {
    group: Str,
    resources: Vec<Str>,
    names: Vec<Str>,
}

impl Policy {
    /// Reads and checks a policy file's content.
    pub fn parse(content: &[u8]) -> Result<Policy, String> {
        let value = kubelith_codec::yaml::read(content).map_err(|e| format!("failed decoding: {e}"))?.value;
        let (version, kind) = (value.str_at(&["apiVersion"]), value.str_at(&["kind"]));
        if version != "audit.k8s.io/v1" || kind != "Policy" {
            return Err(format!("unknown group version field {version}, Kind={kind} in policy"));
        }
        let mut errors = ErrorList::new();
        let omit_stages = stages(&value, &Path::new("omitStages"), &mut errors);
        let omit_managed_fields = value.get("omitManagedFields").and_then(Value::as_bool).unwrap_or(false);
        let root = Path::new("rules");
        let listed = value.get("rules").and_then(Value::as_array).unwrap_or_default();
        let mut rules = Vec::with_capacity(listed.len());
        for (i, rule) in listed.iter().enumerate() {
            let mut rule = Rule::read(rule, omit_managed_fields, &root.index(i), &mut errors);
            rule.omit_stages = rule.omit_stages.union(omit_stages);
            rules.push(rule);
        }
        errors.into_result().map_err(|e| e.to_string())?;
        if rules.is_empty() {
            return Err("loaded illegal policy with 0 rules".into());
        }
        Ok(Policy { rules, omit_stages, omit_managed_fields })
    }

    /// What is kept of a request.
    pub fn evaluate(&self, user: &User, request: &RequestInfo) -> RequestAudit {
        match self.rules.iter().find(|r| r.fits(user, request)) {
            Some(rule) => RequestAudit {
                level: rule.level,
                omit_stages: rule.omit_stages,
                omit_managed_fields: rule.omit_managed_fields,
            },
            None => RequestAudit {
                level: Level::None,
                omit_stages: self.omit_stages,
                omit_managed_fields: self.omit_managed_fields,
            },
        }
    }
}

impl Rule {
    fn read(value: &Value, omit_managed_fields: bool, path: &Path<'_>, errors: &mut ErrorList) -> Rule {
        let level = match value.str_at(&["level"]) {
            "" => {
                errors.push(Error::required(&path.child("level"), ""));
                Level::None
            }
            name => Level::ALL.into_iter().find(|l| l.name() == name).unwrap_or_else(|| {
                errors.push(Error::not_supported(&path.child("level"), name, Level::ALL.map(Level::name)));
                Level::None
            }),
        };
        let texts = |key: &str| strings(value, key);
        let resources = value.get("resources").and_then(Value::as_array).unwrap_or_default();
        let rule = Rule {
            level,
            users: texts("users"),
            groups: texts("userGroups"),
            verbs: texts("verbs"),
            resources: resources.iter().map(GroupResources::read).collect(),
            namespaces: texts("namespaces"),
            non_resource_urls: texts("nonResourceURLs"),
            omit_stages: Stages::default(),
            omit_managed_fields: value.get("omitManagedFields").and_then(Value::as_bool).unwrap_or(omit_managed_fields),
        };
        rule.check(path, errors);
        let omit_stages = stages(value, &path.child("omitStages"), errors);
        rule.check_kinds(path, errors);
        Rule { omit_stages, ..rule }
    }

    fn check(&self, path: &Path<'_>, errors: &mut ErrorList) {
        for (i, url) in self.non_resource_urls.iter().enumerate().filter(|(_, u)| *u != "*") {
            let at = path.item("nonResourceURLs", i);
            if !url.starts_with('/') {
                let detail = "non-resource URL rules must begin with a '/' character";
                errors.push(Error::invalid(&at, url.as_str(), detail));
            }
            if url.char_indices().any(|(at, c)| c == '*' && at + 1 < url.len()) {
                let detail = "non-resource URL wildcards '*' must be the final character of the rule";
                errors.push(Error::invalid(&at, url.as_str(), detail));
            }
        }
        let at = path.child("resources");
        for resource in &self.resources {
            let wrong = is_dns1123_subdomain(&resource.group);
            if !matches!(resource.group.as_str(), "" | "*") && !wrong.is_empty() {
                errors.push(Error::invalid(&at.child("group"), resource.group.as_str(), wrong.join(",")));
            }
            if !resource.names.is_empty() && resource.resources.is_empty() {
                let detail = "using resourceNames requires at least one resource";
                errors.push(Error::invalid(&at.child("resourceNames"), list(&resource.names), detail));
            }
        }
    }

    fn check_kinds(&self, path: &Path<'_>, errors: &mut ErrorList) {
        if !self.non_resource_urls.is_empty() && (!self.resources.is_empty() || !self.namespaces.is_empty()) {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(Error::invalid(&path.child("nonResourceURLs"), list(&self.non_resource_urls), detail));
        }
    }

    fn fits(&self, user: &User, request: &RequestInfo) -> bool {
        let among = |list: &[Str], wanted: &str| list.iter().any(|v| v == wanted);
        if !self.users.is_empty() && !among(&self.users, &user.name) {
            return false;
        }
        if !self.groups.is_empty() && !user.groups.iter().any(|g| among(&self.groups, g)) {
            return false;
        }
        if !self.verbs.is_empty() && !among(&self.verbs, &request.verb) {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return request.is_resource_request
                && (self.namespaces.is_empty() || among(&self.namespaces, &request.namespace))
                && (self.resources.is_empty() || self.resources.iter().any(|r| r.fits(request)));
        }
        if !self.non_resource_urls.is_empty() {
            return !request.is_resource_request
                && self.non_resource_urls.iter().any(|spec| fits_path(spec, &request.path));
        }
        true
    }
}

impl GroupResources {
    fn read(value: &Value) -> GroupResources {
        GroupResources {
            group: value.str_at(&["group"]).into(),
            resources: strings(value, "resources"),
            names: strings(value, "resourceNames"),
        }
    }

    fn fits(&self, request: &RequestInfo) -> bool {
        if self.group != request.group && self.group != "*" {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        if !self.names.is_empty() && !self.names.contains(&request.name) {
            return false;
        }
        let (resource, subresource) = (request.resource.as_str(), request.subresource.as_str());
        self.resources.iter().any(|wanted| match wanted.split_once('/') {
            None => wanted == "*" || (wanted == resource && subresource.is_empty()),
            Some(("*", sub)) if !subresource.is_empty() && sub == subresource => true,
            Some((main, "*")) if main == resource => true,
            Some((main, sub)) => main == resource && sub == subresource,
        })
    }
}

fn fits_path(spec: &str, path: &str) -> bool {
    spec == "*" || spec == path || (spec.ends_with('*') && path.starts_with(spec.trim_end_matches('*')))
}

fn strings(value: &Value, key: &str) -> Vec<Str> {
    let list = value.get(key).and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(Str::from).collect()
}

fn list(values: &[Str]) -> BadValue {
    BadValue::text(kubelith_codec::json::to_string(&Value::from(values.to_vec())))
}

fn stages(value: &Value, path: &Path<'_>, errors: &mut ErrorList) -> Stages {
    let mut set = Stages::default();
    for (i, name) in strings(value, "omitStages").iter().enumerate() {
        match Stage::ALL.into_iter().find(|s| s.name() == name.as_str()) {
            Some(stage) => set = set.with(stage),
            None => {
                let detail = format!("allowed stages are {}", Stage::ALL.map(Stage::name).join(","));
                errors.push(Error::invalid(&path.index(i), name.as_str(), detail));
            }
        }
    }
    set
}
