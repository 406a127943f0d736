//! Double-quoted text as the reference's messages have it (Go's `%q`).

use std::fmt::Write;

/// Quotes and escapes `s`.
pub fn quote(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{07}' => out.push_str("\\a"),
            '\u{08}' => out.push_str("\\b"),
            '\u{0c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{0b}' => out.push_str("\\v"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => write_escape(&mut out, 'x', c, 2),
            c if is_unprintable(c) && (c as u32) < 0x10000 => write_escape(&mut out, 'u', c, 4),
            c if is_unprintable(c) => write_escape(&mut out, 'U', c, 8),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// `["a" "b"]`, as `%q` prints a list.
pub fn quote_list<S: AsRef<str>>(list: &[S]) -> String {
    let quoted: Vec<String> = list.iter().map(|s| quote(s.as_ref())).collect();
    format!("[{}]", quoted.join(" "))
}

fn write_escape(out: &mut String, letter: char, c: char, width: usize) {
    write!(out, "\\{letter}{:0width$x}", c as u32).expect("writing to a string succeeds");
}

/// Control and format characters, separators and private use: not exhaustive for unassigned code points,
/// which names and messages do not hold.
fn is_unprintable(c: char) -> bool {
    matches!(c as u32,
        0x80..=0xa0 | 0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x1680 | 0x180e
        | 0x2000..=0x200f | 0x2028..=0x202f | 0x205f..=0x206f | 0x3000 | 0xe000..=0xf8ff | 0xfeff
        | 0xfff0..=0xfffb | 0xfffe..=0xffff | 0x1d173..=0x1d17a | 0xe0000..=0x10ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        let cases = [
            ("plain", r#""plain""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("\n\t\u{1}\u{7f}", r#""\n\t\x01\x7f""#),
            ("ü\u{200b}", "\"ü\\u200b\""),
        ];
        for (input, want) in cases {
            assert_eq!(quote(input), want);
        }
        assert_eq!(quote_list(&["a", "b"]), r#"["a" "b"]"#);
    }
}
