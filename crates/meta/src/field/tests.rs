use super::*;
use crate::Value;

#[test]
fn paths_render_as_upstream() {
    let root = Path::new("a");
    let b = root.child("b");
    let b0 = b.index(0);
    let spec = Path::of(&["spec", "template"]);
    for (path, want) in [
        (Path::ROOT, "<nil>"),
        (Path::ROOT.child("a"), "a"),
        (Path::ROOT.index(3), "[3]"),
        (Path::ROOT.index(3).child("x"), "[3].x"),
        (root, "a"),
        (b0, "a.b[0]"),
        (b0.key("k.e/y"), "a.b[0][k.e/y]"),
        (b0.child("c"), "a.b[0].c"),
        (b.item("c", 7), "a.b.c[7]"),
        (b.entry("c", "k"), "a.b.c[k]"),
        (spec.children(&["x", "y"]), "spec.template.x.y"),
        (Path::new(""), "[]"),
    ] {
        assert_eq!(path.to_string(), want);
    }
}

#[test]
fn bodies_are_worded_as_upstream() {
    let p = Path::new("f");
    let object = Value::from([("k", 1i64)]);
    for (error, want) in [
        (Error::required(&p, ""), "f: Required value"),
        (Error::required(&p, "why"), "f: Required value: why"),
        (Error::invalid(&p, "a\"b", "bad"), "f: Invalid value: \"a\\\"b\": bad"),
        (Error::invalid(&p, "é\n", "bad"), "f: Invalid value: \"é\\n\": bad"),
        (Error::invalid(&p, 5i64, "bad"), "f: Invalid value: 5: bad"),
        (Error::invalid(&p, 1.5, "bad"), "f: Invalid value: 1.5: bad"),
        (Error::invalid(&p, true, "bad"), "f: Invalid value: true: bad"),
        (Error::invalid(&p, Value::Null, "bad"), "f: Invalid value: null: bad"),
        (Error::invalid(&p, &object, "bad"), "f: Invalid value: {\"k\":1}: bad"),
        (Error::invalid(&p, vec!["a", "<"], "bad"), "f: Invalid value: [\"a\",\"\\u003c\"]: bad"),
        (Error::invalid(&p, BadValue::json("<x>"), "bad"), "f: Invalid value: \"\\u003cx\\u003e\": bad"),
        (Error::invalid(&p, BadValue::text("core.X{}"), "bad"), "f: Invalid value: core.X{}: bad"),
        (Error::invalid(&p, BadValue::Omitted, "bad"), "f: Invalid value: bad"),
        (Error::type_invalid(&p, "s", "bad"), "f: Invalid value: \"s\": bad"),
        (Error::not_supported(&p, "c", ["a", "b"]), "f: Unsupported value: \"c\": supported values: \"a\", \"b\""),
        (Error::not_supported::<&str>(&p, "c", []), "f: Unsupported value: \"c\""),
        (Error::duplicate(&p, "x"), "f: Duplicate value: \"x\""),
        (Error::not_found(&p, "x"), "f: Not found: \"x\""),
        (Error::forbidden(&p, "no"), "f: Forbidden: no"),
        (Error::internal(&p, "oops"), "f: Internal error: oops"),
        (Error::too_long(&p, 1), "f: Too long: may not be more than 1 byte"),
        (Error::too_long(&p, 63), "f: Too long: may not be more than 63 bytes"),
        (Error::too_long_characters(&p, 1), "f: Too long: may not be more than 1 character"),
        (Error::too_long_characters(&p, 8), "f: Too long: may not be more than 8 characters"),
        (Error::too_long_unspecified(&p), "f: Too long: value is too long"),
        (Error::too_short(&p, 1), "f: Too short: must be at least 1 character"),
        (Error::too_short(&p, 2), "f: Too short: must be at least 2 characters"),
        (Error::too_many(&p, 9, 8), "f: Too many: 9: must have at most 8 items"),
        (Error::too_many(&p, 2, 1), "f: Too many: 2: must have at most 1 item"),
        (Error::too_many_of_unknown(&p, 1), "f: Too many: must have at most 1 item"),
        (Error::too_few(&p, 0, 1), "f: Too few: 0: must have at least 1 item"),
    ] {
        assert_eq!(error.to_string(), want);
    }
}

#[test]
fn lists_join_and_drop_repetitions() {
    let (a, b) = (Path::new("a"), Path::new("b"));
    let (ea, eb) = (Error::required(&a, ""), Error::required(&b, ""));
    for (list, want) in [
        (vec![], ""),
        (vec![ea.clone()], "a: Required value"),
        (vec![ea.clone(), ea.clone()], "a: Required value"),
        (vec![ea.clone(), eb.clone(), ea.clone()], "[a: Required value, b: Required value]"),
    ] {
        assert_eq!(ErrorList(list).to_string(), want);
    }
    assert_eq!(ErrorList(vec![ea]).prefix_detail("x: ")[0].to_string(), "a: Required value: x: ");
}
