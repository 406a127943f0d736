//! Content-Type as Go's `mime.ParseMediaType` reads it.

/// The media type in lower case, without parameters; `None` if the header or a parameter is malformed.
pub fn parse_media_type(header: &str) -> Option<String> {
    read_media_type(header).ok()
}

/// As [`parse_media_type`], with what Go says to a malformed one.
pub fn read_media_type(header: &str) -> Result<String, &'static str> {
    let (media, params) = header.split_once(';').map_or((header, ""), |(m, _)| (m, &header[m.len()..]));
    let media = media.trim().to_lowercase();
    let (kind, rest) = token(&media);
    if kind.is_empty() {
        return Err("mime: no media type");
    }
    if !rest.is_empty() {
        let (subkind, rest) = token(rest.strip_prefix('/').ok_or("mime: expected slash after first token")?);
        if subkind.is_empty() {
            return Err("mime: expected token after slash");
        }
        if !rest.is_empty() {
            return Err("mime: unexpected content after media subtype");
        }
    }
    check_params(params).map(|()| media)
}

fn check_params(mut rest: &str) -> Result<(), &'static str> {
    let mut seen: Vec<String> = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(());
        }
        let Some((name, after)) = param(rest) else {
            // One semicolon at the end is forgiven.
            return if rest.trim() == ";" { Ok(()) } else { Err("mime: invalid media parameter") };
        };
        let name = name.to_lowercase();
        if seen.contains(&name) {
            return Err("mime: duplicate parameter name");
        }
        seen.push(name);
        rest = after;
    }
}

/// Reads `; name=value` and returns the name and what follows.
fn param(s: &str) -> Option<(&str, &str)> {
    let (name, rest) = token(s.strip_prefix(';')?.trim_start());
    if name.is_empty() {
        return None;
    }
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    if let Some(quoted) = rest.strip_prefix('"') {
        return Some((name, after_quoted(quoted)?));
    }
    let (value, rest) = token(rest);
    (!value.is_empty()).then_some((name, rest))
}

/// What follows the closing quote.
fn after_quoted(s: &str) -> Option<&str> {
    let mut escaped = false;
    for (i, b) in s.bytes().enumerate() {
        match b {
            b'"' if !escaped => return Some(&s[i + 1..]),
            b'\r' | b'\n' => return None,
            // A backslash escapes only what is no token character, so that Windows paths survive.
            b'\\' if !escaped && s.as_bytes().get(i + 1).is_some_and(|&n| !is_token(n)) => escaped = true,
            _ => escaped = false,
        }
    }
    None
}

fn token(s: &str) -> (&str, &str) {
    let end = s.bytes().position(|b| !is_token(b)).unwrap_or(s.len());
    s.split_at(end)
}

fn is_token(b: u8) -> bool {
    b.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&b)
}
