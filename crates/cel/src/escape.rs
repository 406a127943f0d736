//! Names of properties as expressions write them.

/// Words that are kept for the future: no variables, but fields.
pub fn is_reserved(name: &str) -> bool {
    matches!(
        name,
        "as" | "break"
            | "const"
            | "continue"
            | "else"
            | "false"
            | "for"
            | "function"
            | "if"
            | "import"
            | "in"
            | "let"
            | "loop"
            | "package"
            | "namespace"
            | "null"
            | "return"
            | "true"
            | "var"
            | "void"
            | "while"
    )
}

/// The name that expressions have for a property: `a-b` is `a__dash__b`. `None` if there is none.
pub fn escape(property: &str) -> Option<String> {
    if property.is_empty() || property.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_reserved(property) {
        return Some(format!("__{property}__"));
    }
    let mut out = String::with_capacity(property.len());
    let mut rest = property;
    while let Some(c) = rest.chars().next() {
        let (text, taken) = match c {
            '_' if rest.starts_with("__") => ("__underscores__", 2),
            '.' => ("__dot__", 1),
            '-' => ("__dash__", 1),
            '/' => ("__slash__", 1),
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => (&rest[..1], 1),
            _ => return None,
        };
        out.push_str(text);
        rest = &rest[taken..];
    }
    Some(out)
}

/// The property that an expression names, or `None` if the name has an escape that means nothing.
pub fn unescape(name: &str) -> Option<String> {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(start) = rest.find("__") {
        // An escape is two underscores, something without underscores, two underscores.
        let inner = &rest[start + 2..];
        let end = inner.find('_').unwrap_or(inner.len());
        if end == 0 || !inner[end..].starts_with("__") {
            let skip = start + 1;
            out.push_str(&rest[..skip]);
            rest = &rest[skip..];
            continue;
        }
        out.push_str(&rest[..start]);
        match &inner[..end] {
            "underscores" => out.push_str("__"),
            "dot" => out.push('.'),
            "dash" => out.push('-'),
            "slash" => out.push('/'),
            word if is_reserved(word) && word.len() + 4 == name.len() => out.push_str(word),
            _ => return None,
        }
        rest = &inner[end + 2..];
    }
    out.push_str(rest);
    Some(out)
}
