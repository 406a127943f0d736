use super::*;
use crate::authz::metrics::{AuthorizerMetrics, DecisionCounts};
use crate::remote::TryOutcome;
use crate::remote::testing::{NO_PAUSE, Scripted, answer};
use crate::testing::{advance, block_on, clock_at};
use crate::traits::Selector;

fn policy() -> WebhookPolicy {
    WebhookPolicy {
        version: AccessReviewVersion::V1,
        authorized_ttl: Duration::from_secs(300),
        unauthorized_ttl: Duration::from_secs(30),
        on_error: Verdict::NoOpinion,
        conditions: Conditions::default(),
        observer: None,
    }
}

fn says(status: &str) -> Result<crate::remote::FetchResponse, crate::remote::FetchError> {
    let kind = r#""apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview""#;
    answer(200, &format!(r#"{{{kind},"status":{status}}}"#))
}

fn attributes(name: &str) -> Attributes {
    Attributes {
        user: Arc::new(User { uid: "1".into(), ..User::named("u").with_groups(&["g"]) }),
        verb: "list".into(),
        resource: "pods".into(),
        version: "v1".into(),
        namespace: "ns".into(),
        name: name.into(),
        resource_request: true,
        field_selector: Selector::parse_fields("spec.nodeName=n"),
        label_selector: Selector::parse_labels("a in (b),c,d>5"),
        ..Attributes::default()
    }
}

#[test]
fn statuses_become_decisions() {
    let cases = [
        (r#"{"allowed":true,"reason":"ok"}"#, Decision::allow("ok")),
        (r#"{"allowed":false,"reason":"hm"}"#, Decision::no_opinion("hm")),
        (r#"{"allowed":false,"denied":true,"reason":"no"}"#, Decision::deny("no")),
        (
            r#"{"allowed":true,"denied":true}"#,
            Decision::deny("").with_error("webhook subject access review returned both allow and deny response"),
        ),
        (r#"{"allowed":"true"}"#, Decision::no_opinion("")),
        ("{}", Decision::no_opinion("")),
    ];
    for (status, want) in cases {
        let client = ReviewClient::new(Scripted::new([says(status)]), "u", NO_PAUSE);
        let webhook = WebhookAuthorizer::new(client, policy(), clock_at(0));
        assert_eq!(block_on(webhook.authorize(&attributes("x"))), want, "{status}");
    }
}

#[test]
fn what_is_sent() {
    let server = Scripted::new([says("{}"), says("{}")]);
    let client = ReviewClient::new(server.clone(), "https://hook/authorize", NO_PAUSE);
    let webhook = WebhookAuthorizer::new(client, policy(), clock_at(0));
    block_on(webhook.authorize(&attributes("x")));
    let path = Attributes { verb: "get".into(), path: "/healthz".into(), ..Attributes::default() };
    block_on(webhook.authorize(&path));
    let sent = server.sent.lock().unwrap();
    assert_eq!(sent[0].url, "https://hook/authorize");
    assert_eq!(
        sent[0].json_body.as_deref().unwrap(),
        concat!(
            r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","metadata":{},"#,
            r#""spec":{"groups":["g"],"resourceAttributes":{"fieldSelector":{"requirements":[{"key":"spec.nodeName","#,
            r#""operator":"In","values":["n"]}]},"labelSelector":{"requirements":[{"key":"a","operator":"In","#,
            r#""values":["b"]},{"key":"c","operator":"Exists"}]},"name":"x","namespace":"ns","resource":"pods","#,
            r#""verb":"list","version":"v1"},"uid":"1","user":"u"},"status":{"allowed":false}}"#
        )
    );
    assert!(
        sent[1]
            .json_body
            .as_deref()
            .unwrap()
            .contains(r#""spec":{"nonResourceAttributes":{"path":"/healthz","verb":"get"}}"#)
    );
}

#[test]
fn answers_are_kept_and_told_apart() {
    let server = Scripted::new([says(r#"{"allowed":true}"#), says("{}"), says("{}"), says("{}")]);
    let clock = clock_at(0);
    let client = ReviewClient::new(server.clone(), "u", NO_PAUSE);
    let webhook = WebhookAuthorizer::new(client, policy(), clock.clone());
    let ask = |a: &Attributes| block_on(webhook.authorize(a)).verdict;
    assert_eq!((ask(&attributes("x")), ask(&attributes("x"))), (Verdict::Allow, Verdict::Allow));
    assert_eq!(server.sent(), 1);
    assert_eq!((ask(&attributes("y")), ask(&attributes("y"))), (Verdict::NoOpinion, Verdict::NoOpinion));
    assert_eq!(server.sent(), 2);
    advance(&clock, 31);
    assert_eq!((ask(&attributes("x")), ask(&attributes("y"))), (Verdict::Allow, Verdict::NoOpinion));
    assert_eq!(server.sent(), 3, "a no is kept for a shorter time");
    advance(&clock, 300);
    ask(&attributes("x"));
    assert_eq!(server.sent(), 4);
}

#[test]
fn nothing_shares_a_key_by_accident() {
    let base = attributes("x");
    let change = |f: &dyn Fn(&mut Attributes)| {
        let mut a = base.clone();
        f(&mut a);
        cache_key(&a)
    };
    let user = |f: &dyn Fn(&mut User)| change(&|a| f(Arc::make_mut(&mut a.user)));
    let keys = [
        cache_key(&base),
        change(&|a| a.verb = "get".into()),
        change(&|a| a.name = "".into()),
        change(&|a| (a.name, a.path) = ("".into(), "x".into())),
        change(&|a| (a.namespace, a.group) = ("n".into(), "s".into())),
        change(&|a| a.resource_request = false),
        change(&|a| a.field_selector = Selector::default()),
        change(&|a| a.label_selector = Selector::parse_labels("a notin (b),c,d>5")),
        user(&|u| u.groups = vec!["g".into(), "h".into()]),
        user(&|u| u.groups = vec!["gh".into()]),
        user(&|u| drop(u.extra.insert("k".into(), vec!["v".into()]))),
        user(&|u| drop(u.extra.insert("k".into(), vec!["v".into(), "w".into()]))),
        user(&|u| u.uid = "2".into()),
    ];
    for (i, a) in keys.iter().enumerate() {
        assert!(keys[i + 1..].iter().all(|b| a != b), "key {i}");
    }
}

#[test]
fn failures_follow_the_policy_and_are_not_kept() {
    for on_error in [Verdict::Deny, Verdict::NoOpinion] {
        let server = Scripted::new([]);
        let client = ReviewClient::new(server.clone(), "u", NO_PAUSE);
        let webhook = WebhookAuthorizer::new(client, WebhookPolicy { on_error, ..policy() }, clock_at(0));
        for _ in 0..2 {
            let decision = block_on(webhook.authorize(&attributes("x")));
            assert_eq!(
                (decision.verdict, decision.error.unwrap().to_string().as_str()),
                (on_error, "connection refused")
            );
        }
        assert_eq!(server.sent(), 2);
    }
}

#[test]
fn huge_requests_are_not_kept() {
    let server = Scripted::new([says("{}"), says("{}")]);
    let client = ReviewClient::new(server.clone(), "u", NO_PAUSE);
    let webhook = WebhookAuthorizer::new(client, policy(), clock_at(0));
    let huge = attributes(&"x".repeat(MAX_CACHED_ATTRIBUTES));
    block_on(webhook.authorize(&huge));
    block_on(webhook.authorize(&huge));
    assert_eq!(server.sent(), 2);
}

#[test]
fn conditions_choose_what_is_asked() {
    use crate::expression::{Cel, ExpressionCompiler, ResultKind, Subject};
    #[derive(Default)]
    struct Seen(Mutex<Vec<(String, bool, bool)>>);
    impl AuthorizerMetrics for Seen {
        fn conditions_evaluated(&self, authorizer: &str, outcome: Outcome) {
            self.0.lock().unwrap().push((authorizer.into(), outcome.failed, outcome.excluded));
        }

        fn asked(&self, _: &str, _: TryOutcome, _: Duration) {}

        fn failed_open(&self, _: &str, _: TryOutcome) {}

        fn decisions(&self, _: &str, _: &str) -> Arc<DecisionCounts> {
            Arc::default()
        }
    }
    let cel = Cel::default();
    let compile = |text: &str| (text.into(), cel.compile(text, Subject::AccessReview, ResultKind::Bool).unwrap());
    let run = |conditions: &[&str]| {
        let server = Scripted::new([]);
        let client = ReviewClient::new(server.clone(), "u", NO_PAUSE);
        let conditions = Conditions(conditions.iter().map(|c| compile(c)).collect());
        let seen = Arc::new(Seen::default());
        let observer = Some(Observer { authorizer: "hook".into(), metrics: seen.clone() });
        let policy = WebhookPolicy { conditions, on_error: Verdict::Deny, observer, ..policy() };
        let webhook = WebhookAuthorizer::new(client, policy, clock_at(0));
        let decision = block_on(webhook.authorize(&attributes("x")));
        let seen = seen.0.lock().unwrap().clone();
        let error = decision.error.map(|e| e.to_string()).unwrap_or_default();
        ((server.sent(), decision.verdict, error), seen)
    };
    let (good, other, gone) =
        (r#"request.user == "u""#, r#"request.user == "x""#, r#"request.nonResourceAttributes.path == "/""#);
    let broken =
        format!("cel evaluation error: expression '{gone}' resulted in error: no such key: nonResourceAttributes");
    let seen = |failed: bool, excluded: bool| vec![("hook".to_string(), failed, excluded)];
    let asked = run(&[good]);
    assert_eq!((asked.0.0, asked.1), (1, seen(false, false)));
    assert_eq!(run(&[other]), ((0, Verdict::NoOpinion, String::new()), seen(false, true)));
    assert_eq!(run(&[gone, other]), ((0, Verdict::NoOpinion, String::new()), seen(true, true)));
    assert_eq!(run(&[gone, good]), ((0, Verdict::Deny, broken), seen(true, false)));
    assert_eq!(run(&[]).1, []);
}
