//! Mode `ABAC`: a file with one policy per line.

use crate::json;
use crate::traits::{Answer, Attributes, Authorizer, Decision, NonResourceRule, ResourceRule, UserRules};
use crate::user::{GROUP_AUTHENTICATED, User};
use kubelith_meta::{Str, Value};

const VERSION: &str = "abac.authorization.kubernetes.io/v1beta1";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Policy {
    user: Str,
    group: Str,
    read_only: bool,
    api_group: Str,
    resource: Str,
    namespace: Str,
    non_resource_path: Str,
}

#[derive(Debug, Default)]
pub struct AbacPolicies(Vec<Policy>);

impl AbacPolicies {
    /// Reads the file's `content`; `path` is for messages only. Lines without a version are of the oldest form.
    pub fn parse(content: &str, path: &str) -> Result<AbacPolicies, String> {
        let mut policies = Vec::new();
        for (i, line) in content.lines().enumerate() {
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with('#') {
                continue;
            }
            let policy = json::parse(line.as_bytes()).and_then(|v| Policy::read(&v));
            let wrong = |e| format!("error reading policy file {path}, line {}: {line}: {e}", i + 1);
            policies.push(policy.map_err(wrong)?);
        }
        Ok(AbacPolicies(policies))
    }
}

impl Policy {
    fn read(line: &Value) -> Result<Policy, String> {
        let (version, kind) = (line.str_at(&["apiVersion"]), line.str_at(&["kind"]));
        let mut policy = match (version, kind) {
            (VERSION, "Policy") => Policy::fields(line.get("spec").unwrap_or(&Value::Null))?,
            (VERSION, other) => return Err(format!("unrecognized object: {other}")),
            _ => Policy::fields(line)?.completed(),
        };
        if policy.user == "*" || policy.group == "*" {
            // Everybody means everybody who is somebody.
            policy.group = GROUP_AUTHENTICATED.into();
            policy.user = Str::default();
        }
        Ok(policy)
    }

    fn fields(from: &Value) -> Result<Policy, String> {
        let text = |key: &str| match from.get(key) {
            None | Some(Value::Null) => Ok(Str::default()),
            Some(Value::String(s)) => Ok(s.clone()),
            Some(_) => Err(format!("{key} must be a string")),
        };
        let read_only = match from.get("readonly") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(b)) => *b,
            Some(_) => return Err("readonly must be a boolean".into()),
        };
        Ok(Policy {
            user: text("user")?,
            group: text("group")?,
            read_only,
            api_group: text("apiGroup")?,
            resource: text("resource")?,
            namespace: text("namespace")?,
            non_resource_path: text("nonResourcePath")?,
        })
    }

    /// In the oldest form, what is left out means everything.
    fn completed(mut self) -> Policy {
        let all = || Str::from("*");
        if self.user.is_empty() && self.group.is_empty() {
            self.group = GROUP_AUTHENTICATED.into();
        }
        self.non_resource_path =
            if self.namespace.is_empty() && self.resource.is_empty() { all() } else { Str::default() };
        for field in [&mut self.namespace, &mut self.resource] {
            if field.is_empty() {
                *field = all();
            }
        }
        self.api_group = all();
        self
    }

    fn is_for(&self, user: &User) -> bool {
        let by_user = self.user.is_empty() || self.user == user.name;
        let by_group = self.group.is_empty() || user.in_group(&self.group);
        by_user && by_group && !(self.user.is_empty() && self.group.is_empty())
    }

    fn allows(&self, a: &Attributes) -> bool {
        let fits = |rule: &Str, asked: &Str| rule == "*" || rule == asked;
        let object = if a.resource_request {
            fits(&self.namespace, &a.namespace) && fits(&self.resource, &a.resource) && fits(&self.api_group, &a.group)
        } else {
            let path = &self.non_resource_path;
            path == "*" || *path == a.path || (path.ends_with('*') && a.path.starts_with(path.trim_end_matches('*')))
        };
        object && (!self.read_only || a.is_read_only()) && self.is_for(&a.user)
    }
}

impl Authorizer for AbacPolicies {
    fn authorize<'a>(&'a self, attributes: &'a Attributes) -> Answer<'a, Decision> {
        Answer::Ready(match self.0.iter().any(|p| p.allows(attributes)) {
            true => Decision::allow(""),
            false => Decision::no_opinion("No policy matched."),
        })
    }

    fn rules_for(&self, user: &User, namespace: &str) -> UserRules {
        let mut rules = UserRules::default();
        let fits = |p: &&Policy| p.is_for(user) && (p.namespace == "*" || p.namespace == namespace);
        for policy in self.0.iter().filter(fits) {
            let verbs: Vec<Str> = match policy.read_only {
                true => ["get", "list", "watch"].map(Str::from).into(),
                false => vec!["*".into()],
            };
            if !policy.resource.is_empty() {
                rules.resource_rules.push(ResourceRule {
                    verbs: verbs.clone(),
                    api_groups: vec![policy.api_group.clone()],
                    resources: vec![policy.resource.clone()],
                    resource_names: vec![],
                });
            }
            if !policy.non_resource_path.is_empty() {
                let non_resource_urls = vec![policy.non_resource_path.clone()];
                rules.non_resource_rules.push(NonResourceRule { verbs, non_resource_urls });
            }
        }
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block_on;
    use std::sync::Arc;

    const FILE: &str = r#"
# comment
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"admin","namespace":"*","resource":"*","apiGroup":"*","nonResourcePath":"*"}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"group":"dev","namespace":"a","resource":"pods","readonly":true}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"*","nonResourcePath":"/version*","readonly":true}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"namespace":"*","resource":"*"}}
{"user":"old","resource":"events"}
{"user":"older","readonly":true}
"#;

    #[test]
    fn policies() {
        let policies = AbacPolicies::parse(FILE, "f").unwrap();
        let cases = [
            ("admin", "", "delete a apps/deployments", true),
            ("admin", "", "post /anything", true),
            ("dave", "dev", "get a /pods", true),
            ("dave", "dev", "update a /pods", false),
            ("dave", "dev", "get b /pods", false),
            ("dave", "dev", "get a apps/pods", false),
            ("dave", "", "get a /pods", false),
            ("dave", "system:authenticated", "get /version", true),
            ("dave", "system:authenticated", "post /version", false),
            ("system:anonymous", "system:unauthenticated", "get /version", false),
            ("nobody", "", "get a /secrets", false),
            ("old", "", "create x apps/events", true),
            ("old", "", "get /version", false),
            ("older", "", "get /anything", true),
            ("older", "", "create x /pods", false),
        ];
        for (user, group, request, want) in cases {
            let words: Vec<&str> = request.split(' ').collect();
            let user = Arc::new(User::named(user).with_groups(&[group]));
            let mut attributes = Attributes { user, verb: words[0].into(), ..Attributes::default() };
            match words[1..] {
                [path] => attributes.path = path.into(),
                [namespace, resource] => {
                    let (group, resource) = resource.split_once('/').unwrap();
                    attributes.resource_request = true;
                    (attributes.namespace, attributes.group) = (namespace.into(), group.into());
                    attributes.resource = resource.into();
                }
                _ => panic!("{request}"),
            }
            let decision = block_on(policies.authorize(&attributes));
            assert_eq!(decision.allowed(), want, "{} {request}", attributes.user.name);
            assert_eq!(decision.reason, if want { "" } else { "No policy matched." });
        }
    }

    #[test]
    fn rules_and_errors() {
        let policies = AbacPolicies::parse(FILE, "f").unwrap();
        let rules = policies.rules_for(&User::named("dave").with_groups(&["dev"]), "a");
        assert_eq!(rules.resource_rules.len(), 1);
        assert_eq!(rules.resource_rules[0].verbs, ["get", "list", "watch"]);
        let error = AbacPolicies::parse("\n{\"user\":1}", "p.jsonl").unwrap_err();
        assert_eq!(error, "error reading policy file p.jsonl, line 2: {\"user\":1}: user must be a string");
        assert!(AbacPolicies::parse("nonsense", "p").is_err());
    }
}
