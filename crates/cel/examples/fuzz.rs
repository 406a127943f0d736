//! Hands millions of texts to the parser, the checker and the evaluator: `fuzz [count] [seed]`. Ends with a panic if one
//! does, and shows how much memory is in use on the way, and the text that took longest.

use kubelith_cel::{Env, Program, Type, Val, estimate};
use kubelith_meta::Value;
use shapes::{LEAVES, SHAPES, put_together};
use std::time::Duration;

#[path = "../tests/shapes/mod.rs"]
mod shapes;

const LIMIT: u64 = 100_000;
/// What one text may take, in processor time: the machine may have more to do.
const PATIENCE: Duration = Duration::from_secs(5);
/// How deep expressions are made.
const DEPTH: u32 = 4;

const JUNK: [&str; 24] = [
    "(", ")", "[", "]", "{", "}", ".", ",", "?", ":", "'", "\"", "\\", "&", "&&", "||", "=", "==", "in", "é", "\u{0}",
    "`", "'''", "0x",
];

/// xorshift64*: enough to make texts, and the same ones for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % sides
    }

    fn expression(&mut self, depth: u32) -> String {
        if depth == 0 || self.roll(4) == 0 {
            return LEAVES[self.roll(LEAVES.len())].to_owned();
        }
        let (a, b) = (self.expression(depth - 1), self.expression(depth - 1));
        put_together(SHAPES[self.roll(SHAPES.len())], &a, &b)
    }

    /// A text with something wrong in it, mostly.
    fn broken(&mut self) -> String {
        let mut text: Vec<char> = self.expression(3).chars().collect();
        for _ in 0..=self.roll(3) {
            let at = self.roll(text.len() + 1);
            match self.roll(3) {
                0 if at < text.len() => {
                    text.remove(at);
                }
                1 => text.truncate(at),
                _ => text.splice(at..at, JUNK[self.roll(JUNK.len())].chars()).for_each(drop),
            }
        }
        text.into_iter().collect()
    }
}

/// What the process has in memory, in MiB.
fn memory() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) / 256
}

fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u64>().expect("a number"));
    let (count, seed) = (arguments.next().unwrap_or(100_000), arguments.next().unwrap_or(1));
    let mut dice = Dice(seed.max(1));
    let libraries = kubelith_cel::env::Libraries::ALL.iter().chain([kubelith_cel::libraries::Library::Bindings]);
    let env = Env::with(libraries)
        .variable("x", Type::Dyn)
        .variable("l", Type::list(Type::Int))
        .variable("m", Type::map(Type::String, Type::Dyn))
        .variable("s", Type::String);
    let object = Value::from([("a", Value::Int(1)), ("b", Value::Array(vec![Value::Null, Value::Float(0.5)]))]);
    let list = || Val::flat([Val::Int(1), Val::Int(2)]);
    let variables = vec![Some(Val::json(&object)), Some(list()), Some(Val::json(&object)), Some(Val::Str("aé"))];
    let (mut compiled, mut values) = (0u64, 0u64);
    let mut slowest = (Duration::ZERO, String::new());
    for i in 0..count {
        let text = if dice.roll(3) == 0 { dice.broken() } else { dice.expression(DEPTH) };
        let began = processor_time();
        match env.compile(&text) {
            Err(issues) => assert!(!issues.to_string().is_empty(), "{text}"),
            Ok(checked) => {
                compiled += 1;
                let cost = estimate::cost(&checked, estimate::Sizes::Unknown);
                // The reference doubles the size of a text that is quoted, and what is not bounded wraps round by it.
                assert!(cost.min <= cost.max || text.contains("strings.quote"), "{text}");
                if let Ok(program) = Program::new(&env, &checked) {
                    let (result, _) = program.eval_within(&variables, LIMIT);
                    if let Ok(value) = result {
                        values += 1;
                        assert!(value.to_string().len() < 64 << 20, "{text}");
                    }
                }
            }
        }
        let took = processor_time().saturating_sub(began);
        assert!(took < PATIENCE, "{took:?}: {text}");
        if took > slowest.0 {
            slowest = (took, text);
        }
        if (i + 1).is_multiple_of((count / 10).max(1)) {
            let (took, text) = &slowest;
            println!("{} texts, {compiled} compiled, {values} values, {} MiB, {took:?}: {text}", i + 1, memory());
        }
    }
}
