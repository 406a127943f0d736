//! `shardSelector` (gate ShardedListAndWatch): the objects whose uid or namespace hashes into some ranges, so that several
//! clients can share a resource among them.

use kubelith_codec::json::{Select, parse_selected};
use kubelith_store::cache::CachedObject;
use std::fmt;

/// More ranges than shards anybody has.
const MAX_RANGES: usize = 1024;
/// The end of the range that ends with the last hash, which has a digit more than all others.
const BEYOND: &str = "0x10000000000000000";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardSelector {
    field: Field,
    ranges: Vec<Range>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Uid,
    Namespace,
}

/// Hashes from `start` up to `end`, which is not one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    start: u128,
    end: u128,
}

impl ShardSelector {
    /// `shardRange(object.metadata.uid, '0x…', '0x…') || …`
    pub fn parse(text: &str) -> Result<ShardSelector, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("empty shard selector is not allowed; omit the parameter for unfiltered lists".into());
        }
        let mut selector: Option<ShardSelector> = None;
        for part in text.split("||") {
            let (field, range) = shard_range(part.trim())?;
            let known = selector.get_or_insert_with(|| ShardSelector { field, ranges: Vec::new() });
            if known.field != field {
                return Err(format!(
                    "all shard ranges must use the same field, got \"{}\" and \"{}\"",
                    known.field.path(),
                    field.path()
                ));
            }
            known.ranges.push(range);
            if known.ranges.len() > MAX_RANGES {
                return Err(format!("more than {MAX_RANGES} ranges"));
            }
        }
        selector.ok_or_else(|| "no range".to_owned())
    }

    pub fn matches(&self, object: &CachedObject) -> bool {
        let hash = match self.field {
            Field::Namespace => hash(object.namespace()),
            Field::Uid => hash(&uid(object)),
        };
        self.ranges.iter().any(|range| (range.start..range.end).contains(&u128::from(hash)))
    }
}

/// As the answer says it.
impl fmt::Display for ShardSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Range { start, end }) in self.ranges.iter().enumerate() {
            let or = if i > 0 { " || " } else { "" };
            write!(f, "{or}shardRange({}, '0x{start:016x}', '0x{end:016x}')", self.field.path())?;
        }
        Ok(())
    }
}

impl Field {
    fn path(self) -> &'static str {
        match self {
            Field::Uid => "object.metadata.uid",
            Field::Namespace => "object.metadata.namespace",
        }
    }
}

fn shard_range(call: &str) -> Result<(Field, Range), String> {
    let function = call.split('(').next().unwrap_or("").trim_end();
    let arguments = call[function.len()..].trim_start().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let Some(arguments) = arguments else {
        return Err("unexpected expression kind; expected shardRange() call or || operator".into());
    };
    if function != "shardRange" {
        return Err(format!("unsupported function \"{function}\"; only shardRange() and || are allowed"));
    }
    let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
    let [path, start, end] = arguments[..] else {
        return Err(format!("shardRange() requires exactly 3 arguments, got {}", arguments.len()));
    };
    let path: String = path.split_whitespace().collect();
    let Some(field) = [Field::Uid, Field::Namespace].into_iter().find(|field| field.path() == path) else {
        return Err(format!(
            "unsupported field path \"{path}\"; supported: object.metadata.uid, object.metadata.namespace"
        ));
    };
    let range = Range { start: number(start, "hexStart")?, end: number(end, "hexEnd")? };
    if range.start >= range.end {
        let Range { start, end } = range;
        return Err(format!("shard range start 0x{start:016x} must be less than end 0x{end:016x}"));
    }
    Ok((field, range))
}

fn number(literal: &str, name: &str) -> Result<u128, String> {
    let quoted = |quote: char| literal.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    let Some(text) = quoted('\'').or_else(|| quoted('"')) else {
        return Err(format!("{name} must be a string literal (e.g. '0xff')"));
    };
    let Some(hex) = text.strip_prefix("0x") else {
        return Err(format!("{name} must have '0x' prefix, got \"{text}\""));
    };
    if hex.is_empty() {
        return Err(format!("{name}: hex value is required after '0x'"));
    }
    if hex.len() > 17 {
        return Err(format!("{name}: hex value too long ({} chars, max 17): \"{hex}\"", hex.len()));
    }
    if let Some(odd) = hex.chars().find(|c| !matches!(c, '0'..='9' | 'a'..='f')) {
        return Err(format!("{name}: invalid hex character \"{odd}\" in \"{text}\""));
    }
    match hex.len() {
        16 => {}
        17 if text == BEYOND => {}
        17 => return Err(format!("{name}: 17-digit hex value must be '{BEYOND}' (2^64), got \"{text}\"")),
        _ => {
            return Err(format!(
                "{name} must be a 0x-prefixed 16-digit hex value, got \"{text}\" (did you mean \"0x{hex:0>16}\"?)"
            ));
        }
    }
    u128::from_str_radix(hex, 16).map_err(|e| e.to_string())
}

/// FNV-1a of 64 bits.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn uid(object: &CachedObject) -> String {
    const UID: Select = Select::Members(&[("metadata", Select::Members(&[("uid", Select::All)]))]);
    let parts = parse_selected(&object.json(), &UID).unwrap_or_default();
    parts.str_at(&["metadata", "uid"]).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let one = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";
        let two = format!("{one} || shardRange(object.metadata.uid, '0x8000000000000000', '{BEYOND}')");
        for text in [one, &two] {
            assert_eq!(ShardSelector::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn what_is_wrong_is_told() {
        let range = |arguments: &str| format!("shardRange({arguments})");
        for (text, want) in [
            (" ".to_owned(), "empty shard selector is not allowed; omit the parameter for unfiltered lists"),
            ("f(x)".into(), "unsupported function \"f\"; only shardRange() and || are allowed"),
            (range("a"), "shardRange() requires exactly 3 arguments, got 1"),
            (
                range("object.metadata.name, '', ''"),
                "unsupported field path \"object.metadata.name\"; supported: object.metadata.uid, object.metadata.namespace",
            ),
            (
                range("object.metadata.uid, '0x1', ''"),
                "hexStart must be a 0x-prefixed 16-digit hex value, got \"0x1\" (did you mean \"0x0000000000000001\"?)",
            ),
            (
                range("object.metadata.uid, '0x0000000000000001', '0x0000000000000001'"),
                "shard range start 0x0000000000000001 must be less than end 0x0000000000000001",
            ),
        ] {
            assert_eq!(ShardSelector::parse(&text).unwrap_err(), want);
        }
    }
}
