//! `fieldsV1` as servers write it: objects in objects, without a space, and with keys that need no repair. It is nearly
//! half of the JSON of a pod, so there is a quicker look at it than at JSON of any kind.

use kubelith_meta::text::escaped_somewhere;
use kubelith_meta::words::run_len;

/// Objects are rarely deeper; what is takes the long way.
const MAX_DEPTH: usize = 64;

/// How long the tree of fields is that `json` begins with. `None` if it is no such tree, or is written in another way:
/// it may be JSON all the same.
pub(crate) fn tree_len(json: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0);
    loop {
        // A value: nothing but an object.
        if json.get(at) != Some(&b'{') || depth == MAX_DEPTH {
            return None;
        }
        at += 1;
        depth += 1;
        if json.get(at) == Some(&b'}') {
            at = behind_closed(json, at, &mut depth)?;
            if depth == 0 {
                return Some(at);
            }
        }
        at = behind_key(json, at)?;
    }
}

/// Behind closing braces: where the next key begins, or the end.
fn behind_closed(json: &[u8], mut at: usize, depth: &mut usize) -> Option<usize> {
    while json.get(at) == Some(&b'}') {
        at += 1;
        *depth -= 1;
        if *depth == 0 {
            return Some(at);
        }
    }
    (json.get(at) == Some(&b',')).then_some(at + 1)
}

/// Behind a key and its colon.
fn behind_key(json: &[u8], at: usize) -> Option<usize> {
    let mut rest = json.get(at..)?.strip_prefix(b"\"")?;
    loop {
        let plain = run_len(rest, escaped_somewhere);
        rest = match &rest[plain..] {
            [b'"', b':', behind @ ..] => return Some(json.len() - behind.len()),
            [b'\\', b'"' | b'\\', behind @ ..] => behind,
            _ => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_told_from_other_json() {
        let trees = [r#"{}"#, r#"{"f:a":{}}"#, r#"{"f:a":{".":{},"k:{\"name\":\"x\\y\"}":{"f:b":{}}},"v:\"1\"":{}}"#];
        for tree in trees {
            assert_eq!(tree_len(tree.as_bytes()), Some(tree.len()), "{tree}");
            let followed = format!("{tree},\"x\":1");
            assert_eq!(tree_len(followed.as_bytes()), Some(tree.len()), "{followed}");
            for end in 0..tree.len() {
                assert_eq!(tree_len(&tree.as_bytes()[..end]), None, "{tree} to {end}");
            }
        }
        let others = [
            "",
            "null",
            "[]",
            r#"{"a":1}"#,
            r#"{"a":{},}"#,
            r#"{"a" :{}}"#,
            r#"{"a b":{}}"#,
            r#"{"a<":{}}"#,
            r#"{"ü":{}}"#,
            r#"{"\n":{}}"#,
            r#"{"a":{}"b":{}}"#,
            "{\"a\u{1}\":{}}",
        ];
        for other in others {
            assert_eq!(tree_len(other.as_bytes()), None, "{other}");
        }
        let deep = format!("{}{}{}", r#"{"a":"#.repeat(100), "{}", "}".repeat(100));
        assert_eq!(tree_len(deep.as_bytes()), None);
    }
}
