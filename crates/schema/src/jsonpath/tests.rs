use super::*;
use kubelith_meta::field::Path;

fn object(entries: &[(&str, Value)]) -> Value {
    Value::Object(entries.iter().cloned().collect())
}

fn list(values: Vec<Value>) -> Value {
    Value::Array(values)
}

fn address(kind: &str, address: &str) -> Value {
    object(&[("type", kind.into()), ("address", address.into())])
}

fn node(name: &str, cpu: &str, ready: bool, addresses: Vec<Value>) -> Value {
    object(&[
        ("metadata", object(&[("name", name.into()), ("labels", object(&[("kubernetes.io/hostname", name.into())]))])),
        (
            "status",
            object(&[
                ("capacity", object(&[("cpu", cpu.into())])),
                ("ready", ready.into()),
                ("addresses", list(addresses)),
            ]),
        ),
    ])
}

fn nodes() -> Value {
    object(&[
        ("kind", "List".into()),
        (
            "items",
            list(vec![
                node("n1", "4", true, vec![address("Legacy", "127.0.0.1")]),
                node("n2", "8", false, vec![address("Legacy", "127.0.0.2"), address("another", "127.0.0.3")]),
            ]),
        ),
        ("empty", list(vec![])),
        ("null", Value::Null),
        ("ints", Value::from(vec![1i64, 2, 3, 4])),
        ("floats", Value::from(vec![1.0, 2.5])),
        ("count", 3i64.into()),
        ("flag", true.into()),
    ])
}

#[test]
fn templates_render() {
    let data = nodes();
    for (template, want) in [
        ("plain text", "plain text"),
        ("{.kind}", "List"),
        ("kind={.kind}!", "kind=List!"),
        ("{ .kind }", "List"),
        ("{$.kind}", "List"),
        ("{@.kind}", "List"),
        ("{['kind']}", "List"),
        (r#"{"{"}"#, "{"),
        (r#"{"a\tb"}"#, "a\tb"),
        (r"{'it\'s'}", "it's"),
        ("{.ints}", "[1,2,3,4]"),
        ("{.ints[0]}", "1"),
        ("{.ints[]}", "1"),
        ("{.ints[-1]}", "4"),
        ("{.ints[-2]}", "3"),
        ("{.ints[0:2]}", "1 2"),
        ("{.ints[:2]}", "1 2"),
        ("{.ints[2:]}", "3 4"),
        ("{.ints[1:-1]}", "2 3"),
        ("{.ints[:4:2]}", "1 3"),
        ("{.ints[1::2]}", "2 4"),
        ("{.ints[::99]}", "1"),
        ("{.ints[1:1]}", ""),
        ("{.ints[*]}", "1 2 3 4"),
        ("{.ints[0,2,3]}", "1 3 4"),
        ("{.ints[?(@>2)]}", "3 4"),
        ("{.ints[?(@ <= 2)]}", "1 2"),
        ("{.ints[?(@!=2)]}", "1 3 4"),
        ("{.floats[?(@>1.5)]}", "2.5"),
        ("{.floats[0]}", "1"),
        ("{.null}", "null"),
        ("{.flag}", "true"),
        ("{.items[*].metadata.name}", "n1 n2"),
        ("{.items[*]['metadata.name', 'status.capacity']}", r#"n1 n2 {"cpu":"4"} {"cpu":"8"}"#),
        ("{.items[*].status.addresses[*].address}", "127.0.0.1 127.0.0.2 127.0.0.3"),
        (r"{.items[0].metadata.labels.kubernetes\.io/hostname}", "n1"),
        (r#"{.items[?(@.metadata.labels.kubernetes\.io/hostname=="n2")].status.capacity.cpu}"#, "8"),
        (r#"{.items[*].status.addresses[?(@.type=='another')].address}"#, "127.0.0.3"),
        ("{.items[?(@..ready==true)].metadata.name}", "n1"),
        ("{.items[?(@.status.addresses[1])].metadata.name}", "n1 n2"),
        ("{.items[?(@.nothing)].metadata.name}", ""),
        ("{..name}", "n1 n2"),
        ("{...name}", "n1 n2"),
        ("{.items[0].metadata.labels.*}", "n1"),
        ("{range .items[*]}{.metadata.name}, {end}{.kind}", "n1, n2, List"),
        ("{range .items[*]}{range .status.addresses[*]}{.address},{end};{end}", "127.0.0.1,;127.0.0.2,127.0.0.3,;"),
        ("{range .items[*]}[{.metadata.name}, {.status.capacity}] {end}", r#"[n1, {"cpu":"4"}] [n2, {"cpu":"8"}] "#),
        ("{range .ints[*]}{@}", "1234"),
        ("{range .empty[*]}x{end}y", "y"),
    ] {
        let path = JsonPath::parse_template(template).unwrap_or_else(|e| panic!("{template}: {e}"));
        assert_eq!(path.render(&data, MissingKeys::Error).as_deref(), Ok(want), "{template}");
    }
}

#[test]
fn missing_fields_may_be_allowed() {
    let data = nodes();
    for (template, want) in [("{.x}", ""), ("a{.x.y}b", "ab"), ("{range .x[*]}{.y}{range .z}{.q}{end}{end}c", "c")] {
        let path = JsonPath::parse_template(template).unwrap();
        assert_eq!(path.render(&data, MissingKeys::Allowed).as_deref(), Ok(want), "{template}");
    }
}

#[test]
fn wrong_paths_have_upstreams_errors() {
    for (template, want) in [
        ("{.hello", "unclosed action"),
        ("{.a\n}", "unclosed action"),
        ("{*}", "unrecognized character in action: U+002A '*'"),
        (r"{\\\}", r"unrecognized character in action: U+005C '\'"),
        ("{+12.3.0}", "cannot parse number +12.3.0"),
        ("{+}", "cannot parse number +"),
        ("{[1}", "unterminated array"),
        ("{[a]}", "invalid array index a"),
        ("{[1:2:3:4]}", "invalid array index 1:2:3:4"),
        ("{[-]}", "array index - is not a number"),
        ("{[99999999999999999999]}", "array index 99999999999999999999 is not a number"),
        ("{[?(.price]}", "unterminated filter"),
        ("{[?(.price)}", "unclosed array expect ]"),
        ("{[?(==1)]}", "unrecognized character in action: U+003D '='"),
        ("{[?(@.a[?(@.b)])]}", "unterminated filter"),
        ("{........}", "invalid multiple recursive descent"),
        ("{\"abc}", "unterminated quoted string"),
        (r#"{"\q"}"#, r#"unquote string "\q" error invalid syntax"#),
    ] {
        let error = JsonPath::parse_template(template).map(|p| p.nodes).unwrap_err();
        assert_eq!(error.to_string(), want, "{template}");
    }
}

#[test]
fn failing_paths_have_upstreams_errors() {
    let data = nodes();
    for (template, want) in [
        ("{hello}", "unrecognized identifier hello"),
        ("{.hello}", "hello is not found"),
        ("{.kind[0]}", "string is not array or slice"),
        ("{.items[0][0]}", "map[string]interface {} is not array or slice"),
        ("{.ints[4]}", "array index out of bounds: index 4, length 4"),
        ("{.ints[-5]}", "array index out of bounds: index -1, length 4"),
        ("{.ints[0:9]}", "array index out of bounds: index 8, length 4"),
        ("{.ints[3:1]}", "starting index 3 is greater than ending index 1"),
        ("{.ints[::0]}", "step must be > 0"),
        ("{.ints[?(@<>10)]}", "unrecognized filter operator <>"),
        ("{.ints[?(@>1.5)]}", "incompatible types for comparison"),
        ("{.items[?(@>1)]}", "invalid type for comparison"),
        ("{.kind[?(@)]}", "List is not array or slice and cannot be filtered"),
        ("{.items[*].status.capacity[?(@)]}", "map[cpu:4] is not array or slice and cannot be filtered"),
        ("{.null[?(@)]}", "<nil> is not array or slice and cannot be filtered"),
        ("{range .ints[*]}{end}{end}", "not in range, nothing to end"),
    ] {
        let path = JsonPath::parse_template(template).unwrap_or_else(|e| panic!("{template}: {e}"));
        assert_eq!(path.render(&data, MissingKeys::Error).unwrap_err().to_string(), want, "{template}");
    }
}

#[test]
fn columns_find_values() {
    let data = nodes();
    let find = |path: &str| JsonPath::parse(path).unwrap().find(&data).into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(find(".kind"), [Value::from("List")]);
    assert_eq!(find(".kind.x"), []);
    assert_eq!(find(".null"), [Value::Null]);
    assert_eq!(find(".null.x"), []);
    assert_eq!(find(".ints[9]"), []);
    assert_eq!(find(".items[?(@.status.ready==true)].metadata.name"), [Value::from("n1")]);
    assert_eq!(JsonPath::parse(".ints[1:]").unwrap().find_first(&data), Some(&Value::Int(2)));
}

#[test]
fn cells_follow_the_columns_type() {
    let now = Time::from_unix(90);
    for (kind, value, want) in [
        ("string", Value::from("a"), Value::from("a")),
        ("string", Value::from(1i64), Value::from("1")),
        ("string", Value::from(1.5), Value::from("1.5")),
        ("string", Value::from(true), Value::from("true")),
        ("string", Value::Null, Value::from("<no value>")),
        ("string", Value::from(vec!["<"]), Value::from("[\"\\u003c\"]")),
        ("integer", Value::from(1.9), Value::from(1i64)),
        ("integer", Value::from("1"), Value::Null),
        ("number", Value::from(1i64), Value::from(1.0)),
        ("boolean", Value::from("true"), Value::Null),
        ("boolean", Value::from(false), Value::from(false)),
        ("date", Value::from("1970-01-01T00:00:00Z"), Value::from("90s")),
        ("date", Value::from("yesterday"), Value::from("<invalid>")),
        ("date", Value::from(""), Value::from("<unknown>")),
        ("date", Value::from("0001-01-01T00:00:00Z"), Value::from("<unknown>")),
        ("date", Value::from(1i64), Value::Null),
    ] {
        assert_eq!(cell(kind, &value, now), want, "{kind} {value:?}");
    }
}

#[test]
fn results_are_limited() {
    let mut deep = Value::from(vec![1i64]);
    for _ in 0..60 {
        deep = list(vec![deep]);
    }
    let unions = JsonPath::parse(&"[0,0]".repeat(60)).unwrap();
    let error = unions.results(&deep, MissingKeys::Error).unwrap_err();
    assert_eq!(error.to_string(), "path has too many results");
    let descents = JsonPath::parse(&"...*".repeat(40)).unwrap();
    assert!(descents.results(&deep, MissingKeys::Allowed).is_err());
    let ranges = JsonPath::parse_template(&"{range [0,0]}".repeat(50)).unwrap();
    let error = ranges.results(&deep, MissingKeys::Error).unwrap_err();
    assert_eq!(error.to_string(), "path has too many results");
    let nested = JsonPath::parse_template(&"{range @}".repeat(100_000)).unwrap();
    let error = nested.results(&deep, MissingKeys::Error).unwrap_err();
    assert_eq!(error.to_string(), "ranges are nested too deeply");
}

#[test]
fn simple_paths_read_and_write() {
    let mut data = object(&[("spec", object(&[("replicas", 2i64.into())]))]);
    let path = SimplePath::new(".spec.replicas");
    assert_eq!((path.get(&data), path.to_string()), (Some(&Value::Int(2)), ".spec.replicas".to_owned()));
    path.set(&mut data, 5i64);
    SimplePath::new(".status.a.b").set(&mut data, "x");
    assert_eq!((path.get(&data), data.str_at(&["status", "a", "b"])), (Some(&Value::Int(5)), "x"));
    assert_eq!(SimplePath::new(".x.y").get(&data), None);
    let p = Path::new("p");
    for (text, want) in [
        ("", "p: Invalid value: \"\": must not be empty"),
        ("spec", "p: Invalid value: \"spec\": must be a simple json path starting with ."),
        (".", ""),
        (".a[0]", ""),
    ] {
        assert_eq!(validate_simple_path(text, &p).to_string(), want);
    }
}
