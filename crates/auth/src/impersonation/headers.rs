//! The headers that ask for impersonation.

use crate::authn::request_header::unescape_key;
use crate::user::User;
use http::{HeaderMap, HeaderName, HeaderValue};
use kubelith_meta::text::quote;
use kubelith_meta::{Status, Str};

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA_PREFIX: &str = "impersonate-extra-";

/// The user that the request wants to be; `None` if it does not ask. Anything but a name needs a name: 400.
pub fn wanted_user(headers: &HeaderMap) -> Result<Option<User>, Status> {
    let first = |name: &str| headers.get(name).map_or(Ok(Str::default()), text);
    let mut user = User { name: first(USER)?, uid: first(UID)?, ..User::default() };
    user.groups = headers.get_all(GROUP).iter().map(text).collect::<Result<_, _>>()?;
    for name in headers.keys() {
        if let Some(key) = name.as_str().strip_prefix(EXTRA_PREFIX) {
            let values = headers.get_all(name).iter().map(text).collect::<Result<Vec<_>, _>>()?;
            user.extra.entry(unescape_key(key)).or_default().extend(values);
        }
    }
    match (user.name.is_empty(), user == User::default()) {
        (false, _) => Ok(Some(user)),
        (true, true) => Ok(None),
        (true, false) => {
            let user = go_syntax(&user);
            Err(Status::bad_request(format!("requested {user} without impersonating a user name")))
        }
    }
}

/// Removes the headers, so that nobody behind us acts on them again.
pub fn remove_headers(headers: &mut HeaderMap) {
    let ours =
        |name: &HeaderName| matches!(name.as_str(), USER | UID | GROUP) || name.as_str().starts_with(EXTRA_PREFIX);
    let names: Vec<HeaderName> = headers.keys().filter(|n| ours(n)).cloned().collect();
    for name in names {
        headers.remove(name);
    }
}

fn text(value: &HeaderValue) -> Result<Str, Status> {
    let text = std::str::from_utf8(value.as_bytes());
    text.map(Str::from).map_err(|_| Status::bad_request("impersonation headers must be valid UTF-8"))
}

/// The message prints the reference's structure as its language would write it.
fn go_syntax(user: &User) -> String {
    let list = |values: &[Str]| {
        let quoted: Vec<String> = values.iter().map(|v| quote(v)).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let groups = if user.groups.is_empty() { "[]string(nil)".to_string() } else { list(&user.groups) };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_string()
    } else {
        let entries: Vec<String> = user.extra.iter().map(|(k, v)| format!("{}:{}", quote(k), list(v))).collect();
        format!("map[string][]string{{{}}}", entries.join(", "))
    };
    let (name, uid) = (quote(&user.name), quote(&user.uid));
    format!("&user.DefaultInfo{{Name:{name}, UID:{uid}, Groups:{groups}, Extra:{extra}}}")
}
