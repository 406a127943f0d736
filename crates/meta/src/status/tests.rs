use super::*;
use crate::field::{Error, ErrorList, Path};
use crate::{GroupKind, GroupResource, Value};

fn pods() -> GroupResource {
    GroupResource::new("", "pods")
}

fn deployments() -> GroupResource {
    GroupResource::new("apps", "deployments")
}

#[test]
fn constructors_are_worded_as_upstream() {
    for (status, want) in [
        (
            Status::not_found(&deployments(), "a"),
            r#""status":"Failure","message":"deployments.apps \"a\" not found","reason":"NotFound","details":{"name":"a","group":"apps","kind":"deployments"},"code":404}"#,
        ),
        (
            Status::already_exists(&pods(), "a"),
            r#""status":"Failure","message":"pods \"a\" already exists","reason":"AlreadyExists","details":{"name":"a","kind":"pods"},"code":409}"#,
        ),
        (
            Status::generate_name_conflict(&pods(), "a", 1),
            r#""status":"Failure","message":"pods \"a\" already exists, the server was not able to generate a unique name for the object","reason":"AlreadyExists","details":{"name":"a","kind":"pods","retryAfterSeconds":1},"code":409}"#,
        ),
        (
            Status::unauthorized(""),
            r#""status":"Failure","message":"not authorized","reason":"Unauthorized","code":401}"#,
        ),
        (
            Status::forbidden(&GroupResource::default(), "", "no <"),
            r#""status":"Failure","message":"forbidden: no \u003c","reason":"Forbidden","details":{},"code":403}"#,
        ),
        (
            Status::forbidden(&pods(), "", "no"),
            r#""status":"Failure","message":"pods is forbidden: no","reason":"Forbidden","details":{"kind":"pods"},"code":403}"#,
        ),
        (
            Status::forbidden(&pods(), "a", "no"),
            r#""status":"Failure","message":"pods \"a\" is forbidden: no","reason":"Forbidden","details":{"name":"a","kind":"pods"},"code":403}"#,
        ),
        (
            Status::conflict(&pods(), "a", "why"),
            r#""status":"Failure","message":"Operation cannot be fulfilled on pods \"a\": why","reason":"Conflict","details":{"name":"a","kind":"pods"},"code":409}"#,
        ),
        (
            Status::apply_conflict(vec![Cause::new(CAUSE_FIELD_MANAGER_CONFLICT, "m", ".spec")], "Apply failed"),
            r#""status":"Failure","message":"Apply failed","reason":"Conflict","details":{"causes":[{"reason":"FieldManagerConflict","message":"m","field":".spec"}]},"code":409}"#,
        ),
        (Status::gone("m"), r#""status":"Failure","message":"m","reason":"Gone","code":410}"#),
        (Status::expired("m"), r#""status":"Failure","message":"m","reason":"Expired","code":410}"#),
        (Status::bad_request("m"), r#""status":"Failure","message":"m","reason":"BadRequest","code":400}"#),
        (
            Status::too_many_requests("m", 2),
            r#""status":"Failure","message":"m","reason":"TooManyRequests","details":{"retryAfterSeconds":2},"code":429}"#,
        ),
        (
            Status::too_many_requests_now("m"),
            r#""status":"Failure","message":"Too many requests: m","reason":"TooManyRequests","code":429}"#,
        ),
        (
            Status::service_unavailable("m"),
            r#""status":"Failure","message":"m","reason":"ServiceUnavailable","code":503}"#,
        ),
        (
            Status::method_not_supported(&deployments(), "delete"),
            r#""status":"Failure","message":"delete is not supported on resources of kind \"deployments.apps\"","reason":"MethodNotAllowed","details":{"group":"apps","kind":"deployments"},"code":405}"#,
        ),
        (
            Status::server_timeout(&pods(), "list", 2),
            r#""status":"Failure","message":"The list operation against pods could not be completed at this time, please try again.","reason":"ServerTimeout","details":{"name":"list","kind":"pods","retryAfterSeconds":2},"code":500}"#,
        ),
        (
            Status::internal_error("boom"),
            r#""status":"Failure","message":"Internal error occurred: boom","reason":"InternalError","details":{"causes":[{"message":"boom"}]},"code":500}"#,
        ),
        (
            Status::timeout("m", 0),
            r#""status":"Failure","message":"Timeout: m","reason":"Timeout","details":{},"code":504}"#,
        ),
        (
            Status::too_large_resource_version(9, 5, 1),
            r#""status":"Failure","message":"Timeout: Too large resource version: 9, current: 5","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}"#,
        ),
        (
            Status::request_entity_too_large("m"),
            r#""status":"Failure","message":"Request entity too large: m","reason":"RequestEntityTooLarge","code":413}"#,
        ),
        (
            Status::not_acceptable(&["a/b", "c/d"]),
            r#""status":"Failure","message":"only the following media types are accepted: a/b, c/d","reason":"NotAcceptable","code":406}"#,
        ),
        (
            Status::not_acceptable_conversion("meta.k8s.io/v1, Kind=Table", &["a/b"]),
            r#""status":"Failure","message":"only the following media types are accepted when converting to meta.k8s.io/v1, Kind=Table: a/b","reason":"NotAcceptable","code":406}"#,
        ),
        (
            Status::unsupported_media_type(&["a/b"]),
            r#""status":"Failure","message":"the body of the request was in an unknown format - accepted media types include: a/b","reason":"UnsupportedMediaType","code":415}"#,
        ),
        (
            Status::store_read_error(&pods(), "/registry/pods/", vec![]),
            r#""status":"Failure","message":"failed to read one or more pods from the storage","reason":"StorageReadError","details":{"name":"/registry/pods/","kind":"pods"},"code":500}"#,
        ),
        (Status::unknown("m"), r#""status":"Failure","message":"m","code":500}"#),
        (Status::success(201), r#""status":"Success","code":201}"#),
        (Status::deleted(&pods(), "a", "u"), r#""status":"Success","details":{"name":"a","kind":"pods","uid":"u"}}"#),
    ] {
        let head = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"#;
        assert_eq!(status.to_json(), format!("{head}{want}"));
        assert_eq!(Status::from_value(&status.to_value()), status);
    }
}

#[test]
fn invalid_lists_causes_and_joins_messages() {
    let kind = GroupKind { group: "apps".into(), kind: "Deployment".into() };
    let (a, b) = (Path::new("a"), Path::new("b"));
    let errors = ErrorList(vec![Error::required(&a, ""), Error::invalid(&b, 1i64, "bad"), Error::required(&a, "")]);
    let status = Status::invalid(&kind, "x", &errors);
    assert_eq!(status.code, 422);
    assert_eq!(status.message, "Deployment.apps \"x\" is invalid: [a: Required value, b: Invalid value: 1: bad]");
    // The message drops repetitions, the causes do not.
    assert_eq!(
        status.causes().iter().map(|c| (&*c.reason, &*c.message, &*c.field)).collect::<Vec<_>>(),
        [
            ("FieldValueRequired", "Required value", "a"),
            ("FieldValueInvalid", "Invalid value: 1: bad", "b"),
            ("FieldValueRequired", "Required value", "a"),
        ]
    );
    assert_eq!(Status::invalid(&kind, "", &ErrorList::new()).message, "Deployment.apps \"\" is invalid");
}

#[test]
fn a_continue_token_shows_in_metadata() {
    let status = Status { continue_token: Some("tok".into()), ..Status::expired("old") };
    assert_eq!(
        status.to_json(),
        r#"{"kind":"Status","apiVersion":"v1","metadata":{"continue":"tok"},"status":"Failure","message":"old","reason":"Expired","code":410}"#
    );
    assert_eq!(status.to_value().str_at(&["metadata", "continue"]), "tok");
}

#[test]
fn predicates_fall_back_to_the_code() {
    assert!(Status::not_found(&pods(), "a").is_not_found());
    assert!(Status { code: 404, ..Status::default() }.is_not_found());
    assert!(Status { code: 404, reason: Reason::Other("Odd".into()), ..Status::default() }.is_not_found());
    assert!(!Status { code: 404, reason: Reason::Gone, ..Status::default() }.is_not_found());
    assert!(!Status::already_exists(&pods(), "a").is_conflict());
    assert!(Status::too_large_resource_version(2, 1, 1).is_too_large_resource_version());
    assert!(!Status::timeout("", 1).is_too_large_resource_version());
    assert_eq!(Status::server_timeout(&pods(), "get", 0).retry_after_seconds(), Some(0));
    assert_eq!(Status::timeout("", 0).retry_after_seconds(), None);
}

#[test]
fn foreign_responses_get_a_reason_from_their_code() {
    for (code, method, resource, name, body, want) in [
        (409, "POST", pods(), "a", "", ("AlreadyExists", "the server reported a conflict (post pods a)")),
        (409, "PUT", pods(), "", "", ("Conflict", "the server reported a conflict (put pods)")),
        (403, "GET", GroupResource::default(), "", "body", ("Forbidden", "body")),
        (
            500,
            "GET",
            GroupResource::default(),
            "",
            "a\"",
            ("InternalError", r#"an error on the server ("a\"") has prevented the request from succeeding"#),
        ),
        (
            418,
            "GET",
            GroupResource::default(),
            "",
            "",
            ("", "the server responded with the status code 418 but did not return more information"),
        ),
    ] {
        let status: Status = ForeignResponse { code, method, resource, name, body, ..Default::default() }.into();
        assert_eq!((status.reason.as_str(), status.message.as_str()), want);
    }
    let status: Status = ForeignResponse { code: 502, body: "b", unexpected: true, ..Default::default() }.into();
    assert_eq!(status.causes(), [Cause::new(CAUSE_UNEXPECTED_SERVER_RESPONSE, "b", "")]);
}

#[test]
fn odd_input_reads_as_absent() {
    let status = Status::from_value(&Value::from([("code", Value::from("x")), ("reason", Value::from(1i64))]));
    assert_eq!(status, Status::default());
}
