//! Whatever the path, JSONPath answers.

use kubelith_meta::Value;
use kubelith_schema::jsonpath::{JsonPath, MissingKeys};

#[test]
fn any_path_answers() {
    let object = Value::from([
        ("a", Value::from(vec![Value::from([("b", Value::from(vec![1i64, 2]))]), Value::Null, Value::from("x")])),
        ("b", Value::from([("a", Value::from(1.5))])),
    ]);
    let pieces = [
        ".", "..", "a", "b", "[", "]", "*", "0", "-", ":", ",", "?(", ")", "@", "$", "'", "\"", "\\", "{", "}", "==",
        "<", "range ", "end", " ", "1", "\n", "é", "true", "[*]", "[0]", "[?(@.b)]",
    ];
    let mut state = 5u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize
    };
    let mut read = 0;
    for _ in 0..50_000 {
        let template: String = (0..next() % 12).map(|_| pieces[next() % pieces.len()]).collect();
        for path in [JsonPath::parse(&template), JsonPath::parse_template(&template)].into_iter().flatten() {
            read += 1;
            let _ = (path.render(&object, MissingKeys::Allowed), path.render(&object, MissingKeys::Error));
            assert_eq!(path.find(&object).first().copied(), path.find_first(&object), "{template:?}");
        }
    }
    assert!(read > 1000, "only {read} of the texts are paths");
}
