//! String literals within paths: Go's escapes, in double or single quotes.

/// The text that a literal with its quotes means; `None` if an escape is wrong or a quote stands inside.
pub(super) fn unquote(literal: &str) -> Option<String> {
    let quote = literal.chars().next()?;
    let inner = literal.get(1..literal.len().checked_sub(1)?)?;
    if !inner.contains(['\\', quote]) {
        return Some(inner.to_owned());
    }
    // Escapes can write any byte, so the text is only known to be one when it is complete.
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(c) = rest.chars().next() {
        if c == quote {
            return None;
        }
        if c != '\\' {
            rest = &rest[c.len_utf8()..];
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        rest = escape(&rest[1..], quote, &mut bytes)?;
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Appends what the escape at the front of `text` means, and returns what follows it.
fn escape<'a>(text: &'a str, quote: char, bytes: &mut Vec<u8>) -> Option<&'a str> {
    let c = text.chars().next()?;
    let after = &text[c.len_utf8()..];
    let simple = match c {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        '\\' => b'\\',
        '\'' | '"' if c == quote => c as u8,
        'x' => {
            bytes.push(number(after, 2, 16)? as u8);
            return after.get(2..);
        }
        '0'..='7' => {
            bytes.push(u8::try_from(number(text, 3, 8)?).ok()?);
            return text.get(3..);
        }
        'u' | 'U' => {
            let digits = if c == 'u' { 4 } else { 8 };
            let c = char::from_u32(number(after, digits, 16)?)?;
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return after.get(digits..);
        }
        _ => return None,
    };
    bytes.push(simple);
    Some(after)
}

fn number(text: &str, digits: usize, radix: u32) -> Option<u32> {
    text.get(..digits)?.chars().try_fold(0u32, |n, c| n.checked_mul(radix)?.checked_add(c.to_digit(radix)?))
}
