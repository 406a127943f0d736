//! The wording of a 403: the only place that says who cannot do what.

use crate::traits::Attributes;
use kubelith_meta::text::quote;
use kubelith_meta::{GroupResource, Status};

/// `User "x" cannot list resource "pods" in API group "" in the namespace "y"`, and after it `: reason`
/// if there is one. The reason goes out as it is; what comes from the request has `&`, `<` and `>`
/// escaped so that a browser never renders it.
pub fn forbidden_detail(attributes: &Attributes, reason: &str) -> String {
    let mut message = sanitize(&describe(attributes));
    if !reason.is_empty() {
        message.push_str(": ");
        message.push_str(reason);
    }
    message
}

/// The answer to a request that is not allowed.
pub fn forbidden_status(attributes: &Attributes, reason: &str) -> Status {
    let resource = GroupResource::new(attributes.group.clone(), attributes.resource.clone());
    Status::forbidden(&resource, &attributes.name, forbidden_detail(attributes, reason))
}

fn describe(a: &Attributes) -> String {
    let user = quote(&a.user.name);
    let verb = &a.verb;
    if !a.resource_request {
        return format!("User {user} cannot {verb} path {}", quote(&a.path));
    }
    let resource = quote(&a.combined_resource());
    let group = quote(&a.group);
    if a.namespace.is_empty() {
        format!("User {user} cannot {verb} resource {resource} in API group {group} at the cluster scope")
    } else {
        let namespace = quote(&a.namespace);
        format!("User {user} cannot {verb} resource {resource} in API group {group} in the namespace {namespace}")
    }
}

fn sanitize(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    for c in s.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::User;
    use std::sync::Arc;

    fn attributes(change: impl FnOnce(&mut Attributes)) -> Attributes {
        let mut a = Attributes {
            user: Arc::new(User { name: "x".into(), ..User::default() }),
            verb: "list".into(),
            resource: "pods".into(),
            version: "v1".into(),
            resource_request: true,
            ..Attributes::default()
        };
        change(&mut a);
        a
    }

    #[test]
    fn wording() {
        let cases = [
            (
                attributes(|a| a.namespace = "y".into()),
                "",
                r#"pods is forbidden: User "x" cannot list resource "pods" in API group "" in the namespace "y""#,
            ),
            (
                attributes(|a| (a.group, a.name, a.subresource) = ("apps".into(), "n".into(), "log".into())),
                "RBAC: no",
                r#"pods.apps "n" is forbidden: User "x" cannot list resource "pods/log" in API group "apps" at the cluster scope: RBAC: no"#,
            ),
            (
                attributes(|a| {
                    (a.resource_request, a.verb, a.path) = (false, "get".into(), "/<b>&".into());
                    a.resource = "".into();
                }),
                "<why>",
                r#"forbidden: User "x" cannot get path "/&lt;b&gt;&amp;": <why>"#,
            ),
        ];
        for (a, reason, want) in cases {
            assert_eq!(forbidden_status(&a, reason).message, want);
        }
    }
}
