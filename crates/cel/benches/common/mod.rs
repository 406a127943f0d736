//! The schema, the objects and the stopwatch of the benchmarks.

use kubelith_cel::declared::{Declared, Root};
use kubelith_meta::Value;
use kubelith_schema::structural::Structural;
use std::time::{Duration, Instant};

/// How long one round is measured, and how many rounds there are. The fastest counts: whatever else the machine does can
/// only make a round slower.
const ROUND: Duration = Duration::from_millis(100);
const ROUNDS: u32 = 5;

pub const FIVE_RULES: [&str; 5] = [
    "self.minReplicas <= self.replicas",
    "self.replicas <= self.maxReplicas",
    "self.name.size() <= 63",
    "self.name.startsWith('example')",
    "self.ports.size() > 0",
];

pub fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::from(members)
}

pub fn schema() -> Structural {
    let integer = || object([("type", "integer".into())]);
    let string = || object([("type", "string".into()), ("maxLength", Value::Int(100))]);
    let port = object([("type", "object".into()), ("properties", object([("port", integer()), ("name", string())]))]);
    let ports = object([("type", "array".into()), ("maxItems", Value::Int(100)), ("items", port)]);
    let properties = object([
        ("minReplicas", integer()),
        ("replicas", integer()),
        ("maxReplicas", integer()),
        ("name", string()),
        ("ports", ports),
    ]);
    Structural::parse(&object([("type", "object".into()), ("properties", properties)]))
}

pub fn declared() -> Declared {
    Declared::of_schema(&schema(), Root::Value, "selfType").expect("an object")
}

/// The processor time of this thread. Waiting for a processor, which is most of what a busy machine does, is not in it.
pub fn processor_time() -> Duration {
    let Ok(stat) = std::fs::read_to_string("/proc/thread-self/schedstat") else { return Duration::ZERO };
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// Prints the processor time of one turn.
pub fn time(name: &str, mut turn: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let (began, before, mut turns) = (Instant::now(), processor_time(), 0u32);
        while began.elapsed() < ROUND {
            (0..50).for_each(|_| turn());
            turns += 50;
        }
        let took = processor_time().saturating_sub(before);
        best = best.min(took.as_nanos() as f64 / f64::from(turns));
    }
    println!("{best:>9.0} ns  {name}");
}
