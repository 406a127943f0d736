//! Expressions made at random from the functions of all libraries: whatever compiles runs to a value or an error, within
//! its cost, and never panics.

use kubelith_cel::{Env, Program, Type, Val};
use kubelith_meta::Value;
use proptest::prelude::*;

fn expression() -> impl Strategy<Value = String> {
    let leaves = prop::sample::select(vec![
        "x",
        "l",
        "m",
        "s",
        "1",
        "0",
        "-9223372036854775808",
        "9223372036854775807",
        "2u",
        "1.5",
        "1e300",
        "''",
        "'aé😀'",
        "'a,b'",
        "b'\\xff'",
        "true",
        "false",
        "null",
        "[]",
        "{}",
        "[1, 2]",
        "['a']",
        "{'a': 1}",
        "duration('1h')",
        "timestamp('2024-01-01T00:00:00Z')",
        "double('NaN')",
        "optional.none()",
        "optional.of(1)",
        "quantity('1Gi')",
        "ip('::1')",
        "cidr('10.0.0.0/8')",
        "semver('1.2.3')",
        "url('https://a.b/c')",
        "type(1)",
        "dyn(1)",
        "'.*'",
    ]);
    let shapes = prop::sample::select(vec![
        "(A + B)",
        "(A - B)",
        "(A * B)",
        "(A / B)",
        "(A % B)",
        "(A < B)",
        "(A == B)",
        "(A != B)",
        "(A && B)",
        "(A || B)",
        "(A in B)",
        "A[B]",
        "A[?B]",
        "A.?a",
        "A.a",
        "has(A.a)",
        "(A ? B : B)",
        "!A",
        "-A",
        "[A, B]",
        "{A: B}",
        "[?A]",
        "A.map(e, e)",
        "A.map(e, B)",
        "A.filter(e, B)",
        "A.all(e, e == B)",
        "A.exists(e, B)",
        "A.exists_one(e, B)",
        "A.all(i, e, e == B)",
        "A.transformList(i, e, e)",
        "A.transformMap(i, e, B)",
        "A.transformMapEntry(i, e, {e: i})",
        "A.optMap(e, B)",
        "A.optFlatMap(e, B)",
        "A.orValue(B)",
        "A.or(B)",
        "A.value()",
        "A.hasValue()",
        "dyn(A)",
        "size(A)",
        "string(A)",
        "int(A)",
        "uint(A)",
        "double(A)",
        "bytes(A)",
        "type(A)",
        "duration(A)",
        "timestamp(A)",
        "dyn(A).contains(dyn(B))",
        "dyn(A).matches(dyn(B))",
        "dyn(A).findAll(dyn(B), 3)",
        "dyn(A).split(dyn(B))",
        "dyn(A).replace(dyn(B), 'x', 2)",
        "dyn(A).substring(dyn(B))",
        "dyn(A).indexOf(dyn(B), 1)",
        "dyn(A).lastIndexOf(dyn(B), 1)",
        "dyn(A).charAt(dyn(B))",
        "dyn(A).trim()",
        "dyn(A).join(dyn(B))",
        "dyn(A).format([dyn(B)])",
        "'%.3f %s %x %e'.format([dyn(A), dyn(B), dyn(A), dyn(B)])",
        "strings.quote(dyn(A))",
        "dyn(A).sort()",
        "A.sortBy(e, e)",
        "dyn(A).distinct()",
        "dyn(A).flatten(dyn(B))",
        "dyn(A).slice(dyn(B), 2)",
        "lists.range(dyn(A))",
        "dyn(A).reverse()",
        "dyn(A).sum()",
        "dyn(A).max()",
        "dyn(A).isSorted()",
        "sets.contains(dyn(A), dyn(B))",
        "sets.equivalent(dyn(A), dyn(B))",
        "dyn(A).getHours(dyn(B))",
        "dyn(A).getDayOfYear('America/New_York')",
        "dyn(A).getMilliseconds()",
        "dyn(A).containsIP(dyn(B))",
        "dyn(A).containsCIDR(dyn(B))",
        "dyn(A).masked()",
        "isIP(dyn(A))",
        "isURL(dyn(A))",
        "dyn(A).getQuery()",
        "dyn(A).add(dyn(B))",
        "dyn(A).compareTo(dyn(B))",
        "dyn(A).isGreaterThan(dyn(B))",
        "dyn(A).first()",
        "format.named(dyn(A))",
        "format.uri().validate(dyn(A))",
        "isSemver(dyn(A), true)",
    ]);
    leaves.prop_map(str::to_owned).prop_recursive(4, 24, 2, move |inner| {
        (shapes.clone(), inner.clone(), inner)
            .prop_map(|(shape, a, b)| shape.replace('B', "\u{1}").replace('A', &a).replace('\u{1}', &b))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
    #[test]
    fn runs_to_an_end(text in expression(), limit in 1u64..100_000) {
        let env = Env::base()
            .variable("x", Type::Dyn)
            .variable("l", Type::list(Type::Int))
            .variable("m", Type::map(Type::String, Type::Dyn))
            .variable("s", Type::String);
        let object = Value::from([("a", Value::Int(1)), ("b", Value::Array(vec![Value::Null, Value::Float(0.5)]))]);
        let variables =
            vec![Some(Val::json(&object)), Some(Val::flat([Val::Int(1), Val::Int(2)])), Some(Val::json(&object)), Some(Val::Str("aé"))];
        if let Ok(checked) = env.compile(&text)
            && let Ok(program) = Program::new(&env, &checked)
        {
            let (result, cost) = program.eval_within(&variables, limit);
            if let Err(e) = &result && e.is_cost() {
                prop_assert!(cost > limit);
            }
            if let Ok(val) = result {
                // Printing walks through all of it.
                let _ = val.to_string();
            }
        }
    }
}
