//! One line of CSV, as Go's encoding/csv reads list flags.

/// The fields of `text`. Quoted fields may hold commas; a quote inside is doubled.
pub fn fields(text: &str) -> Result<Vec<String>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        let column = text.len() - rest.len();
        let (field, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_field(quoted, column)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                if let Some(at) = rest[..end].find('"') {
                    return Err(format!(
                        "parse error on line 1, column {}: bare \" in non-quoted-field",
                        column + at + 1
                    ));
                }
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Ok(fields),
        }
    }
}

/// A field behind its opening quote, which is at `column`.
fn quoted_field(text: &str, column: usize) -> Result<(String, &str), String> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let Some(at) = rest.find('"') else {
            let end = column + 1 + text.len();
            return Err(format!("parse error on line 1, column {}: extraneous or missing \" in quoted-field", end + 1));
        };
        field.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(more) = rest.strip_prefix('"') {
            field.push('"');
            rest = more;
        } else if rest.is_empty() || rest.starts_with(',') {
            return Ok((field, rest));
        } else {
            let at = column + 1 + text.len() - rest.len();
            return Err(format!("parse error on line 1, column {at}: extraneous or missing \" in quoted-field"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fields;

    #[test]
    fn reads_fields() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            ("a", &["a"]),
            ("a,b,", &["a", "b", ""]),
            ("\"a,b\",c", &["a,b", "c"]),
            ("\"a\"\"b\"", &["a\"b"]),
        ];
        for (text, want) in cases {
            assert_eq!(fields(text).unwrap(), *want, "{text}");
        }
        assert_eq!(fields("a\"b").unwrap_err(), "parse error on line 1, column 2: bare \" in non-quoted-field");
        assert!(fields("\"a").is_err());
        assert!(fields("\"a\"b").is_err());
    }
}
