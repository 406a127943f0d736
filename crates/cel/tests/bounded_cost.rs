//! Where a schema bounds all sizes, an expression costs no more when it runs than the estimate says.

use kubelith_cel::declared::{Declared, Root};
use kubelith_cel::{Env, Program, Val, estimate};
use kubelith_meta::Value;
use kubelith_schema::structural::Structural;
use proptest::prelude::*;

/// How deep expressions are made.
const DEPTH: u32 = 4;

/// What expressions are made of, by the type that comes out: `$s` is a place for a string, `$t` for a list of them, `$n` for a
/// list of those, `$b` for a bool, `$i` for an int.
///
/// Left out are those of which the reference's own estimate (cel-go's `checker/cost.go` and `ext/lists.go`, Kubernetes' size
/// estimator) is below what it counts, as ours is, figure by figure:
/// - `list[0]` of a list that is made, not found at a path: the index is a path of its own when it runs, which is one more,
///   and what is found there has no size;
/// - `distinct` of strings: estimated with a factor of 2, counted with 2.1;
/// - what is done with the variable of a loop over a list that is made: its size is looked up as if it was the whole object,
///   which has none, so that comparing it is free;
/// - numbers and booleans of a schema: comparing them is estimated with nothing, and counted with one.
const SHAPES: [(char, &[&str]); 5] = [
    (
        's',
        &[
            "self.s",
            "'ab'",
            "string($s)",
            "$s.lowerAscii()",
            "($s + $s)",
            "$t.join(',')",
            "($b ? $s : $s)",
            "self.t[0]",
            "$t.max()",
            "string($i)",
        ],
    ),
    (
        't',
        &[
            "self.t",
            "['a', 'b']",
            "[$s, $s]",
            "($t + $t)",
            "$t.map(e, e)",
            "$t.map(e, $s)",
            "$t.filter(e, $b)",
            "$t.reverse()",
            "($b ? $t : $t)",
        ],
    ),
    (
        'b',
        &[
            "true",
            "($s < $s)",
            "($s == $s)",
            "($t == $t)",
            "($s != $s)",
            "($t != $t)",
            "($i == $i)",
            "($i < $i)",
            "($b == $b)",
            "($b && $b)",
            "($b || $b)",
            "($s in $t)",
            "!$b",
            "self.t.all(e, e == $s)",
            "$t.exists(e, $b)",
            "$t.exists_one(e, $b)",
            "$s.startsWith($s)",
            "$s.contains($s)",
            "$s.matches('a+')",
            "$t.isSorted()",
            "$n.exists(e, $b)",
            "($b ? $b : $b)",
        ],
    ),
    ('i', &["1", "size($s)", "size($t)", "($i + $i)", "size($n)"]),
    ('n', &["[self.t]", "[$t, $t]", "$n.map(e, e)", "$t.map(e, $t)", "$n.filter(e, $b)"]),
];

/// An expression of a type; `dice` decides among the shapes, and where it ends, so does the expression.
fn expression(of: char, depth: u32, dice: &mut impl Iterator<Item = u8>) -> String {
    let shapes = SHAPES.iter().find(|(kind, _)| *kind == of).map_or(&[][..], |(_, shapes)| shapes);
    let roll = if depth == 0 { 0 } else { dice.next().unwrap_or(0) };
    let mut parts = shapes[usize::from(roll) % shapes.len()].split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut rest = part.chars();
        text.extend(rest.next().map(|of| expression(of, depth.saturating_sub(1), dice)));
        text.push_str(rest.as_str());
    }
    text
}

fn schema() -> Structural {
    let string = || Value::from([("type", Value::from("string")), ("maxLength", Value::Int(6))]);
    let list = Value::from([("type", Value::from("array")), ("maxItems", Value::Int(4)), ("items", string())]);
    let properties = Value::from([("s", string()), ("t", list)]);
    Structural::parse(&Value::from([("type", Value::from("object")), ("properties", properties)]))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn costs_stay_below_their_estimate(
        of in prop::sample::select(vec!['s', 't', 'b', 'i', 'n']),
        dice in prop::collection::vec(any::<u8>(), 1..40),
        n in 0usize..5,
        word in "[a,é]{0,6}",
    ) {
        let declared = Declared::of_schema(&schema(), Root::Value, "t").expect("a schema");
        let env = Env::base().types(vec![declared.clone()]).declare("self", declared.clone());
        let texts = Value::Array(vec![Value::from(word.as_str()); n]);
        let object = Value::from([("s", Value::from(word.as_str())), ("t", texts)]);
        let text = expression(of, DEPTH, &mut dice.into_iter());
        let checked = env.compile(&text).expect("an expression");
        let program = Program::new(&env, &checked).expect("a program");
        let most = estimate::cost(&checked, Some(&declared)).max;
        let variables = [Val::typed(&object, &declared).expect("an object")];
        let (_, cost) = program.eval_within(&variables, u64::MAX);
        prop_assert!(cost <= most, "{text}: {cost} is more than {most}");
    }
}
