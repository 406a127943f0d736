//! Expressions made at random from the functions of all libraries: whatever compiles runs to a value or an error, within
//! its cost, and never panics. The value is of the type that the checker said.

use kubelith_cel::{Env, Program, Type, Val};
use kubelith_meta::Value;
use proptest::prelude::*;
use shapes::{LEAVES, SHAPES, put_together};

mod shapes;

fn expression() -> impl Strategy<Value = String> {
    let leaves = prop::sample::select(LEAVES);
    let shapes = prop::sample::select(SHAPES);
    leaves.prop_map(str::to_owned).prop_recursive(4, 24, 2, move |inner| {
        (shapes.clone(), inner.clone(), inner).prop_map(|(shape, a, b)| put_together(shape, &a, &b))
    })
}

/// Whether a value is of a type, as far as that is known before it runs.
fn is_of(val: &Val<'_>, of: &Type) -> bool {
    match of {
        Type::Dyn | Type::Any | Type::Error | Type::Var(_) | Type::Param(_) => true,
        Type::List(item) => val.as_list().is_some_and(|list| list.iter().all(|i| i.is_ok_and(|i| is_of(&i, item)))),
        Type::Map(of) => val.as_map().is_some_and(|map| {
            map.entries().into_iter().all(|(k, v)| is_of(&k, &of.0) && v.is_ok_and(|v| is_of(&v, &of.1)))
        }),
        Type::Optional(of) => match val {
            Val::Optional(Some(inner)) => is_of(inner, of),
            other => matches!(other, Val::Optional(None)),
        },
        Type::Wrapper(scalar) => matches!(val, Val::Null) || val.type_name() == scalar.name(),
        Type::Type(_) => matches!(val, Val::Type(_)),
        other => val.type_name() == other.runtime_name(),
    }
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
                // `or` and `orValue` hand on what is no optional, as cel-go does: null and values of type dyn come through.
                let is_typed = !text.contains(".or(") && !text.contains(".orValue(");
                prop_assert!(!is_typed || is_of(&val, checked.result_type()), "{text}: {val} is no {}", checked.result_type());
            }
        }
    }
}
