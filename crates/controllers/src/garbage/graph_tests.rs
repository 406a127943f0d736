use super::*;

fn identity(kind: &str, namespace: &str, name: &str) -> Identity {
    Identity {
        kind: kind.into(),
        api_version: "v1".into(),
        namespace: namespace.into(),
        name: name.into(),
        uid: format!("{name}-uid").into(),
    }
}

fn owner(kind: &str, name: &str, blocks: bool) -> Owner {
    let uid = format!("{name}-uid").into();
    Owner { api_version: "v1".into(), kind: kind.into(), name: name.into(), uid, blocks }
}

fn seen(namespace: &str, name: &str, owners: &[Owner]) -> Seen {
    Seen {
        identity: identity("ConfigMap", namespace, name),
        owners: owners.to_vec(),
        being_deleted: false,
        finalizers: Vec::new(),
        resource_version: "1".into(),
    }
}

fn waiting(mut seen: Seen, finalizer: &str) -> Seen {
    seen.being_deleted = true;
    seen.finalizers = vec![finalizer.into()];
    seen
}

fn delete(name: &str) -> Work {
    Work::Delete(format!("{name}-uid").into())
}

#[test]
fn an_object_without_owners_and_dependents_takes_no_room() {
    let mut graph = Graph::default();
    graph.observe(&seen("n", "a", &[]), None);
    assert!(graph.is_empty());
    graph.observe(&seen("n", "b", &[owner("ConfigMap", "a", false)]), None);
    assert_eq!((graph.nodes.len(), graph.take_work()), (2, vec![delete("a")]));
    graph.observe(&seen("n", "b", &[]), None);
    assert!(graph.is_empty());
}

#[test]
fn dependents_are_looked_at_when_their_owner_is_gone() {
    let mut graph = Graph::default();
    graph.observe(&seen("n", "b", &[owner("ConfigMap", "a", false)]), None);
    graph.observe(&seen("n", "a", &[]), None);
    graph.take_work();
    graph.gone(&identity("ConfigMap", "n", "a"));
    assert_eq!(graph.take_work(), [delete("b")]);
    assert!(graph.is_absent(&identity("ConfigMap", "n", "a")));
}

#[test]
fn a_foreground_deletion_waits_for_those_that_block_it() {
    let mut graph = Graph::default();
    graph.observe(&seen("n", "a", &[]), None);
    graph.observe(&seen("n", "b", &[owner("ConfigMap", "a", true)]), None);
    graph.observe(&seen("n", "c", &[owner("ConfigMap", "a", false)]), None);
    graph.take_work();
    let owned = waiting(seen("n", "a", &[]), FOREGROUND);
    graph.observe(&owned, Some(&seen("n", "a", &[])));
    assert_eq!(graph.take_work(), [delete("b"), delete("c"), delete("a")]);
    graph.observe(&owned, Some(&owned));
    assert_eq!(graph.take_work(), [], "it has begun before");
    let view = graph.view("a-uid").unwrap();
    assert!(view.deleting_dependents);
    assert_eq!(view.dependents.iter().map(|d| d.blocks).collect::<Vec<_>>(), [true, false]);
    // The block is lifted.
    graph.observe(&seen("n", "b", &[owner("ConfigMap", "a", false)]), None);
    assert_eq!(graph.take_work(), [delete("a")]);
    graph.gone(&identity("ConfigMap", "n", "b"));
    assert_eq!(graph.take_work(), [delete("a")]);
}

#[test]
fn an_orphaning_deletion_is_work_once() {
    let mut graph = Graph::default();
    let owned = waiting(seen("n", "a", &[]), ORPHAN);
    graph.observe(&owned, None);
    assert_eq!(graph.take_work(), [Work::Orphan("a-uid".into())]);
    graph.observe(&owned, Some(&owned));
    assert_eq!(graph.take_work(), []);
}

#[test]
fn a_reference_across_namespaces_is_told() {
    let mut graph = Graph::default();
    graph.observe(&seen("n", "b", &[owner("ConfigMap", "a", false)]), None);
    graph.observe(&seen("n", "a", &[]), None);
    graph.take_work();
    let wrong = owner("ConfigMap", "a", false);
    graph.observe(&seen("m", "c", std::slice::from_ref(&wrong)), None);
    let told = Work::WrongNamespace { dependent: identity("ConfigMap", "m", "c"), owner: wrong.clone() };
    assert_eq!(graph.take_work(), [told.clone(), delete("c")]);
    // The same if the dependent comes first.
    let mut graph = Graph::default();
    graph.observe(&seen("m", "c", &[wrong]), None);
    graph.take_work();
    graph.observe(&seen("n", "a", &[]), None);
    assert_eq!(graph.take_work(), [told, delete("c")]);
}

/// A wrong reference must not make an owner that exists look absent to those who name it rightly.
#[test]
fn an_absent_owner_is_absent_to_those_who_name_it_so() {
    let mut graph = Graph::default();
    graph.observe(&seen("n", "wrong", &[owner("Secret", "a", false)]), None);
    graph.observe(&seen("n", "right", &[owner("ConfigMap", "a", false)]), None);
    assert_eq!(graph.take_work(), [delete("a"), delete("right")]);
    let tried = graph.view("a-uid").unwrap().identity;
    assert_eq!(tried.kind, "Secret");
    graph.absent(&tried);
    assert_eq!(graph.take_work(), [delete("wrong"), Work::DeleteLater("a-uid".into())]);
    let next = graph.view("a-uid").unwrap().identity;
    assert_eq!(next.kind, "ConfigMap");
    graph.observe(&seen("n", "a", &[]), None);
    assert_eq!(graph.take_work(), [], "it is what was thought");
    // It exists, so that what is absent elsewhere changes nothing for the other.
    graph.absent(&tried);
    assert_eq!(graph.take_work(), [delete("wrong")]);
    assert!(graph.nodes.contains_key("a-uid"));
}

#[test]
fn few_absent_owners_are_remembered() {
    let mut graph = Graph::default();
    for i in 0..=ABSENT {
        graph.add_absent(identity("ConfigMap", "n", &i.to_string()));
    }
    assert!(!graph.is_absent(&identity("ConfigMap", "n", "0")));
    assert!(graph.is_absent(&identity("ConfigMap", "n", "1")));
}
