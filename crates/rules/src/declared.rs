//! Rules that the reference declares with its types. Their words differ a little from those of rules written as code.

use crate::common::{Fields, IMMUTABLE, invalid_all};
use crate::internal;
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{is_dns1123_label, is_dns1123_subdomain};

pub fn at_least(number: i64, least: i64, path: &Path<'_>, errors: &mut ErrorList) {
    if number < least {
        errors.push(Error::invalid(path, number, format!("must be greater than or equal to {least}")));
    }
}

pub fn at_most(number: i64, most: i64, path: &Path<'_>, errors: &mut ErrorList) {
    if number > most {
        errors.push(Error::invalid(path, number, format!("must be less than or equal to {most}")));
    }
}

/// A name of several labels.
pub fn long_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    invalid_all(is_dns1123_subdomain(name).into_iter().map(in_bytes).collect(), path, name, errors);
}

/// A name of one label.
pub fn short_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    invalid_all(is_dns1123_label(name).into_iter().map(in_bytes).collect(), path, name, errors);
}

pub fn in_bytes(message: String) -> String {
    match message.strip_prefix("must be no more than ") {
        Some(rest) => format!("must be no more than {}", rest.replace("characters", "bytes")),
        None => message,
    }
}

/// A text that must be there, then `rule`.
pub fn required(
    owner: &Value,
    key: &str,
    path: &Path<'_>,
    errors: &mut ErrorList,
    rule: impl Fn(&str, &Path<'_>, &mut ErrorList),
) {
    match owner.text(key) {
        "" => errors.push(Error::required(&path.child(key), "")),
        text => rule(text, &path.child(key), errors),
    }
}

/// Exactly one of these members is there.
pub fn one_member(owner: &Value, members: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    let given: Vec<&str> = members.iter().copied().filter(|key| owner.has(key)).collect();
    let all = members.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    match given.len() {
        1 => {}
        0 => errors.push(Error::invalid(path, "", format!("must specify one of: {all}"))),
        _ => {
            let shown = format!("{{{}}}", given.join(", "));
            errors.push(Error::invalid(path, shown, format!("must specify exactly one of: {all}")));
        }
    }
}

/// Whether a member of the type `form` is as it was. A change is told of without what it is.
pub fn unchanged(form: &str, new: &Value, old: &Value, key: &str, path: &Path<'_>, errors: &mut ErrorList) -> bool {
    let is_same = internal::same(form, new.get(key), old.get(key));
    if !is_same {
        errors.push(Error::invalid(&path.child(key), BadValue::text("null"), IMMUTABLE));
    }
    is_same
}
