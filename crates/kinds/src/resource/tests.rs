use crate::resource::resource_claim::validate::Requests;
use crate::tests::kind;
use kubelith_rules::Request;
use kubelith_rules::testing::{env, value};

fn request(subresource: &'static str) -> Request<'static> {
    Request { group: "resource.k8s.io", version: "v1", subresource, env: env() }
}

fn fields(errors: &kubelith_meta::field::ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn claims() {
    let cases = [
        (r#"[{"name":"r","exactly":{"deviceClassName":"c","allocationMode":"All"}}]"#, vec![]),
        (
            r#"[{"name":"r","exactly":{"deviceClassName":"c","allocationMode":"All","count":1}}]"#,
            vec![
                "spec.devices.requests[0].exactly.count: Invalid value: 1: must not be specified when allocationMode is 'All'",
            ],
        ),
        (
            r#"[{"name":"r"}]"#,
            vec!["spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"],
        ),
        (
            r#"[{"name":"r","firstAvailable":[{"name":"s","deviceClassName":"c","allocationMode":"X"}]}]"#,
            vec![
                "spec.devices.requests[0].firstAvailable[0].allocationMode: Unsupported value: \"X\": supported values: \
                 \"All\", \"ExactCount\"",
            ],
        ),
    ];
    for (requests, expected) in cases {
        let claim =
            format!(r#"{{"metadata":{{"name":"c","namespace":"n"}},"spec":{{"devices":{{"requests":{requests}}}}}}}"#);
        let errors = (kind("resource.k8s.io", "resourceclaims").rules.create)(request(""), &value(&claim));
        assert_eq!(fields(&errors), expected, "{requests}");
    }
}

#[test]
fn references_to_requests() {
    let devices = value(r#"{"requests":[{"name":"a","exactly":{}},{"name":"b","firstAvailable":[{"name":"x"}]}]}"#);
    let requests = Requests::of(&devices);
    for (name, is_known) in [("a", true), ("b", true), ("b/x", true), ("a/x", false), ("b/y", false), ("b/x/z", false)]
    {
        let mut errors = kubelith_meta::field::ErrorList::new();
        requests.check(name, &kubelith_meta::field::Path::new("p"), &mut errors);
        assert_eq!(errors.is_empty(), is_known, "{name}");
    }
}

#[test]
fn statuses() {
    let object = |status: &str| {
        let spec = r#"{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}"#;
        let metadata = r#"{"name":"c","namespace":"n","resourceVersion":"1"}"#;
        value(&format!(r#"{{"metadata":{metadata},"spec":{spec},"status":{status}}}"#))
    };
    let given = r#"{"allocation":{"devices":{"results":[{"request":"r","driver":"d.x","pool":"p","device":"a"}]}}}"#;
    let cases = [
        ("{}", given, vec![]),
        (given, "{}", vec![]),
        (
            "{}",
            r#"{"reservedFor":[{"resource":"pods","name":"p","uid":"u"}]}"#,
            vec!["status.reservedFor: Forbidden: may not be specified when `allocated` is not set"],
        ),
        (
            "{}",
            r#"{"devices":[{"driver":"d.x","pool":"p","device":"a"}]}"#,
            vec![
                "status.devices[0]: Invalid value: {\"Driver\":\"d.x\",\"Pool\":\"p\",\"Device\":\"a\",\"ShareID\":\"\"}: \
                 must be an allocated device in the claim",
            ],
        ),
        (
            "{}",
            r#"{"allocation":{"devices":{"results":[{"request":"q","driver":"d.x","pool":"p","device":"a","shareID":"1"}]}}}"#,
            vec![
                "status.allocation.devices.results[0].request: Invalid value: \"q\": must be the name of a request in the \
                 claim or the name of a request and a subrequest separated by '/'",
                "status.allocation.devices.results[0].shareID: Invalid value: \"1\": error validating uid: invalid UUID \
                 length: 1",
            ],
        ),
    ];
    for (old, new, expected) in cases {
        let errors =
            (kind("resource.k8s.io", "resourceclaims").rules.update)(request("status"), &object(new), &object(old));
        assert_eq!(fields(&errors), expected, "{old} {new}");
    }
}

#[test]
fn slices() {
    let cases = [
        (r#"{"nodeName":"n","devices":[{"name":"a","attributes":{"k":{"bool":true}}}]}"#, vec![]),
        (
            r#"{"nodeName":"n","allNodes":true}"#,
            vec![
                "spec: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of `nodeName`, `nodeSelector`, \
                 `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set",
            ],
        ),
        (
            r#"{"allNodes":true,"devices":[{"name":"a","attributes":{"k":{"int":1,"version":"x"}}},{"name":"a"}]}"#,
            vec![
                "spec.devices[0].attributes[k].version: Invalid value: \"x\": must be a string compatible with semver.org \
                 spec 2.0.0",
                "spec.devices[0].attributes[k]: Invalid value: {\"IntValue\":1,\"BoolValue\":null,\"StringValue\":null,\
                 \"VersionValue\":\"x\",\"IntValues\":null,\"BoolValues\":null,\"StringValues\":null,\
                 \"VersionValues\":null}: exactly one value must be specified",
                "spec.devices[1]: Duplicate value: \"a\"",
            ],
        ),
        (
            r#"{"allNodes":true,"devices":[{"name":"a","allowMultipleAllocations":true,"capacity":{"m":{"value":"10",
                "requestPolicy":{"default":"3","validRange":{"min":"1","max":"20","step":"4"}}}}}]}"#,
            vec![
                "spec.devices[0].capacity[m].requestPolicy.validRange.max: Invalid value: \"20\": max is larger than \
                 capacity value: 10",
                "spec.devices[0].capacity[m].requestPolicy.validRange.step: Invalid value: \"3\": value is not a multiple \
                 of a given step (4) from (1)",
                "spec.devices[0].capacity[m].requestPolicy.validRange.step: Invalid value: \"20\": value is not a \
                 multiple of a given step (4) from (1)",
            ],
        ),
    ];
    for (spec, expected) in cases {
        let mut slice = value(&format!(r#"{{"metadata":{{"name":"s"}},"spec":{spec}}}"#));
        slice.set_at(&["spec", "driver"], "d.x".into());
        slice.set_at(&["spec", "pool"], value(r#"{"name":"p","resourceSliceCount":1}"#));
        let errors = (kind("resource.k8s.io", "resourceslices").rules.create)(request(""), &slice);
        assert_eq!(fields(&errors), expected, "{spec}");
    }
}
