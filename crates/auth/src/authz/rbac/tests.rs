use super::testing::{binding, index, role};
use super::*;
use crate::testing::block_on;

fn policy() -> RbacIndex {
    index([
        role("reader", "get,list core pods"),
        role("named", "get core secrets s1"),
        role("health", "get url /healthz"),
        role("a/local", "delete core pods"),
        binding("readers", "ClusterRole/reader", "Group:dev User:jane"),
        binding("health", "ClusterRole/health", "Group:dev Group:ops"),
        binding("robots", "ClusterRole/named", "ServiceAccount:a/robot ServiceAccount:/lost"),
        binding("a/local", "Role/local", "User:jane ServiceAccount:/builder ServiceAccount:b/builder"),
        binding("a/read", "ClusterRole/reader", "User:bob"),
        binding("b/broken", "Role/gone", "User:bob"),
        binding("b/odd", "Thing/x", "User:bob"),
        binding("b/gone", "ClusterRole/gone", "User:bob"),
    ])
}

fn ask(index: RbacIndex, user: User, request: &str) -> Decision {
    let words: Vec<&str> = request.split(' ').collect();
    let mut attributes = Attributes { user: Arc::new(user), verb: words[0].into(), ..Attributes::default() };
    match words[1..] {
        [path] => attributes.path = path.into(),
        [namespace, resource, ref name @ ..] => {
            attributes.resource_request = true;
            attributes.namespace = namespace.trim_matches('-').into();
            attributes.resource = resource.into();
            attributes.name = name.first().copied().unwrap_or_default().into();
        }
        [] => panic!("{request}"),
    }
    block_on(RbacAuthorizer::new(Arc::new(index)).authorize(&attributes))
}

#[test]
fn decisions_and_their_reasons() {
    let jane = || User::named("jane");
    let dev = || User::named("dave").with_groups(&["dev"]);
    let sa = |ns: &str, name: &str| User::named(crate::service_account::username(ns, name));
    let allowed = |by: &str| Decision::allow(format!("RBAC: allowed by {by}"));
    let no = || Decision::no_opinion("");
    let cases = [
        (dev(), "get a pods", allowed(r#"ClusterRoleBinding "readers" of ClusterRole "reader" to Group "dev""#)),
        (dev(), "list - pods", allowed(r#"ClusterRoleBinding "readers" of ClusterRole "reader" to Group "dev""#)),
        (jane(), "get a pods", allowed(r#"ClusterRoleBinding "readers" of ClusterRole "reader" to User "jane""#)),
        (
            jane().with_groups(&["dev"]),
            "get a pods",
            allowed(r#"ClusterRoleBinding "readers" of ClusterRole "reader" to Group "dev""#),
        ),
        (jane(), "delete a pods", allowed(r#"RoleBinding "local/a" of Role "local" to User "jane""#)),
        (jane(), "delete b pods", no()),
        (jane(), "delete - pods", no()),
        (
            sa("a", "robot"),
            "get x secrets s1",
            allowed(r#"ClusterRoleBinding "robots" of ClusterRole "named" to ServiceAccount "robot/a""#),
        ),
        (sa("a", "robot"), "get x secrets s2", no()),
        (sa("b", "robot"), "get x secrets s1", no()),
        (sa("", "lost"), "get x secrets s1", no()),
        (
            sa("a", "builder"),
            "delete a pods",
            allowed(r#"RoleBinding "local/a" of Role "local" to ServiceAccount "builder/a""#),
        ),
        (
            sa("b", "builder"),
            "delete a pods",
            allowed(r#"RoleBinding "local/a" of Role "local" to ServiceAccount "builder/b""#),
        ),
        (User::named("bob"), "get a pods", allowed(r#"RoleBinding "read/a" of ClusterRole "reader" to User "bob""#)),
        (
            User::named("bob"),
            "get b pods",
            Decision::no_opinion(concat!(
                r#"RBAC: [role.rbac.authorization.k8s.io "gone" not found, "#,
                r#"clusterrole.rbac.authorization.k8s.io "gone" not found, "#,
                r#"unsupported role reference kind: "Thing"]"#
            )),
        ),
        (dev(), "get /healthz", allowed(r#"ClusterRoleBinding "health" of ClusterRole "health" to Group "dev""#)),
        (dev(), "get /healthz/", no()),
        (User::named("dev"), "get a pods", no()),
        (User::named("x").with_groups(&["jane"]), "get a pods", no()),
        (User::default(), "get a pods", no()),
    ];
    for (user, request, want) in cases {
        assert_eq!(ask(policy(), user.clone(), request), want, "{user:?} {request}");
    }
}

#[test]
fn changes_take_effect() {
    let index = policy();
    let bob = User::named("bob").with_groups(&["dev"]);
    let may = |index: &RbacIndex, verb: &str, namespace: &str| {
        let attributes = Attributes {
            user: Arc::new(bob.clone()),
            verb: verb.into(),
            namespace: namespace.into(),
            resource: "pods".into(),
            resource_request: true,
            ..Attributes::default()
        };
        index.find(&attributes.user, namespace, |r| r.allows(&attributes), &mut String::new()).is_ok()
    };
    assert!(may(&index, "get", "z"));
    let (kind, replaced) = binding("readers", "ClusterRole/reader", "Group:other");
    index.put(kind, &replaced);
    assert!(!may(&index, "get", "z") && may(&index, "get", "a"), "only the namespace's binding is left");
    let (kind, more) = role("reader", "* core pods");
    index.put(kind, &more);
    assert!(may(&index, "delete", "a"));
    index.delete(RbacKind::RoleBinding, "a", "read");
    assert!(!may(&index, "get", "a"));
    index.delete(RbacKind::RoleBinding, "a", "read");
    index.delete(RbacKind::ClusterRole, "", "no-such");
}

#[test]
fn rules_are_listed_once_per_binding() {
    let index = policy();
    let user = User::named("jane").with_groups(&["dev", "ops"]);
    let rules = RbacAuthorizer::new(Arc::new(index)).rules_for(&user, "a");
    let resources: Vec<String> = rules.resource_rules.iter().map(|r| r.verbs.join(",")).collect();
    assert_eq!(resources, ["get,list", "delete"]);
    assert_eq!(rules.non_resource_rules.len(), 1);
    assert_eq!((rules.incomplete, rules.error), (false, None));
    let broken = RbacAuthorizer::new(Arc::new(policy())).rules_for(&User::named("bob"), "b");
    assert!(broken.error.is_some());
}
