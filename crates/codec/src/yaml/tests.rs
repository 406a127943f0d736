use super::*;
use crate::json;

fn to_json(yaml: &str) -> Result<String, String> {
    read(yaml.as_bytes()).map(|d| json::to_string(&d.value)).map_err(|e| e.to_string())
}

#[test]
fn reads_as_json() {
    for (yaml, want) in [
        ("", "null"),
        ("# comment only\n", "null"),
        ("just a string", r#""just a string""#),
        ("- a\n- b\n", r#"["a","b"]"#),
        (
            "a: 1\nb: yes\nc: ~\nd: 0x10\ne: 1.5\nf: 2001-01-01\ng: '1'\n",
            r#"{"a":1,"b":true,"c":null,"d":16,"e":1.5,"f":"2001-01-01","g":"1"}"#,
        ),
        ("a: 1.0\nb: 1e2\n", r#"{"a":1,"b":100}"#),
        ("y: z\n1: a\n1.5: b\n1e6: c\n", r#"{"1":"a","1.5":"b","1e+06":"c","true":"z"}"#),
        ("a: |\n  l1\n  l2\nb: >-\n  f1\n  f2\n", r#"{"a":"l1\nl2\n","b":"f1 f2"}"#),
        (
            "metadata: {name: y4}\ndata: {a: \"x\", b: !!str 5}\n",
            r#"{"data":{"a":"x","b":"5"},"metadata":{"name":"y4"}}"#,
        ),
        ("a: 1\n---\na: 2\n", r#"{"a":1}"#),
        ("--- \nx: &b {k: v}\nz: *b\n", r#"{"x":{"k":"v"},"z":{"k":"v"}}"#),
        ("x: !!binary aGk=\n", r#"{"x":"hi"}"#),
        ("{\"a\": [1, {\"b\": 1.0}]}", r#"{"a":[1,{"b":1}]}"#),
        ("{\"a\": \"\\ud83d\"", "yaml: found invalid Unicode character escape code"),
        // Merge keys: what comes later wins.
        ("a: 1\n<<: {a: 2, b: 3}\n", r#"{"a":2,"b":3}"#),
        ("<<: {a: 2, b: 3}\na: 1\n", r#"{"a":1,"b":3}"#),
        (
            "x: &x {a: 1, b: 1}\nw: &y {a: 2, c: 2}\nz:\n  <<: [*x, *y]\n",
            r#"{"w":{"a":2,"c":2},"x":{"a":1,"b":1},"z":{"a":1,"b":1,"c":2}}"#,
        ),
        ("'<<': {a: 1}\n", r#"{"\u003c\u003c":{"a":1}}"#),
    ] {
        let got = to_json(yaml).unwrap_or_else(|e| e);
        assert_eq!(got, want, "{yaml:?}");
    }
}

#[test]
fn errors_are_worded_as_the_reference_does() {
    for (yaml, want) in [
        ("metadata:\n name: y7\n  data: x\n", "yaml: line 3: mapping values are not allowed in this context"),
        ("\tmetadata: x\n", "yaml: found character that cannot start any token"),
        ("a: b: c\n", "yaml: mapping values are not allowed in this context"),
        ("a: [1, 2\n", "yaml: line 1: did not find expected ',' or ']'"),
        ("a: *x\n", "yaml: unknown anchor 'x' referenced"),
        ("a: &a [*a]\n", "yaml: anchor 'a' value contains itself"),
        ("a: !!int x\n", "yaml: cannot decode !!str `x` as a !!int"),
        ("? [a]\n: 1\n", "yaml: invalid map key: []interface {}{\"a\"}"),
        ("? {a: 1}\n: 1\n", "yaml: invalid map key: map[interface {}]interface {}{\"a\":1}"),
        ("<<: 1\n", "yaml: map merge requires map or sequence of maps as the value"),
        ("~: 1\n", "unsupported map key of type: %!s(<nil>), key: <nil>, value: 1"),
        ("a: .inf\n", "json: unsupported value: +Inf"),
        ("a: \u{1}\n", "yaml: control characters are not allowed"),
    ] {
        assert_eq!(to_json(yaml), Err(want.into()), "{yaml:?}");
    }
    assert_eq!(read(b"a: \xff\n").unwrap_err().to_string(), "yaml: invalid leading UTF-8 octet");
    assert_eq!(read(b"a: \xc2").unwrap_err().to_string(), "yaml: incomplete UTF-8 octet sequence");
}

#[test]
fn duplicates_have_lines() {
    let d = read(b"data:\n  k: v\n  k: w\n  1: a\n  1: b\n  \"1\": c\nx:\n  y: 1\nx:\n  z: 1\n").unwrap();
    assert_eq!(json::to_string(&d.value), r#"{"data":{"1":"c","k":"w"},"x":{"z":1}}"#);
    assert_eq!(
        d.duplicates,
        [
            "line 3: key \"k\" already set in map",
            "line 5: key 1 already set in map",
            "line 10: key \"x\" already set in map"
        ]
    );
    assert_eq!(d.strict_error().unwrap().to_string().lines().next(), Some("yaml: unmarshal errors:"));
    // JSON, too.
    assert_eq!(read(br#"{"a":1,"a":2}"#).unwrap().duplicates, ["line 1: key \"a\" already set in map"]);
}

#[test]
fn bombs_are_refused() {
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for i in 1..10 {
        let refs = vec![format!("*a{}", i - 1); 9].join(",");
        bomb.push_str(&format!("a{i}: &a{i} [{refs}]\n"));
    }
    assert_eq!(to_json(&bomb), Err("yaml: document contains excessive aliasing".into()));
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), ["*a"; 1000].join(","));
    assert_eq!(to_json(&long), Err("yaml: document contains excessive aliasing".into()));
    let deep = "[".repeat(20_000);
    assert_eq!(to_json(&deep), Err("yaml: exceeded max depth of 10000".into()));
}

fn yaml(json: &str) -> String {
    String::from_utf8(to_vec(&json::parse(json.as_bytes()).unwrap())).unwrap()
}

#[test]
fn writes_as_the_reference_does() {
    for (json, want) in [
        ("null", "null\n"),
        ("{}", "{}\n"),
        ("[]", "[]\n"),
        (r#""a\nb\n""#, "|\n  a\n  b\n"),
        (
            r#"{"a":{"b":[]},"c":[{"d":1,"e":[2,[3,4],{}]},"x"],"o":null}"#,
            "a:\n  b: []\nc:\n- d: 1\n  e:\n  - 2\n  - - 3\n    - 4\n  - {}\n- x\no: null\n",
        ),
        (
            r#"{"name":"y","n":"1","z":"true","e":"","q":"\"yes\"","d":"2020-01-01T00:00:00Z","t":"1:30"}"#,
            "d: \"2020-01-01T00:00:00Z\"\ne: \"\"\n\"n\": \"1\"\nname: \"y\"\nq: '\"yes\"'\nt: \"1:30\"\nz: \"true\"\n",
        ),
        (
            r##"{"a":"x: y","b":"- x","c":"#x","d":"a #b","e":" x","f":"x ","g":"it's","h":"'x'","i":"a:","j":"*","k":"-","l":"?","m":"-x","o":"---"}"##,
            "a: 'x: y'\nb: '- x'\nc: '#x'\nd: 'a #b'\ne: ' x'\nf: 'x '\ng: it's\nh: '''x'''\ni: 'a:'\nj: '*'\nk: '-'\nl: '?'\nm: -x\no: '---'\n",
        ),
        (
            r#"{"multi":"a\nb\n","strip":"a\nb","keep":"a\n\n","lead":" a\nb","nl":"\na","trail":"a \nb","tab":"a\tb\nc","end":"a\nb "}"#,
            "end: \"a\\nb \"\nkeep: |+\n  a\n\nlead: |2-\n   a\n  b\nmulti: |\n  a\n  b\nnl: |2-\n\n  a\nstrip: |-\n  a\n  b\ntab: \"a\\tb\\nc\"\ntrail: \"a \\nb\"\n",
        ),
        (
            r#"{"a":"é","b":"😀","c":"\u0001\u007f\u00a0\u2028"}"#,
            "a: é\nb: \"\\U0001F600\"\nc: \"\\x01\\x7F\u{a0}\\L\"\n",
        ),
        (
            r#"{"f":[1.5,1e21,1e-7,1e20,12345678.5,10000000000000000000,-0.0,100.0]}"#,
            "f:\n- 1.5\n- 1e+21\n- 1e-07\n- 1e+20\n- 1.23456785e+07\n- 10000000000000000000\n- 0\n- 100\n",
        ),
        (r#"{"a\nb":1}"#, "? |-\n  a\n  b\n: 1\n"),
        (r#"{"":1}"#, "\"\": 1\n"),
    ] {
        assert_eq!(yaml(json), want, "{json}");
    }
}

#[test]
fn long_lines_are_folded() {
    let words = |n: usize| vec!["word"; n].join(" ");
    let text = words(25);
    assert_eq!(yaml(&format!(r#"{{"a":{{"b":"{text}"}}}}"#)), format!("a:\n  b: {}\n    {}\n", words(16), words(9)));
    assert_eq!(yaml(&format!(r#"{{"b":"'{text}"}}"#)), format!("b: '''{}\n  {}'\n", words(16), words(9)));
    assert_eq!(yaml(&format!(r#"["{text}\t"]"#)), format!("- \"{}\n  {}\\t\"\n", words(16), words(9)));
    let key = "k".repeat(129);
    assert_eq!(yaml(&format!(r#"{{"{key}":{{"a":1}}}}"#)), format!("? {key}\n: a: 1\n"));
}

/// What is written reads back, whatever the strings.
#[test]
fn round_trip() {
    let pieces = ["a", " ", "\n", ":", "#", "-", "'", "\"", "\\", "é", "1", "\t", "{", "~", "😀", "\u{2028}"];
    let mut seed = 42u64;
    let mut next = |n: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % n
    };
    for _ in 0..3000 {
        let text: String = (0..next(12)).map(|_| pieces[next(pieces.len())]).collect();
        let key: String = (0..next(4)).map(|_| pieces[next(pieces.len())]).collect();
        let v = Value::from([(
            key.as_str(),
            Value::Array(vec![text.as_str().into(), Value::from([("k", text.as_str())])]),
        )]);
        let written = to_vec(&v);
        let read = read(&written).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&written)));
        assert_eq!(read.value, v, "{}", String::from_utf8_lossy(&written));
    }
}

#[test]
fn deep_values_end_in_flow_style() {
    let deep = format!("{}1{}", "{\"a\":[".repeat(300), "]}".repeat(300));
    let written = yaml(&deep);
    assert_eq!(json::to_string(&read(written.as_bytes()).unwrap().value), deep);
}
