//! The authorizers that look at next to nothing.

use crate::error::AuthError;
use crate::traits::{Answer, Attributes, Authorizer, Decision, NonResourceRule, ResourceRule, UserRules};
use crate::user::{GROUP_MASTERS, User};
use kubelith_meta::text::quote;
use std::collections::HashSet;

/// Mode `AlwaysAllow`.
pub struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn authorize<'a>(&'a self, _: &'a Attributes) -> Answer<'a, Decision> {
        Answer::Ready(Decision::allow(""))
    }

    fn rules_for(&self, _: &User, _: &str) -> UserRules {
        let all = || vec!["*".into()];
        let rule = ResourceRule { verbs: all(), api_groups: all(), resources: all(), resource_names: vec![] };
        let urls = NonResourceRule { verbs: all(), non_resource_urls: all() };
        UserRules { resource_rules: vec![rule], non_resource_rules: vec![urls], ..UserRules::default() }
    }
}

/// Mode `AlwaysDeny`. It has no opinion, so that members of system:masters still get in.
pub struct AlwaysDeny;

impl Authorizer for AlwaysDeny {
    fn authorize<'a>(&'a self, _: &'a Attributes) -> Answer<'a, Decision> {
        Answer::Ready(Decision::no_opinion("Everything is forbidden."))
    }

    fn rules_for(&self, _: &User, _: &str) -> UserRules {
        UserRules::default()
    }
}

/// Lets members of system:masters do everything, whatever the other authorizers say; asked first.
pub struct PrivilegedGroup;

impl Authorizer for PrivilegedGroup {
    fn authorize<'a>(&'a self, attributes: &'a Attributes) -> Answer<'a, Decision> {
        Answer::Ready(match attributes.user.in_group(GROUP_MASTERS) {
            true => Decision::allow(""),
            false => Decision::no_opinion(""),
        })
    }

    /// Not listed: what a group may do whatever the policy says is not part of the policy.
    fn rules_for(&self, _: &User, _: &str) -> UserRules {
        UserRules::default()
    }
}

/// Paths that everybody may read, for `--authorization-always-allow-paths`.
pub struct AllowedPaths {
    exact: HashSet<String>,
    prefixes: Vec<String>,
}

impl AllowedPaths {
    /// A trailing `*` makes a path a prefix; it may stand nowhere else.
    pub fn new<S: AsRef<str>>(paths: &[S]) -> Result<AllowedPaths, AuthError> {
        let mut allowed = AllowedPaths { exact: HashSet::new(), prefixes: Vec::new() };
        for path in paths {
            let path = path.as_ref();
            let path = path.strip_prefix('/').unwrap_or(path);
            match path.find('*') {
                None => drop(allowed.exact.insert(path.to_string())),
                Some(i) if i + 1 == path.len() => allowed.prefixes.push(path[..i].to_string()),
                Some(_) => return Err(AuthError::new(format!("only trailing * allowed in {}", quote(path)))),
            }
        }
        Ok(allowed)
    }
}

impl Authorizer for AllowedPaths {
    fn authorize<'a>(&'a self, attributes: &'a Attributes) -> Answer<'a, Decision> {
        let path = attributes.path.strip_prefix('/').unwrap_or(&attributes.path);
        let open = !attributes.resource_request
            && (self.exact.contains(path) || self.prefixes.iter().any(|p| path.starts_with(p.as_str())));
        Answer::Ready(if open { Decision::allow("") } else { Decision::no_opinion("") })
    }

    fn rules_for(&self, _: &User, _: &str) -> UserRules {
        UserRules::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block_on;

    #[test]
    fn allowed_paths() {
        let allowed = AllowedPaths::new(&["/healthz", "/livez/*", "/"]).unwrap();
        let cases = [
            ("/healthz", false, true),
            ("/healthz/", false, false),
            ("/livez/ping", false, true),
            ("/livez", false, false),
            ("/", false, true),
            ("/healthz", true, false),
        ];
        for (path, resource_request, want) in cases {
            let attributes = Attributes { path: path.into(), resource_request, ..Attributes::default() };
            assert_eq!(block_on(allowed.authorize(&attributes)).allowed(), want, "{path}");
        }
        assert!(AllowedPaths::new(&["/a*b"]).is_err());
    }
}
