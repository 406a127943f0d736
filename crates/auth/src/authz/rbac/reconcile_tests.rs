use super::Reconciliation::*;
use super::*;
use crate::authz::rbac::testing::{binding, role};

fn annotated(object: Value, value: &str) -> Value {
    let mut object = object;
    object.set_at(&["metadata", "annotations", AUTOUPDATE], value.into());
    object
}

#[test]
fn roles_gain_what_is_missing() {
    let of = |text: &str| role("r", text).1;
    assert_eq!(reconcile_role(None, &of("get core pods")), Create(of("get core pods")));
    assert_eq!(reconcile_role(Some(&of("get,list core pods")), &of("get core pods")), UpToDate);
    assert_eq!(reconcile_role(Some(&of("* * *")), &of("get core pods;list apps x")), UpToDate);
    assert_eq!(
        reconcile_role(Some(&of("delete core pods")), &of("get,list core pods")),
        Update(of("delete core pods;get core pods;list core pods"))
    );
    let protected = annotated(of(""), "false");
    assert_eq!(reconcile_role(Some(&protected), &of("get core pods")), Protected);
    assert_eq!(reconcile_role(Some(&protected), &of("")), UpToDate);
}

#[test]
fn metadata_is_added_and_never_replaced() {
    let wanted = annotated(role("r", "").1, "true");
    assert_eq!(reconcile_role(Some(&role("r", "").1), &wanted), Update(wanted.clone()));
    let mut labelled = wanted.clone();
    labelled.set_at(&["metadata", "labels", "mine"], "x".into());
    labelled.set_at(&["metadata", "annotations", AUTOUPDATE], "other".into());
    assert_eq!(reconcile_role(Some(&labelled), &wanted), UpToDate);
}

#[test]
fn aggregation_follows_the_wanted() {
    let selecting = |labels: &[&str]| {
        let mut object = role("r", "").1;
        let selector = |l: &&str| Value::from([("matchLabels", Value::from([(*l, "true")]))]);
        let selectors = labels.iter().map(selector).collect();
        object.set_at(&["aggregationRule", "clusterRoleSelectors"], Value::Array(selectors));
        object
    };
    let plain = role("r", "").1;
    assert_eq!(reconcile_role(Some(&plain), &selecting(&["a"])), Update(selecting(&["a"])));
    assert_eq!(reconcile_role(Some(&selecting(&["mine"])), &selecting(&["a"])), Update(selecting(&["mine", "a"])));
    assert_eq!(reconcile_role(Some(&selecting(&["a", "b"])), &selecting(&["a"])), UpToDate);
    assert_eq!(reconcile_role(Some(&selecting(&["a"])), &plain), Update(plain.clone()));
}

#[test]
fn bindings_gain_subjects_or_are_made_anew() {
    let of = |role: &str, subjects: &str| binding("b", role, subjects).1;
    let wanted = of("ClusterRole/x", "User:a User:b User:b");
    assert_eq!(reconcile_binding(None, &wanted), Create(wanted.clone()));
    assert_eq!(
        reconcile_binding(Some(&of("ClusterRole/x", "Group:a User:a")), &wanted),
        Update(of("ClusterRole/x", "Group:a User:a User:b"))
    );
    assert_eq!(reconcile_binding(Some(&of("ClusterRole/x", "User:b User:c User:a")), &wanted), UpToDate);
    assert_eq!(reconcile_binding(Some(&of("ClusterRole/y", "User:a")), &wanted), Recreate(wanted.clone()));
    assert_eq!(reconcile_binding(Some(&annotated(of("ClusterRole/y", ""), "false")), &wanted), Protected);
}
