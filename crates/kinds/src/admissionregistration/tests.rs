use crate::tests::kind;
use kubelith_meta::Value;
use kubelith_meta::field::ErrorList;
use kubelith_rules::Request;
use kubelith_rules::testing::{env, value};

fn request() -> Request<'static> {
    Request { group: "admissionregistration.k8s.io", version: "v1", subresource: "", env: env() }
}

fn texts(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn object(spec: &str) -> Value {
    value(&format!(r#"{{"metadata":{{"name":"p"}},"spec":{spec}}}"#))
}

fn check(plural: &str, spec: &str) -> Vec<String> {
    texts(&(kind("admissionregistration.k8s.io", plural).rules.create)(request(), &object(spec)))
}

const CONSTRAINTS: &str = r#""failurePolicy":"Fail","matchConstraints":{"matchPolicy":"Exact","namespaceSelector":{},
    "objectSelector":{},"resourceRules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],
    "resources":["pods"]}]}"#;

#[test]
fn bindings() {
    let cases = [
        (
            "{}",
            vec![
                "spec.policyName: Required value",
                "spec.validationActions: Required value: at least one validation action is required",
            ],
        ),
        (
            r#"{"policyName":"a","validationActions":["Deny","Warn","Deny","X"],"paramRef":{}}"#,
            vec![
                "spec.paramRef: Required value: one of name or selector must be specified",
                "spec.paramRef.parameterNotFoundAction: Required value",
                "spec.validationActions[2]: Duplicate value: \"Deny\"",
                "spec.validationActions[3]: Unsupported value: \"X\": supported values: \"Audit\", \"Deny\", \"Warn\"",
                "spec.validationActions: Invalid value: [\"Deny\",\"Warn\",\"Deny\",\"X\"]: must not contain both Deny and \
                 Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
            ],
        ),
        (
            r#"{"policyName":"a","validationActions":["Deny"],"matchResources":{"resourceRules":[{}]},
                "paramRef":{"name":"a/b","selector":{},"parameterNotFoundAction":"No"}}"#,
            vec![
                "spec.paramRef.name: Invalid value: \"a/b\": may not contain '/'",
                "spec.paramRef.name: Forbidden: name and selector are mutually exclusive",
                "spec.paramRef.selector: Forbidden: name and selector are mutually exclusive",
                "spec.paramRef.parameterNotFoundAction: Unsupported value: \"No\": supported values: \"Deny\", \"Allow\"",
                "spec.matchResources.matchPolicy: Required value",
                "spec.matchResources.namespaceSelector: Required value",
                "spec.matchResources.objectSelector: Required value",
                "spec.matchResources.resourceRules[0].operations: Required value",
                "spec.matchResources.resourceRules[0].apiGroups: Required value",
                "spec.matchResources.resourceRules[0].apiVersions: Required value",
                "spec.matchResources.resourceRules[0].resources: Required value",
            ],
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(check("validatingadmissionpolicybindings", spec), expected, "{spec}");
    }
    let spec = r#"{"policyName":"A","matchResources":{"matchPolicy":"Exact","namespaceSelector":{},"objectSelector":{},
        "resourceRules":[{"operations":["DELETE"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*"],
        "resourceNames":["x","x"]}]}}"#;
    let errors = check("mutatingadmissionpolicybindings", spec);
    assert!(errors[0].starts_with("spec.policyName: Invalid value: \"A\": a lowercase RFC 1123 subdomain"));
    assert_eq!(
        errors[1..],
        [
            "spec.matchResources.resourceRules[0].resourceNames[1]: Duplicate value: \"x\"",
            "spec.matchResources.resourceRules.operations: Unsupported value: \"DELETE\": supported values: \"*\", \
             \"CONNECT\", \"CREATE\", \"UPDATE\"",
        ]
    );
}

#[test]
fn validating_policies() {
    let cases = [
        (
            "{}".to_owned(),
            vec![
                "spec.failurePolicy: Required value",
                "spec.matchConstraints: Required value",
                "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
                "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item",
            ],
        ),
        (
            format!(
                r#"{{{CONSTRAINTS},"paramKind":{{"apiVersion":"a/b/c"}},"variables":[{{"name":"in"}}],"validations":[
                    {{"expression":" ","messageExpression":" ","message":"a\nb","reason":"Conflict"}}],
                    "auditAnnotations":[{{"key":"k","valueExpression":"''"}},{{"key":"k"}}]}}"#
            ),
            vec![
                "spec.paramKind.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
                "spec.paramKind.kind: Required value",
                "spec.variables[0].name: Invalid value: \"in\": must be a valid CEL identifier",
                "spec.variables[0].expression: Required value: expression is not specified",
                "spec.validations[0].expression: Required value: expression is not specified",
                "spec.validations[0].messageExpression: Invalid value: \" \": must be non-empty if specified",
                "spec.validations[0].message: Invalid value: \"a\\nb\": must not contain line breaks",
                "spec.validations[0].reason: Unsupported value: \"Conflict\": supported values: \"Forbidden\", \"Invalid\", \
                 \"RequestEntityTooLarge\"",
                "spec.auditAnnotations[1].valueExpression: Required value: valueExpression is not specified",
                "spec.auditAnnotations[1].key: Duplicate value: \"k\"",
            ],
        ),
        (
            format!(
                r#"{{{CONSTRAINTS},"matchConditions":[{{"name":"a","expression":"true"}},{{"name":"a"}},{{}}],
                    "validations":[{{"expression":"true"}}]}}"#
            ),
            vec![
                "spec.matchConditions[1].expression: Required value",
                "spec.matchConditions[1].name: Duplicate value: \"a\"",
                "spec.matchConditions[2].expression: Required value",
                "spec.matchConditions[2].name: Required value",
            ],
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(check("validatingadmissionpolicies", &spec), expected, "{spec}");
    }
}

#[test]
fn conditions_that_stay_are_not_looked_at() {
    let policy = |more: &str| {
        let head = format!(r#"{CONSTRAINTS},"validations":[{{"expression":"true"}}],"matchConditions":[{{}}]"#);
        object(&format!("{{{head}{more}}}"))
    };
    let update = kind("admissionregistration.k8s.io", "validatingadmissionpolicies").rules.update;
    assert_eq!(texts(&update(request(), &policy(""), &policy(""))), [""; 0]);
    let param = r#","paramKind":{"apiVersion":"v1","kind":"ConfigMap"}"#;
    assert_eq!(texts(&update(request(), &policy(param), &policy(""))).len(), 2);
}

#[test]
fn statuses() {
    let status =
        r#"{"status":{"typeChecking":{"expressionWarnings":[{"fieldRef":"spec.x[","warning":""},{"warning":"w"}]}}}"#;
    let request = Request { subresource: "status", ..request() };
    let errors = texts(&(kind("admissionregistration.k8s.io", "validatingadmissionpolicies").rules.update)(
        request,
        &value(status),
        &Value::Null,
    ));
    let expected = [
        "status.typeChecking.expressionWarnings[0].warning: Required value",
        "status.typeChecking.expressionWarnings[0].fieldRef: Invalid value: \"spec.x[\": invalid JSONPath: unterminated array",
        "status.typeChecking.expressionWarnings[1].fieldRef: Required value",
    ];
    assert_eq!(errors, expected);
}

#[test]
fn mutating_policies() {
    let cases = [
        (
            r#""mutations":[]"#,
            vec![
                "spec.mutations: Required value: mutations must contain at least one item",
                "spec.reinvocationPolicy: Required value",
            ],
        ),
        (
            r#""reinvocationPolicy":"X","mutations":[{},{"patchType":"X"},{"patchType":"JSONPatch","applyConfiguration":{}},
                {"patchType":"ApplyConfiguration","applyConfiguration":{"expression":" "},"jsonPatch":{}}]"#,
            vec![
                "spec.mutations[0].patchType: Required value",
                "spec.mutations[1].patchType: Unsupported value: \"X\": supported values: \"ApplyConfiguration\", \
                 \"JSONPatch\"",
                "spec.mutations[2].jsonPatch: Required value: must be specified when patchType is JSONPatch",
                "spec.mutations[2].applyConfiguration: Invalid value: \"{applyConfiguration}\": must not be specified when \
                 patchType is JSONPatch",
                "spec.mutations[3].applyConfiguration.expression: Required value",
                "spec.mutations[3].jsonPatch: Invalid value: \"{jsonPatch}\": must not be specified when patchType is \
                 ApplyConfiguration",
                "spec.reinvocationPolicy: Unsupported value: \"X\": supported values: \"IfNeeded\", \"Never\"",
            ],
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(check("mutatingadmissionpolicies", &format!("{{{CONSTRAINTS},{spec}}}")), expected, "{spec}");
    }
}
