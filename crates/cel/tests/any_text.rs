//! Whatever text comes: no panic, no overflow of the stack, no endless loop; and what was parsed is printed as text that
//! is parsed to the same tree.

use kubelith_cel::parse::Macros;
use kubelith_cel::{Ast, Env, ExprId, estimate, parse, print};
use proptest::prelude::*;
use std::sync::LazyLock;

static ENV: LazyLock<Env> = LazyLock::new(Env::base);

const MACROS: Macros = Macros { sort_by: true, bind: true };

const TOKENS: [&str; 62] = [
    "a",
    "b",
    "x",
    "self",
    "1",
    "2u",
    "1.5",
    "-",
    "-1",
    "'s'",
    "b'y'",
    "true",
    "null",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ".",
    ",",
    "?",
    ":",
    "+",
    "-",
    "*",
    "/",
    "%",
    "!",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "&&",
    "||",
    "in",
    "has(",
    "x.all(",
    "[1].map(x, ",
    ".optMap(v, v)",
    "size(",
    "'",
    "\"",
    "\\",
    "=",
    "&",
    "é",
    "😀",
    "\n",
    "// c\n",
    "`a-b`",
    ".?",
    "[?",
    "let",
    "r'",
    "0x1",
    "1e9",
    "@",
    "T{",
    "duration('",
];

fn expression() -> impl Strategy<Value = String> {
    let leaves = vec![
        "a",
        "b",
        "x.y",
        ".a",
        "1",
        "-1",
        "0x1f",
        "2u",
        "1.5",
        "-0.5",
        "1e9",
        "true",
        "null",
        "'s\\n\\u00e9'",
        "r'\\d'",
        "b'\\xff'",
        "[]",
        "{}",
        "T{}",
        "\"\"\"a\"b\"\"\"",
    ];
    let leaf = prop::sample::select(leaves).prop_map(str::to_owned);
    leaf.prop_recursive(5, 64, 4, |inner| {
        let operator =
            prop::sample::select(vec!["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "&&", "||"]);
        let small = prop_oneof![
            (inner.clone(), operator, inner.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
            inner.clone().prop_map(|a| format!("({a})")),
            inner.clone().prop_map(|a| format!("!({a})")),
            inner.clone().prop_map(|a| format!("-({a})")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a}) ? ({b}) : {c}")),
            inner.clone().prop_map(|a| format!("({a}).f")),
            inner.clone().prop_map(|a| format!("({a}).?f")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})[{b}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})[?{b}]")),
        ];
        prop_oneof![
            small,
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("f({a}, {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}).g({b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, ?{b}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{{{a}: {b}}}")),
            inner.clone().prop_map(|a| format!("p.T{{f: {a}, ?g: a}}")),
            inner.clone().prop_map(|a| format!("has(({a}).f)")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}).all(x, {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}).map(x, {b}, x)")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}).transformMap(k, v, {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}).optFlatMap(x, {b})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("({a}).sortBy(x, {b})")),
        ]
    })
}

fn nodes(ast: &Ast) -> Vec<String> {
    (0..ast.len() as u32).map(|i| format!("{:?}", ast.expr(ExprId(i)))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printed_text_is_parsed_to_the_same_tree(text in expression()) {
        // Some are no expressions: a literal cannot be sorted.
        if let Ok(first) = parse::parse(&text, MACROS) {
            let printed = print::print(&first);
            let second = parse::parse(&printed, MACROS).unwrap_or_else(|e| panic!("{text}\n{printed}\n{e}"));
            prop_assert_eq!(nodes(&first), nodes(&second), "{}\n{}", text, printed);
        }
    }

    #[test]
    fn tokens_in_any_order_are_answered(parts in prop::collection::vec(prop::sample::select(TOKENS.to_vec()), 0..40)) {
        let text = parts.join(" ");
        answer(&text);
        answer(&parts.concat());
    }

    #[test]
    fn any_text_is_answered(text in ".{0,80}") {
        answer(&text);
    }

    #[test]
    fn expressions_are_answered(text in expression()) {
        answer(&text);
    }
}

fn answer(text: &str) {
    match ENV.compile(text) {
        Ok(checked) => {
            let cost = estimate::cost(&checked, estimate::Sizes::Unknown);
            assert!(cost.min <= cost.max, "{text}");
        }
        Err(issues) => assert!(!issues.to_string().is_empty(), "{text}"),
    }
}

#[test]
fn deep_and_long_texts_are_answered() {
    for n in [10, 249, 250, 251, 1000, 20_000] {
        for (open, close) in
            [("(", ")"), ("[", "]"), ("{1:", "}"), ("!", ""), ("-", ""), ("a.", ""), ("f(", ")"), ("1 ? 1 : ", "")]
        {
            answer(&format!("{}1{}", open.repeat(n), close.repeat(n)));
            answer(&format!("{}1", open.repeat(n)));
            answer(&format!("@{}1{}", open.repeat(n), close.repeat(n)));
        }
        answer(&vec!["1"; n].join(" + "));
        answer(&vec!["true"; n].join(" && "));
        answer(&format!("-1{}", "[(".repeat(n)));
    }
    // Each link of the chain uses what is before it twice.
    answer(&format!("optional.of(1){}", ".optMap(x, x)".repeat(60)));
}
