use super::*;

const GATES: Gates = Gates { consumable_capacity: true, list_attributes: false };
const LISTS: Gates = Gates { list_attributes: true, ..GATES };

fn text(s: &str) -> Value {
    Value::from(s)
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(k, v)| (kubelith_meta::Str::from(k), v)).collect())
}

fn gpu() -> Value {
    let attribute = |kind: &'static str, value: Value| object([(kind, value)]);
    let strings = Value::Array(vec![text("a"), text("b")]);
    object([
        (
            "attributes",
            object([
                ("model", attribute("string", text("example-one"))),
                ("cores", attribute("int", Value::Int(8))),
                ("good", attribute("bool", Value::Bool(true))),
                ("driverVersion", attribute("version", text("1.2.0"))),
                ("other.example.com/good", attribute("bool", Value::Bool(false))),
                ("names", attribute("strings", strings)),
            ]),
        ),
        ("capacity", object([("memory", object([("value", text("16Gi"))]))])),
    ])
}

fn compile(text: &str, gates: Gates, is_stored: bool) -> Result<Selector, SelectorError> {
    Selectors::new(Libraries { since: 35, authz_selectors: true }, gates).compile(text, is_stored)
}

/// The greatest cost is what the reference's estimate is for an expression of this form.
#[test]
fn selectors_cost_and_match() {
    let cases = [
        ("true", 0, Ok(true)),
        (r#"device.driver == "dra.example.com""#, 4, Ok(true)),
        (r#"device.driver == """#, 2, Ok(false)),
        (r#"device.attributes["dra.example.com"].good"#, 4, Ok(true)),
        (r#"device.attributes["dra.example.com"]["good"]"#, 4, Ok(true)),
        (r#"device.attributes["other.example.com"].good"#, 4, Ok(false)),
        (r#"cel.bind(dra, device.attributes["dra.example.com"], dra.good)"#, 15, Ok(true)),
        (r#"device.attributes["dra.example.com"].cores > 0"#, 5, Ok(true)),
        (r#"device.attributes["dra.example.com"].model == "fish""#, 5, Ok(false)),
        (r#"device.attributes["dra.example.com"].driverVersion.isGreaterThan(semver("0.0.1"))"#, 6, Ok(true)),
        (r#"device.capacity["dra.example.com"].memory.isGreaterThan(quantity("1Ki"))"#, 6, Ok(true)),
        (r#""nowhere" in device.attributes"#, 3, Ok(false)),
        (r#""dra.example.com" in device.attributes"#, 3, Ok(true)),
        (r#""memory" in device.capacity["nowhere"]"#, 4, Ok(false)),
        (r#"device.attributes["nowhere"].none.isGreaterThan(quantity("0"))"#, 6, Err("no such key: none")),
        (r#"device.attributes.exists_one(x, x == "dra.example.com")"#, 164, Ok(true)),
        (r#"device.attributes["dra.example.com"].exists_one(x, x == "services")"#, 133, Ok(false)),
        (r#"device.attributes["dra.example.com"].model.split("example").size() >= 2"#, 19, Ok(true)),
        (r#"device.attributes["dra.example.com"].model.matches("[^a]?exa")"#, 18, Ok(true)),
        (r#"device.capacity.exists_one(x, x == "dra.example.com")"#, 164, Ok(true)),
        (r#"device.capacity["dra.example.com"].exists_one(x, x == "memory")"#, 133, Ok(true)),
        ("device.allowMultipleAllocations == false", 3, Ok(true)),
    ];
    let mut gpu = gpu();
    if let Some(Value::Object(attributes)) = gpu.as_object_mut().and_then(|gpu| gpu.get_mut("attributes")) {
        attributes.remove("names");
    }
    for (text, max_cost, expected) in cases {
        let selector = compile(text, GATES, false).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        assert_eq!(selector.max_cost, max_cost, "{text}");
        let found = selector.matches("dra.example.com", &gpu);
        assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|e: &&str| *e), "{text}");
    }
    let selector = compile("true", GATES, false).unwrap();
    assert_eq!(
        selector.matches("d", &self::gpu()),
        Err("attribute names: unsupported attribute value".to_owned()),
        "a list, without its gate"
    );
}

#[test]
fn attributes_may_be_lists() {
    let cases = [
        (r#"device.attributes["dra.example.com"].names.size() == 2"#, 6, Ok(true)),
        (r#"device.attributes["dra.example.com"].cores.exists(x, x > 0)"#, 5 + 6 * 64, Err(())),
        (r#"device.attributes["dra.example.com"].names.all(x, x != "")"#, 5 + 4 * 64, Ok(true)),
        (r#"device.attributes["dra.example.com"].names.includes("b")"#, 4 + 48, Ok(true)),
        (r#"device.attributes["dra.example.com"].cores.includes(7)"#, 4 + 48, Ok(false)),
        (r#"device.attributes["dra.example.com"].driverVersion.includes(semver("1.2.0"))"#, 4 + 48 + 1, Ok(true)),
    ];
    for (text, max_cost, expected) in cases {
        let selector = compile(text, LISTS, false).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        assert_eq!(selector.max_cost, max_cost, "{text}");
        assert_eq!(selector.matches("dra.example.com", &gpu()).map_err(|_| ()), expected, "{text}");
    }
    assert!(compile("dyn(true)", LISTS, false).is_ok());
}

#[test]
fn gates_and_storage_decide_what_there_is() {
    let many = Gates { consumable_capacity: false, ..GATES };
    let includes = r#"device.attributes["d"].a.includes("x")"#;
    for (text, gates, is_stored, expected) in [
        ("device.allowMultipleAllocations", many, false, Some("undefined field 'allowMultipleAllocations'")),
        ("device.allowMultipleAllocations", many, true, None),
        (includes, GATES, false, Some("undeclared reference to 'includes'")),
        (includes, GATES, true, None),
        ("1", GATES, false, Some("must evaluate to bool or the unknown type, not int")),
        ("dyn(true)", GATES, false, Some("must evaluate to bool or the unknown type, not dyn")),
        ("cel.bind(1, 2, true)", GATES, false, Some("cel.bind() variable names must be simple identifiers")),
        ("cel.bind(x, 2, x == 2)", GATES, false, None),
        ("x.bind(x, 2, x == 2)", GATES, false, Some("undeclared reference to 'bind'")),
    ] {
        match (compile(text, gates, is_stored), expected) {
            (Err(SelectorError::Invalid(got)), Some(part)) => assert!(got.contains(part), "{text}: {got}"),
            (got, expected) => assert_eq!(got.err(), expected.map(|e| SelectorError::Invalid(e.into())), "{text}"),
        }
    }
}

#[test]
fn older_servers_have_fewer_functions() {
    let compile = |text: &str, since: u32| Env::with(Libraries { since, authz_selectors: true }.iter()).compile(text);
    for text in ["[3, 1].sort() == [1, 3]", "[3, 1].sortBy(x, -x) == [3, 1]", "lists.range(3) == [0, 1, 2]"] {
        assert!(compile(text, 34).is_ok(), "{text}");
        assert!(compile(text, 33).is_err(), "{text}");
    }
    assert!(compile("semver('1.0.0').major() == 1", 33).is_ok());
}
