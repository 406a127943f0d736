use super::*;
use crate::field::Path;
use crate::{Map, Str, Value};

fn labels(pairs: &[(&str, &str)]) -> Map {
    pairs.iter().copied().collect()
}

#[test]
fn label_selectors_parse_to_their_canonical_form() {
    for (text, want) in [
        ("", ""),
        ("  ", ""),
        ("x=a,y=b,z=c", "x=a,y=b,z=c"),
        ("z=c,x=a", "x=a,z=c"),
        ("x!=a,y=b", "x!=a,y=b"),
        ("x==a", "x==a"),
        ("x=", "x="),
        ("x= ", "x="),
        ("x=,z= ", "x=,z="),
        ("!x", "!x"),
        ("! x", "!x"),
        ("x", "x"),
        ("x>1", "x>1"),
        ("x<1,z>0", "x<1,z>0"),
        ("x in (foo,,baz),y,z notin ()", "x in (,baz,foo),y,z notin ()"),
        ("x in ()", "x in ()"),
        ("x in (a,a)", "x in (a)"),
        ("x in (,)", "x in ()"),
        ("x in (b, a)", "x in (a,b)"),
        ("x in (in,notin)", "x in (in,notin)"),
        ("in in (in)", "in in (in)"),
        ("in", "in"),
        ("notin=in", "notin=in"),
        ("x=a\0", "x=a"),
        ("x=\0a", "x=a"),
        ("k.io/x=a", "k.io/x=a"),
        ("x\t=\na\r", "x=a"),
    ] {
        let selector = LabelSelector::parse(text).unwrap_or_else(|e| panic!("{text:?}: {e}"));
        assert_eq!(selector.to_string(), want, "{text:?}");
        assert_eq!(LabelSelector::parse(want).unwrap().to_string(), want);
    }
}

#[test]
fn label_selector_errors_are_worded_as_upstream() {
    const KEY: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    for (text, want) in [
        ("=", "found '=', expected: !, identifier, or 'end of string'".to_owned()),
        (",", "found ',', expected: !, identifier, or 'end of string'".to_owned()),
        ("x,", "found '', expected: identifier after ','".to_owned()),
        ("x=a,=b", "found '=', expected: identifier after ','".to_owned()),
        ("x=a b", "found 'b', expected: ',' or 'end of string'".to_owned()),
        ("x a", "unable to parse requirement: found 'a', expected: in, notin, =, ==, !=, gt, lt".to_owned()),
        ("x(a)", "unable to parse requirement: found '(', expected: in, notin, =, ==, !=, gt, lt".to_owned()),
        ("!", "unable to parse requirement: found '', expected: identifier".to_owned()),
        ("!x=a", "found '=', expected: ',' or 'end of string'".to_owned()),
        ("x===a", "unable to parse requirement: found '=', expected: identifier".to_owned()),
        ("x=!a", "unable to parse requirement: found '!', expected: identifier".to_owned()),
        ("x in a", "unable to parse requirement: found 'a' expected: '('".to_owned()),
        ("x in", "unable to parse requirement: found '' expected: '('".to_owned()),
        ("x in (", "unable to parse requirement: found '', expected: ',', ')' or identifier".to_owned()),
        ("x in (a", "unable to parse requirement: found '', expected: ',' or ')'".to_owned()),
        ("x in (a b)", "unable to parse requirement: found 'b', expected: ',' or ')'".to_owned()),
        ("x in (a,", "unable to parse requirement: found '', expected: ',', or identifier".to_owned()),
        ("x in (a,=)", "unable to parse requirement: found '=', expected: ',', or identifier".to_owned()),
        ("x>a", "unable to parse requirement: values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must be an integer".to_owned()),
        ("-x=a", format!("unable to parse requirement: <nil>: Invalid value: \"-x\": name part {KEY}")),
        ("/x=a", "unable to parse requirement: <nil>: Invalid value: \"/x\": prefix part must be non-empty".to_owned()),
        ("x=-a", format!("unable to parse requirement: values[0][x]: Invalid value: \"-a\": {VALUE}")),
    ] {
        assert_eq!(LabelSelector::parse(text).unwrap_err().to_string(), want, "{text:?}");
    }
    let error = LabelSelector::parse_at("-x", &Path::new("spec")).unwrap_err().to_string();
    assert!(error.starts_with("unable to parse requirement: spec: Invalid value: \"-x\""), "{error}");
}

#[test]
fn label_selectors_match() {
    let set = labels(&[("a", "1"), ("b", ""), ("n", "10"), ("t", "x")]);
    for (text, want) in [
        ("", true),
        ("a=1", true),
        ("a=2", false),
        ("a==1", true),
        ("a!=1", false),
        ("c!=1", true),
        ("b=", true),
        ("c=", false),
        ("a in (2,1)", true),
        ("c in ()", false),
        ("a notin (1)", false),
        ("c notin (1)", true),
        ("a,b", true),
        ("c", false),
        ("!c", true),
        ("!a", false),
        ("n>9", true),
        ("n>10", false),
        ("n<11", true),
        ("t>1", false),
        ("t<1", false),
        ("c>1", false),
        ("a=1,c", false),
    ] {
        let selector = LabelSelector::parse(text).unwrap();
        assert_eq!(selector.matches(&set), want, "{text:?}");
        let sorted: Vec<(Str, Str)> = set.iter().map(|(k, v)| (k.into(), v.as_str().unwrap().into())).collect();
        assert_eq!(selector.matches(sorted.as_slice()), want, "{text:?}");
    }
    assert!(!LabelSelector::Nothing.matches(&set));
    assert!(LabelSelector::parse("!a").unwrap().matches(&None::<&Map>));
    assert_eq!(LabelSelector::from_labels(&labels(&[("b", "2"), ("a", "1")])).to_string(), "a=1,b=2");
}

#[test]
fn exact_values_are_found() {
    let selector = LabelSelector::parse("a=1,b in (2),c in (3,4),d!=5").unwrap();
    let exact = ["a", "b", "c", "d", "e"].map(|key| selector.exact_value(key));
    assert_eq!(exact, [Some("1"), Some("2"), None, None, None]);
}

fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
    let values: Vec<&str> = values.to_vec();
    Value::from([("key", Value::from(key)), ("operator", Value::from(operator)), ("values", Value::from(values))])
}

fn object(match_labels: &[(&str, &str)], expressions: Vec<Value>) -> Value {
    let labels = Value::Object(labels(match_labels));
    Value::from([("matchExpressions", Value::Array(expressions)), ("matchLabels", labels)])
}

#[test]
fn objects_become_selectors() {
    assert!(LabelSelector::from_object(None).unwrap().is_nothing());
    assert!(LabelSelector::from_object(Some(&Value::Null)).unwrap().is_nothing());
    assert!(LabelSelector::from_object(Some(&Value::object())).unwrap().is_everything());
    let all = object(
        &[("a", "1")],
        vec![
            expression("c", "In", &["y", "x"]),
            expression("b", "NotIn", &["x"]),
            expression("d", "Exists", &[]),
            expression("e", "DoesNotExist", &[]),
        ],
    );
    let selector = LabelSelector::from_object(Some(&all)).unwrap();
    assert_eq!(selector.to_string(), "a=1,b notin (x),c in (x,y),d,!e");
    let back = selector.to_object().unwrap();
    assert_eq!(LabelSelector::from_object(Some(&back)).unwrap().to_string(), selector.to_string());
    for (bad, want) in [
        (expression("a", "Within", &[]), "\"Within\" is not a valid label selector operator"),
        (
            expression("a", "In", &[]),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            expression("a", "Exists", &["x"]),
            "values: Invalid value: [\"x\"]: values set must be empty for exists and does not exist",
        ),
    ] {
        let error = LabelSelector::from_object(Some(&object(&[], vec![bad]))).unwrap_err();
        assert_eq!(error.to_string(), want);
    }
    assert_eq!(
        LabelSelector::parse("a>1").unwrap().to_object().unwrap_err().to_string(),
        "\"gt\" isn't supported in label selectors"
    );
}

#[test]
fn objects_are_validated_in_order() {
    let bad = object(
        &[("-a", "-b")],
        vec![expression("k", "In", &[]), expression("k", "Exists", &["v"]), expression("", "<", &["-v"])],
    );
    let errors = validate_label_selector(&bad, LabelSelectorRules::default(), &Path::of(&["spec", "selector"]));
    let heads: Vec<String> = errors.iter().map(|e| format!("{} {:?}", e.field, e.kind)).collect();
    assert_eq!(
        heads,
        [
            "spec.selector.matchLabels Invalid",
            "spec.selector.matchLabels Invalid",
            "spec.selector.matchExpressions[0].values Required",
            "spec.selector.matchExpressions[1].values Forbidden",
            "spec.selector.matchExpressions[2].operator Invalid",
            "spec.selector.matchExpressions[2].key Invalid",
            "spec.selector.matchExpressions[2].key Invalid",
            "spec.selector.matchExpressions[2].values[0] Invalid",
        ]
    );
    assert_eq!(errors[4].body(), "Invalid value: \"\\u003c\": not a valid selector operator");
    assert!(has_invalid_label_value(&bad));
    let rules = LabelSelectorRules { allow_invalid_values: true, allow_unknown_operators: true };
    assert_eq!(validate_label_requirement(&expression("k", "<", &["-v"]), rules, &Path::ROOT), Default::default());
    let fields = validate_field_requirement(&expression("", "In", &[]), rules, &Path::ROOT).to_string();
    assert_eq!(
        fields,
        "[key: Required value: must be specified, values: Required value: must be specified when `operator` is 'In' or 'NotIn']"
    );
}

#[test]
fn field_selectors_parse() {
    for (text, want) in [
        ("", ""),
        (",,", ""),
        ("x=a,a=b", "a=b,x=a"),
        ("x==a", "x=a"),
        ("x!=a", "x!=a"),
        ("x=", "x="),
        ("=a", "=a"),
        (r"x=a\,b\=c\\", r"x=a\,b\=c\\"),
        ("x= a ", "x= a "),
    ] {
        assert_eq!(FieldSelector::parse(text).unwrap().to_string(), want, "{text:?}");
    }
    for (text, want) in [
        ("abc", "invalid selector: 'abc'; can't understand 'abc'"),
        ("x=a,abc", "invalid selector: 'x=a,abc'; can't understand 'abc'"),
        ("x===a", "invalid field selector: unescaped character in value: 61"),
        ("x=a=b", "invalid field selector: unescaped character in value: 61"),
        (r"x=\a", r"invalid field selector: invalid escape sequence: \a"),
        (r"x=a\", r"invalid field selector: invalid escape sequence: \"),
    ] {
        assert_eq!(FieldSelector::parse(text).unwrap_err().to_string(), want, "{text:?}");
    }
}

#[test]
fn field_selectors_match_and_transform() {
    let fields = [("metadata.name", "a"), ("status.phase", "")];
    for (text, want) in [
        ("", true),
        ("metadata.name=a", true),
        ("metadata.name!=a", false),
        ("metadata.name=b", false),
        ("status.phase=", true),
        ("unknown=", true),
        ("unknown!=x", true),
        ("metadata.name=a,status.phase=x", false),
    ] {
        assert_eq!(FieldSelector::parse(text).unwrap().matches(&fields[..]), want, "{text:?}");
    }
    assert!(!FieldSelector::Nothing.matches(&fields[..]));
    let selector = FieldSelector::parse("host=n,drop=,metadata.name!=b").unwrap();
    let moved = selector.clone().transform::<SelectorError>(|field, value| match &*field {
        "host" => Ok(("spec.nodeName".into(), value)),
        "drop" => Ok((Str::default(), Str::default())),
        _ => Ok((field, value)),
    });
    let moved = moved.unwrap();
    assert_eq!(moved.to_string(), "spec.nodeName=n,metadata.name!=b");
    assert_eq!((moved.exact_value("spec.nodeName"), moved.exact_value("metadata.name")), (Some("n"), None));
    assert_eq!(selector.transform(|_, _| Err::<(Str, Str), _>("no")), Err("no"));
}
