//! CSV as the reference reads it: comma-separated, RFC 4180 quotes, blank lines skipped, any number of columns.

/// All records, or the message of the first error.
pub fn parse(content: &str) -> Result<Vec<Vec<String>>, String> {
    let mut lines = content.split_inclusive('\n').enumerate().map(|(i, l)| (i + 1, without_cr(l)));
    let mut records = Vec::new();
    while let Some((number, line)) = lines.next() {
        if line == "\n" || line.is_empty() {
            continue;
        }
        records.push(record(number, line.into_owned(), &mut lines)?);
    }
    Ok(records)
}

/// `\r\n` counts as `\n`, and a last `\r` without one is dropped.
fn without_cr(line: &str) -> std::borrow::Cow<'_, str> {
    if let Some(l) = line.strip_suffix("\r\n") {
        format!("{l}\n").into()
    } else {
        line.strip_suffix('\r').unwrap_or(line).into()
    }
}

fn record<'a>(
    first: usize,
    mut line: String,
    lines: &mut impl Iterator<Item = (usize, std::borrow::Cow<'a, str>)>,
) -> Result<Vec<String>, String> {
    let mut fields = Vec::new();
    let mut number = first;
    let mut at = 0;
    loop {
        if !line[at..].starts_with('"') {
            let rest = line[at..].trim_end_matches('\n');
            let end = rest.find(',');
            let field = &rest[..end.unwrap_or(rest.len())];
            if let Some(quote) = field.find('"') {
                return Err(error(first, number, at + quote + 1, "bare \" in non-quoted field"));
            }
            fields.push(field.to_string());
            match end {
                Some(end) => at += end + 1,
                None => return Ok(fields),
            }
            continue;
        }
        at += 1;
        let mut field = String::new();
        loop {
            match line[at..].find('"') {
                Some(quote) => {
                    field.push_str(&line[at..at + quote]);
                    at += quote + 1;
                    match line[at..].chars().next() {
                        Some('"') => {
                            field.push('"');
                            at += 1;
                        }
                        Some(',') => {
                            fields.push(field);
                            at += 1;
                            break;
                        }
                        None | Some('\n') => {
                            fields.push(field);
                            return Ok(fields);
                        }
                        Some(_) => return Err(error(first, number, at, MISPLACED_QUOTE)),
                    }
                }
                None => {
                    field.push_str(&line[at..]);
                    match lines.next() {
                        Some((next, text)) => (number, line, at) = (next, text.into_owned(), 0),
                        None => return Err(error(first, number, line.len() + 1, MISPLACED_QUOTE)),
                    }
                }
            }
        }
    }
}

const MISPLACED_QUOTE: &str = "extraneous or missing \" in quoted-field";

fn error(first: usize, line: usize, column: usize, what: &str) -> String {
    if first == line {
        format!("parse error on line {line}, column {column}: {what}")
    } else {
        format!("record on line {first}; parse error on line {line}, column {column}: {what}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records() {
        let cases: [(&str, &[&[&str]]); 6] = [
            ("", &[]),
            ("\n\r\n", &[]),
            ("a,b\r\nc", &[&["a", "b"], &["c"]]),
            ("\"a,\"\"b\",c\n", &[&["a,\"b", "c"]]),
            ("\"two\nlines\",x", &[&["two\nlines", "x"]]),
            (",\"\",", &[&["", "", ""]]),
        ];
        for (input, want) in cases {
            assert_eq!(parse(input).unwrap(), want, "{input:?}");
        }
    }

    #[test]
    fn errors() {
        let cases = [
            ("a\"", "parse error on line 1, column 2: bare \" in non-quoted field"),
            ("\"a\"b", "parse error on line 1, column 3: extraneous or missing \" in quoted-field"),
            ("\"a\nb", "record on line 1; parse error on line 2, column 2: extraneous or missing \" in quoted-field"),
        ];
        for (input, want) in cases {
            assert_eq!(parse(input).unwrap_err(), want, "{input:?}");
        }
    }
}
