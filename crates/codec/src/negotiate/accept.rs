//! The Accept header, read as forgivingly as the reference does: only spaces are trimmed, clauses without a
//! slash are dropped, a parameter counts only as `name=value` with one equals sign.

/// One alternative of an Accept header.
#[derive(Debug, Clone, PartialEq)]
pub struct Clause<'a> {
    pub kind: &'a str,
    pub subkind: &'a str,
    pub quality: f32,
    /// Parameters but `q`, in order; a repeated name counts last.
    pub params: Vec<(&'a str, &'a str)>,
}

/// The alternatives of a header, most wanted first.
pub fn parse_accept(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = header.split(',').filter_map(clause).collect();
    // The order is not a total one ("*/*" loses against anything, whatever its quality), so the way of sorting
    // shows. Go sorts short lists by insertion; longer ones do not occur.
    for i in 1..clauses.len() {
        let mut j = i;
        while j > 0 && precedes(&clauses[j], &clauses[j - 1]) {
            clauses.swap(j, j - 1);
            j -= 1;
        }
    }
    clauses
}

fn precedes(a: &Clause<'_>, b: &Clause<'_>) -> bool {
    a.quality > b.quality || (a.kind != "*" && b.kind == "*") || (a.subkind != "*" && b.subkind == "*")
}

fn clause(text: &str) -> Option<Clause<'_>> {
    let text = trim(text);
    let (media, params) = text.split_once(';').unwrap_or((text, ""));
    let (kind, subkind) = match media.split_once('/') {
        None | Some((_, "")) => {
            let kind = trim(media.split('/').next().unwrap_or(media));
            // "*" alone means "*/*"; anything else without a subtype means nothing.
            if kind != "*" {
                return None;
            }
            (kind, "*")
        }
        Some((kind, subkind)) => {
            let subkind = match subkind.split_once('/') {
                None => subkind,
                Some((subkind, "")) => subkind,
                Some(_) => return None,
            };
            (trim(kind), trim(subkind))
        }
    };
    let mut clause = Clause { kind, subkind, quality: 1.0, params: Vec::new() };
    for param in params.split(';') {
        let Some((name, value)) = param.split_once('=') else { continue };
        let value = value.strip_suffix('=').unwrap_or(value);
        if value.is_empty() && !param.ends_with("==") || value.contains('=') {
            continue;
        }
        match trim(name) {
            // What is no number counts as 0; Go does not trim it either.
            "q" => clause.quality = value.parse().unwrap_or(0.0),
            name => clause.params.push((name, trim(value))),
        }
    }
    Some(clause)
}

fn trim(s: &str) -> &str {
    s.trim_matches(' ')
}
