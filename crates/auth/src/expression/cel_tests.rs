use super::*;

fn json(text: &str) -> Value {
    crate::json::parse(text.as_bytes()).unwrap()
}

fn compile(text: &str, subject: Subject, result: ResultKind) -> Result<Arc<dyn Expression>, String> {
    Cel::default().compile(text, subject, result).map_err(|e| match e {
        CompileError::Invalid(why) => why,
        CompileError::Internal(why) => format!("internal: {why}"),
    })
}

fn evaluate(text: &str, subject: Subject, value: &str) -> Result<Value, String> {
    compile(text, subject, ResultKind::Any)?.evaluate(&json(value))
}

#[test]
fn claims() {
    let claims =
        r#"{"sub":"jane","n":1.5,"roles":["a","b"],"deep":{"a.b":{"c":"d"}},"list":[{"x/y":"z"}],"none":null}"#;
    let cases = [
        ("claims.sub", Ok(Value::from("jane"))),
        ("'oidc:' + claims.sub", Ok("oidc:jane".into())),
        ("claims.roles", Ok(json(r#"["a","b"]"#))),
        ("dyn(claims.roles).map(r, 'g:' + r)", Ok(json(r#"["g:a","g:b"]"#))),
        ("claims.deep.a__dot__b.c", Ok("d".into())),
        ("claims.deep['a.b'].c", Ok("d".into())),
        ("claims.list[0].x__slash__y", Ok("z".into())),
        ("claims.?gone.orValue('x')", Ok("x".into())),
        ("has(claims.gone)", Ok(false.into())),
        ("claims.none", Ok(Value::Null)),
        // What is no answer to anybody.
        ("claims.n", Ok(Value::object())),
        ("b'x'", Ok(Value::object())),
        ("duration('1s')", Ok(Value::object())),
        ("[dyn(1), dyn('a')]", Ok(Value::Array(vec![Value::object(), "a".into()]))),
        ("claims.gone", Err("no such key: gone".to_owned())),
    ];
    for (text, expected) in cases {
        assert_eq!(evaluate(text, Subject::Claims, claims), expected, "{text}");
    }
}

#[test]
fn users() {
    let user = r#"{"username":"jane","uid":"1","groups":["system:a"],"extra":{"acme.io/team":["t"]}}"#;
    for (text, expected) in [
        ("!user.username.startsWith('system:')", true),
        ("user.groups.all(g, !g.startsWith('system:'))", false),
        ("user.extra['acme.io/team'][0] == 't'", true),
        ("user.extra.acme__dot__io__slash__team == ['t']", true),
        ("user.extra[?'gone'][0].orValue('') in ['x']", false),
    ] {
        assert_eq!(evaluate(text, Subject::User, user), Ok(expected.into()), "{text}");
    }
}

#[test]
fn reviews() {
    let review = r#"{"user":"u","uid":"","groups":["g"],"extra":{},"resourceAttributes":{"namespace":"n","verb":"get",
        "group":"","version":"v1","resource":"pods","subresource":"","name":"",
        "labelSelector":{"requirements":[{"key":"a","operator":"In","values":["b"]}]}}}"#;
    for (text, expected) in [
        ("has(request.resourceAttributes)", Ok(true)),
        ("request.resourceAttributes.namespace == 'n' && !('x' in request.groups)", Ok(true)),
        ("request.resourceAttributes.labelSelector.requirements.exists(r, r.key == 'a')", Ok(true)),
        ("request.?resourceAttributes.fieldSelector.rawSelector.orValue('') == ''", Ok(true)),
        ("has(request.nonResourceAttributes)", Ok(false)),
        ("request.nonResourceAttributes.path == '/'", Err("no such key: nonResourceAttributes".to_owned())),
    ] {
        let found = evaluate(text, Subject::AccessReview, review);
        assert_eq!(found, expected.map(Value::Bool), "{text}");
    }
    let untold = Cel::new(Selectors::Untold).compile(
        "has(request.resourceAttributes.fieldSelector)",
        Subject::AccessReview,
        ResultKind::Bool,
    );
    assert!(matches!(untold, Err(CompileError::Invalid(why)) if why.contains("undefined field 'fieldSelector'")));
}

#[test]
fn what_is_wrong_is_said_as_the_reference_says_it() {
    let undeclared = |name: &str| {
        format!(
            "compilation failed: ERROR: <input>:1:1: undeclared reference to '{name}' (in container '')\n | {name}\n | ^"
        )
    };
    let cases = [
        ("claims.ok", Subject::Claims, "must evaluate to bool".to_owned()),
        ("user.username", Subject::User, "must evaluate to bool".to_owned()),
        ("request.user", Subject::AccessReview, "must evaluate to bool but got string".to_owned()),
        ("user", Subject::Claims, undeclared("user")),
        ("claims", Subject::User, undeclared("claims")),
        ("claims", Subject::AccessReview, undeclared("claims")),
    ];
    for (text, subject, expected) in cases {
        assert_eq!(compile(text, subject, ResultKind::Bool).err(), Some(expected), "{text}");
    }
}

#[test]
fn fields_that_are_read() {
    let reads = |text: &str, field: &str| compile(text, Subject::Claims, ResultKind::Any).unwrap().reads(field);
    for text in
        ["claims.email", "has(claims.email) ? 'a' : 'b'", "claims.?email.orValue('')", "['x'].map(x, claims.email)"]
    {
        assert!(reads(text, "email"), "{text}");
    }
    for text in ["claims['email']", "claims.email_verified", "claims.x.email", "'claims.email'"] {
        assert!(!reads(text, "email"), "{text}");
    }
}
