//! One decision among 10,000 bindings: nanoseconds for an allowed and a refused request.
//!
//! `cargo bench -p kubelith-auth --bench rbac`

use kubelith_auth::authz::rbac::{RbacAuthorizer, RbacIndex, RbacKind};
use kubelith_auth::{Attributes, User, bootstrap};
use kubelith_features::FeatureGates;
use kubelith_meta::Value;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const BINDINGS: usize = 10_000;
const ROUNDS: u32 = 200_000;

fn main() {
    let index = Arc::new(RbacIndex::default());
    for object in bootstrap::policy(&FeatureGates::default()) {
        index.put(object.kind, &object.object);
    }
    for i in 0..BINDINGS / 2 {
        index.put(RbacKind::ClusterRoleBinding, &binding(i, ""));
        index.put(RbacKind::RoleBinding, &binding(i, &format!("ns-{}", i % 500)));
    }
    let authorizer = RbacAuthorizer::new(index);
    let user = Arc::new(User::named("user-77").with_groups(&["team-7", "system:authenticated"]));
    let ask = |verb: &str, resource: &str| Attributes {
        user: user.clone(),
        verb: verb.into(),
        namespace: "ns-77".into(),
        version: "v1".into(),
        resource: resource.into(),
        resource_request: true,
        ..Attributes::default()
    };
    for (name, attributes) in [("allowed", ask("get", "pods")), ("refused", ask("delete", "nodes"))] {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            black_box(authorizer.decide(black_box(&attributes)));
        }
        println!(
            "{name}: {} ns, {:?}",
            start.elapsed().as_nanos() / u128::from(ROUNDS),
            authorizer.decide(&attributes)
        );
    }
}

/// Every user has a cluster-wide binding and one in a namespace; teams have the editor's long list of rules.
fn binding(i: usize, namespace: &str) -> Value {
    let mut object = Value::object();
    object.set_at(&["metadata", "name"], format!("binding-{i}").into());
    object.set_at(&["metadata", "namespace"], namespace.into());
    object.set_at(&["roleRef", "kind"], "ClusterRole".into());
    let role = if namespace.is_empty() { "system:aggregate-to-edit" } else { "system:aggregate-to-view" };
    object.set_at(&["roleRef", "name"], role.into());
    let subject = |kind: &str, name: String| Value::from([("kind", Value::from(kind)), ("name", name.into())]);
    let mut subjects = vec![subject("User", format!("user-{i}"))];
    if i < 10 {
        subjects.push(subject("Group", format!("team-{i}")));
    }
    object.set_at(&["subjects"], Value::Array(subjects));
    object
}
