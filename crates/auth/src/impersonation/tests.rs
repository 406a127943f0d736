use super::*;
use crate::authn::testing::Probe;
use crate::testing::block_on;
use crate::traits::{Answer, Decision, UserRules};

/// Allows `verb resource[/sub] name` lines, `*` for any word, and keeps what it was asked.
struct Lines {
    allowed: Vec<&'static str>,
    asked: Mutex<Vec<String>>,
}

impl Authorizer for Lines {
    fn authorize<'a>(&'a self, a: &'a Attributes) -> Answer<'a, Decision> {
        let group = if a.group.is_empty() { "" } else { "." };
        let asked = format!("{} {}{group} {}", a.verb, a.combined_resource(), a.name);
        let fits = |line: &&str| line.split(' ').zip(asked.split(' ')).all(|(l, w)| l == "*" || l == w);
        let allowed = self.allowed.iter().any(fits);
        self.asked.lock().unwrap().push(asked);
        Answer::Ready(if allowed { Decision::allow("") } else { Decision::no_opinion("because") })
    }

    fn rules_for(&self, _: &User, _: &str) -> UserRules {
        UserRules::default()
    }
}

fn attributes(requestor: User) -> Attributes {
    Attributes {
        user: Arc::new(requestor),
        verb: "list".into(),
        resource: "pods".into(),
        namespace: "ns".into(),
        resource_request: true,
        ..Attributes::default()
    }
}

fn run(requestor: &User, allowed: &[&'static str], wanted: &User) -> Result<(User, &'static str), String> {
    let lines = Lines { allowed: allowed.to_vec(), asked: Mutex::default() };
    let attributes = attributes(requestor.clone());
    let result = block_on(Impersonation::new(Modes::All).impersonate(&lines, &attributes, wanted));
    result.map(|i| ((*i.user).clone(), i.constraint)).map_err(|s| s.message)
}

fn headers(list: &[(&str, &str)]) -> HeaderMap {
    list.iter().fold(Probe::new(), |p, (k, v)| p.header(k, v)).headers
}

use http::HeaderMap;

#[test]
fn header_forms() {
    assert_eq!(wanted_user(&headers(&[])), Ok(None));
    assert_eq!(wanted_user(&headers(&[("Impersonate-User", "")])), Ok(None));
    let all = headers(&[
        ("Impersonate-User", "bob"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-Acme.com%2FProject", "p"),
        ("Impersonate-Extra-scopes", "x"),
        ("Impersonate-Extra-scopes", "y"),
        ("Accept", "z"),
    ]);
    let user = wanted_user(&all).unwrap().unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str(), user.groups.join(",").as_str()), ("bob", "7", "a,b"));
    let extra: Vec<String> = user.extra.iter().map(|(k, v)| format!("{k}={}", v.join(","))).collect();
    assert_eq!(extra, ["acme.com/project=p", "scopes=x,y"]);
    let mut left = all;
    remove_headers(&mut left);
    assert_eq!(left.keys().map(|k| k.as_str()).collect::<Vec<_>>(), ["accept"]);
}

#[test]
fn a_name_is_needed() {
    let cases = [
        (
            headers(&[("Impersonate-Group", "g1")]),
            r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"g1"}, Extra:map[string][]string(nil)} without impersonating a user name"#,
        ),
        (
            headers(&[("Impersonate-Uid", "u-1")]),
            r#"requested &user.DefaultInfo{Name:"", UID:"u-1", Groups:[]string(nil), Extra:map[string][]string(nil)} without impersonating a user name"#,
        ),
        (
            headers(&[("Impersonate-Extra-x", "y")]),
            r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string(nil), Extra:map[string][]string{"x":[]string{"y"}}} without impersonating a user name"#,
        ),
    ];
    for (headers, want) in cases {
        let status = wanted_user(&headers).unwrap_err();
        assert_eq!((status.code, status.message.as_str()), (400, want));
    }
}

#[test]
fn modes_and_what_they_make() {
    let alice = User::named("alice").with_groups(&["system:authenticated"]);
    let on_node = {
        let mut user = User::named("system:serviceaccount:ns:agent");
        user.extra.insert("authentication.kubernetes.io/node-name".into(), vec!["n1".into()]);
        user
    };
    let bob = User::named("bob");
    let node = User::named("system:node:n1");
    let sa = User::named("system:serviceaccount:ns:default");
    type Case<'a> = (&'a User, &'a [&'static str], &'a User, &'a [&'a str], &'a str);
    let cases: Vec<Case<'_>> = vec![
        (&alice, &["impersonate users bob"], &bob, &["system:authenticated"], ""),
        (
            &alice,
            &["impersonate:user-info users. bob", "impersonate-on:user-info:list pods *"],
            &bob,
            &["system:authenticated"],
            "impersonate:user-info",
        ),
        (
            &alice,
            &["impersonate:arbitrary-node nodes. n1", "impersonate-on:arbitrary-node:list pods *"],
            &node,
            &["system:nodes", "system:authenticated"],
            "impersonate:arbitrary-node",
        ),
        (&alice, &["impersonate users system:node:n1"], &node, &["system:authenticated"], ""),
        (
            &on_node,
            &["impersonate:associated-node nodes. *", "impersonate-on:associated-node:list pods *"],
            &node,
            &["system:nodes", "system:authenticated"],
            "impersonate:associated-node",
        ),
        (
            &alice,
            &["impersonate:serviceaccount serviceaccounts. default", "impersonate-on:serviceaccount:list pods *"],
            &sa,
            &["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"],
            "impersonate:serviceaccount",
        ),
        (
            &alice,
            &["impersonate serviceaccounts default"],
            &sa,
            &["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"],
            "",
        ),
    ];
    for (requestor, allowed, wanted, groups, constraint) in cases {
        let (user, got) = run(requestor, allowed, wanted).unwrap_or_else(|e| panic!("{allowed:?}: {e}"));
        assert_eq!((user.name.as_str(), got), (wanted.name.as_str(), constraint));
        assert_eq!(user.groups, groups, "{allowed:?}");
    }
    let anonymous = User::named("system:anonymous");
    let (user, _) = run(&alice, &["impersonate users *"], &anonymous).unwrap();
    assert_eq!(user.groups, ["system:unauthenticated"]);
    let faceless = User::named("x").with_groups(&["system:unauthenticated"]);
    let (user, _) = run(&alice, &["impersonate * *"], &faceless).unwrap();
    assert_eq!(user.groups, ["system:unauthenticated"]);
}

#[test]
fn refusals_name_the_first_mode() {
    let alice = User::named("alice");
    let refused = |allowed: &[&'static str], wanted: &User| run(&alice, allowed, wanted).unwrap_err();
    assert_eq!(
        refused(&[], &User::named("bob")),
        r#"pods is forbidden: User "alice" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "ns": because"#
    );
    let on: &'static str = "impersonate-on:user-info:list pods *";
    assert_eq!(
        refused(&[on], &User::named("bob")),
        r#"users.authentication.k8s.io "bob" is forbidden: User "alice" cannot impersonate:user-info resource "users" in API group "authentication.k8s.io" at the cluster scope: because"#
    );
    let any: &'static str = "impersonate:user-info * *";
    let masters = User::named("bob").with_groups(&["system:masters"]);
    assert_eq!(
        refused(&[on, any], &masters),
        r#"groups.authentication.k8s.io "system:masters" is forbidden: User "alice" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the system:masters group is not allowed"#
    );
    let mut extra = User::named("bob");
    extra.extra.insert("scopes".into(), vec!["x".into()]);
    assert!(refused(&[on, any], &extra).ends_with(
        r#": impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "scopes": must be a domain-prefixed path (such as "acme.io/foo")"#
    ));
    // The unconstrained verb covers each part on its own.
    let all = {
        let mut user = User::named("bob").with_groups(&["a", "b"]);
        user.uid = "7".into();
        user.extra.insert("acme.io/x".into(), vec!["1".into()]);
        user
    };
    let parts: [&'static str; 5] = [
        "impersonate users bob",
        "impersonate groups a",
        "impersonate groups b",
        "impersonate uids. 7",
        "impersonate userextras/acme.io/x. 1",
    ];
    assert!(run(&alice, &parts, &all).is_ok());
    for i in 0..parts.len() {
        let without: Vec<&'static str> = parts.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, p)| *p).collect();
        assert!(run(&alice, &without, &all).is_err(), "without {}", parts[i]);
    }
}

#[test]
fn the_mode_that_worked_is_tried_first() {
    let allowed = vec!["impersonate * *"];
    let lines = Lines { allowed, asked: Mutex::default() };
    let impersonation = Impersonation::new(Modes::All);
    let alice = attributes(User::named("alice"));
    let ask = || block_on(impersonation.impersonate(&lines, &alice, &User::named("bob"))).unwrap();
    ask();
    assert_eq!(lines.asked.lock().unwrap().len(), 2);
    ask();
    assert_eq!(lines.asked.lock().unwrap()[2..], ["impersonate users bob"]);
    for i in 0..MAX_REMEMBERED + 5 {
        impersonation.remember(&User::named(format!("user{i}")), Mode::Legacy);
    }
    assert!(impersonation.last_mode.lock().unwrap().len() <= MAX_REMEMBERED);
}

#[test]
fn without_the_gate_the_old_verb_alone_counts() {
    assert_eq!(Impersonation::new(Modes::All).modes.len(), Mode::ALL.len());
    assert_eq!(Impersonation::new(Modes::Unconstrained).modes, [Mode::Legacy]);
}
