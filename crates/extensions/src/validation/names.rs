//! Names: DNS labels throughout, kinds in any case.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::is_dns1035_label;

pub fn validate(names: Option<&Value>, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::default();
    let Some(names) = names else { return errors };
    let label = |text: &str, at: &Path<'_>, errors: &mut ErrorList| {
        let problems = is_dns1035_label(text);
        if !problems.is_empty() {
            errors.push(Error::invalid(at, text, problems.join(",")));
        }
    };
    for key in ["plural", "singular"] {
        match names.str_at(&[key]) {
            "" => {}
            text => label(text, &path.child(key), &mut errors),
        }
    }
    for key in ["kind", "listKind"] {
        let text = names.str_at(&[key]);
        let problems = is_dns1035_label(&text.to_lowercase());
        if !text.is_empty() && !problems.is_empty() {
            let why = format!("may have mixed case, but should otherwise match: {}", problems.join(","));
            errors.push(Error::invalid(&path.child(key), text, why));
        }
    }
    let texts = |key: &str| names.get(key).and_then(Value::as_array).unwrap_or(&[]).iter().enumerate();
    for (i, name) in texts("shortNames") {
        label(name.as_str().unwrap_or(""), &path.item("shortNames", i), &mut errors);
    }
    let (kind, list_kind) = (names.str_at(&["kind"]), names.str_at(&["listKind"]));
    if !kind.is_empty() && kind == list_kind {
        errors.push(Error::invalid(&path.child("listKind"), list_kind, "kind and listKind may not be the same"));
    }
    for (i, name) in texts("categories") {
        label(name.as_str().unwrap_or(""), &path.item("categories", i), &mut errors);
    }
    errors
}
