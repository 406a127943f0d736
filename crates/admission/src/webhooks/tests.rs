use super::hook::ReviewVersion;
use super::review::{decode, denial, verify};
use super::*;
use crate::observe::Power;
use crate::rules::{Index, Rule};
use kubelith_codec::json;
use kubelith_meta::user::User;
use kubelith_meta::{GroupResource, GroupVersionKind, Str};
use kubelith_registry::admission::Operation;
use kubelith_registry::{Call, Mode, Warnings};

fn value(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

fn call(resource: &str, subresource: &str, namespace: &str) -> Call {
    Call {
        verb: Str::default(),
        user: Arc::new(User::named("u")),
        resource: GroupResource::new("apps", resource),
        version: "v1".into(),
        kind: GroupVersionKind::new("apps", "v1", "K"),
        namespace: namespace.into(),
        name: "n".into(),
        subresource: Str::from(subresource),
        mode: Mode::Real,
        deadline: None,
        warnings: Warnings::default(),
    }
}

#[test]
fn rules_say_which_requests_are_meant() {
    let rule = |extra: &str, resources: &str, operations: &str| {
        value(&format!(
            r#"{{"apiGroups":["apps"],"apiVersions":["v1"],"resources":[{resources}],"operations":[{operations}]{extra}}}"#
        ))
    };
    let cases = [
        (rule("", r#""ds""#, r#""CREATE""#), "ds", "", "ns", Operation::Create, true),
        (rule("", r#""ds""#, r#""CREATE""#), "ds", "", "ns", Operation::Update, false),
        (rule("", r#""ds""#, r#""*""#), "ds", "", "ns", Operation::Connect, true),
        (rule("", r#""ds""#, r#""*""#), "ds", "status", "ns", Operation::Update, false),
        (rule("", r#""ds/*""#, r#""*""#), "ds", "status", "ns", Operation::Update, true),
        (rule("", r#""*""#, r#""*""#), "ds", "status", "ns", Operation::Update, false),
        (rule("", r#""*/status""#, r#""*""#), "ds", "status", "ns", Operation::Update, true),
        (rule(r#","scope":"Cluster""#, r#""ds""#, r#""*""#), "ds", "", "ns", Operation::Create, false),
        (rule(r#","scope":"Cluster""#, r#""ds""#, r#""*""#), "ds", "", "", Operation::Create, true),
        (rule(r#","scope":"Namespaced""#, r#""ds""#, r#""*""#), "ds", "", "ns", Operation::Create, true),
    ];
    for (rule, resource, subresource, namespace, operation, want) in cases {
        let call = call(resource, subresource, namespace);
        let request = Request::new(&call, operation);
        let read = [Rule::read(&rule)];
        let objects = Objects::new();
        let versions = Versions::of(request, &objects);
        let found = versions.matching(&read, crate::rules::MatchPolicy::Equivalent).is_some();
        assert_eq!(found, want, "{rule:?} {operation:?}");
        // The index leaves out none that is meant.
        let index = Index::new([&read[..]].into_iter());
        assert!(!want || index.candidates(request) == [0], "{rule:?}");
    }
}

#[test]
fn answers_are_verified() {
    let answer = |response: &str| {
        value(&format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"{response}}}"#))
    };
    let problem = |answer: &Value, power: Power| {
        verify(answer, ReviewVersion::V1, "u", power).map(|r| r.allowed).map_err(|why| why.to_string())
    };
    let cases = [
        ("", Power::Validating, Err("webhook response was absent")),
        (r#","response":{"uid":"x"}"#, Power::Validating, Err("expected response.uid=\"u\", got \"x\"")),
        (r#","response":{"uid":"u","allowed":true}"#, Power::Validating, Ok(true)),
        (
            r#","response":{"uid":"u","patch":"W10="}"#,
            Power::Validating,
            Err("validating webhook may not return response.patch"),
        ),
        (
            r#","response":{"uid":"u","patchType":"JSONPatch"}"#,
            Power::Mutating,
            Err("webhook returned response.patchType but not response.patch"),
        ),
        (
            r#","response":{"uid":"u","patch":"W10="}"#,
            Power::Mutating,
            Err("webhook returned response.patch but not response.patchType"),
        ),
    ];
    for (response, power, want) in cases {
        assert_eq!(problem(&answer(response), power), want.map_err(str::to_owned), "{response}");
    }
    let untyped = value(r#"{"response":{"uid":"u"}}"#);
    let want = "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=";
    assert_eq!(problem(&untyped, Power::Validating), Err(want.to_owned()));
    let decoded = |text: &str| decode(&value(text), ReviewVersion::V1).unwrap_err();
    assert_eq!(
        decoded(r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}"#),
        "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"
    );
    assert_eq!(
        decoded(r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":"yes"}}"#),
        "json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool"
    );
}

#[test]
fn refusals_are_told_in_the_webhooks_words() {
    let cases = [
        (None, 400, "admission webhook \"h\" denied the request without explanation"),
        (Some(r#"{"code":200,"message":"no"}"#), 400, "admission webhook \"h\" denied the request: no"),
        (Some(r#"{"code":409,"reason":"Conflict"}"#), 409, "admission webhook \"h\" denied the request: Conflict"),
    ];
    for (status, code, message) in cases {
        let denied = denial("h", status.map(|s| Status::from_value(&value(s))));
        assert_eq!((denied.code, denied.message.as_str()), (code, message));
    }
}
