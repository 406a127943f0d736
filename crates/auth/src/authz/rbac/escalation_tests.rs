use super::*;
use crate::authz::rbac::RbacAuthorizer;
use crate::authz::rbac::testing::{binding, index, role};
use crate::testing::block_on;

fn check(writer: &str, change: (RbacKind, Value), old: Option<&Value>) -> Result<(), (u16, String)> {
    let index = Arc::new(index([
        role("editor", "get,list core pods;get core secrets a"),
        role("boss", "* * *;* url *"),
        role("escalator", "escalate rbac.authorization.k8s.io clusterroles;escalate rbac.authorization.k8s.io roles r"),
        role("binder", "bind rbac.authorization.k8s.io clusterroles big"),
        role("big", "* core *"),
        role("n/small", "get core pods"),
        binding("editor", "ClusterRole/editor", "User:editor"),
        binding("boss", "ClusterRole/boss", "User:boss"),
        binding("escalator", "ClusterRole/escalator", "User:escalator"),
        binding("binder", "ClusterRole/binder", "User:binder"),
        binding("n/broken", "ClusterRole/gone", "User:broken"),
    ]));
    let groups: &[&str] = if writer == "root" { &["system:masters"] } else { &["g1", "g2"] };
    let user = Arc::new(User::named(writer).with_groups(groups));
    let authorizer = RbacAuthorizer::new(index.clone());
    let (kind, object) = change;
    let namespace = object.str_at(&["metadata", "namespace"]).to_string();
    let request_name = if old.is_some() { object.str_at(&["metadata", "name"]).to_string() } else { String::new() };
    let write =
        RbacWrite { kind, user: &user, namespace: &namespace, request_name: &request_name, object: &object, old };
    block_on(check_write(&index, &authorizer, write)).map_err(|s| (s.code, s.message))
}

#[test]
fn roles() {
    let ok = Ok(());
    let missing = |name: &str, user: &str, what: &str| {
        Err((
            403,
            format!(
                "clusterroles.rbac.authorization.k8s.io \"{name}\" is forbidden: user \"{user}\" (groups=[\"g1\" \"g2\"]) \
                 is attempting to grant RBAC permissions not currently held:\n{what}"
            ),
        ))
    };
    let cases = [
        ("editor", role("r", "get core pods"), ok.clone()),
        ("editor", role("r", "get core secrets a"), ok.clone()),
        (
            "editor",
            role("r", "get,delete,watch core pods;get core secrets;get apps x"),
            missing(
                "r",
                "editor",
                "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\" \"watch\"]}\n\
                 {APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}\n\
                 {APIGroups:[\"apps\"], Resources:[\"x\"], Verbs:[\"get\"]}",
            ),
        ),
        ("root", role("r", "* * *"), ok.clone()),
        ("boss", role("r", "* * *"), ok.clone()),
        ("escalator", role("r", "* * *"), ok.clone()),
        ("nobody", role("r", "get url /x"), missing("r", "nobody", "{NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}")),
    ];
    for (writer, change, want) in cases {
        assert_eq!(check(writer, change.clone(), None), want, "{writer} {change:?}");
    }
    // `escalate` on one named role counts where the URL names it, which a create does not.
    assert!(check("escalator", role("n/r", "* * *"), None).is_err());
    let (_, old) = role("n/r", "get core pods");
    assert_eq!(check("escalator", role("n/r", "* * *"), Some(&old)), Ok(()));
}

#[test]
fn aggregation_needs_everything() {
    let (kind, mut aggregated) = role("sum", "");
    aggregated.set_at(&["aggregationRule", "clusterRoleSelectors"], Value::Array(vec![Value::object()]));
    let denied = check("editor", (kind, aggregated.clone()), None).unwrap_err().1;
    assert!(denied.ends_with("\"sum\" is forbidden: must have cluster-admin privileges to use the aggregationRule"));
    assert_eq!(check("boss", (kind, aggregated.clone()), None), Ok(()));
    let (_, plain) = role("sum", "");
    assert!(check("editor", (kind, plain), Some(&aggregated)).is_err(), "taking it away needs it, too");
}

#[test]
fn bindings() {
    let cases = [
        ("editor", binding("n/b", "Role/small", "User:x"), Ok(())),
        ("nobody", binding("n/b", "Role/small", "User:x"), Err(403)),
        ("binder", binding("b", "ClusterRole/big", "User:x"), Ok(())),
        ("binder", binding("n/b", "ClusterRole/big", "User:x"), Ok(())),
        ("binder", binding("b", "ClusterRole/boss", "User:x"), Err(403)),
        ("editor", binding("b", "ClusterRole/nope", "User:x"), Err(404)),
        ("root", binding("b", "ClusterRole/nope", "User:x"), Ok(())),
        ("editor", binding("b", "Thing/x", "User:x"), Err(500)),
    ];
    for (writer, change, want) in cases {
        let got = check(writer, change.clone(), None).map_err(|(code, _)| code);
        assert_eq!(got, want, "{writer} {change:?}");
    }
    let not_found = check("editor", binding("b", "ClusterRole/nope", "User:x"), None).unwrap_err().1;
    assert_eq!(not_found, "clusterrolebindings.rbac.authorization.k8s.io \"nope\" not found");
    let unresolved = check("broken", binding("n/b", "Role/small", "User:x"), None).unwrap_err().1;
    assert!(
        unresolved.ends_with("; resolution errors: [clusterrole.rbac.authorization.k8s.io \"gone\" not found]"),
        "{unresolved}"
    );
}

#[test]
fn housekeeping_needs_no_rights() {
    let (kind, old) = binding("b", "ClusterRole/big", "User:x");
    let mut new = old.clone();
    new.set_at(&["metadata", "finalizers"], vec!["f"].into());
    new.set_at(&["metadata", "ownerReferences"], Value::Array(vec![Value::object()]));
    assert_eq!(check("nobody", (kind, new.clone()), Some(&old)), Ok(()));
    new.set_at(&["metadata", "labels", "a"], "b".into());
    assert!(check("nobody", (kind, new), Some(&old)).is_err());
}
