//! Who may look after devices that others use is said by the claim's namespace.

use kubelith_kinds::resource::resource_claim::validate::admin_access;
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_registry::Objects;
use kubelith_registry::objects::parse;

const ADMIN_LABEL: &str = "resource.kubernetes.io/admin-access";
const RESULTS: [&str; 4] = ["status", "allocation", "devices", "results"];

/// What stands against the access that a new claim or template asks for.
pub(super) fn check_requested(objects: &Objects, object: &Value) -> ErrorList {
    let lists: [&[&str]; 2] = [&["spec", "devices", "requests"], &["spec", "spec", "devices", "requests"]];
    let found = lists.into_iter().find_map(|list| admin_access(object, list, &["exactly"]));
    // The reference names the field so, wherever it is.
    found.map_or_else(ErrorList::new, |i| check_namespace(objects, object, lists[0], i))
}

/// What stands against the access that a claim is given.
pub(super) fn check_given(objects: &Objects, claim: &Value, old: &Value) -> ErrorList {
    if admin_access(old, &RESULTS, &[]).is_some() {
        return ErrorList::new();
    }
    let found = admin_access(claim, &RESULTS, &[]);
    found.map_or_else(ErrorList::new, |i| check_namespace(objects, claim, &RESULTS, i))
}

fn check_namespace(objects: &Objects, object: &Value, list: &[&str], index: usize) -> ErrorList {
    let path = Path::of(list);
    let path = path.index(index);
    let path = path.child("adminAccess");
    let name = object.meta().namespace();
    let Some(namespace) = objects.cached("", "namespaces", "", name).and_then(|namespace| parse(&namespace)) else {
        let why = format!("could not retrieve namespace to verify admin access: namespaces \"{name}\" not found");
        return Error::internal(&path, why).into();
    };
    if namespace.meta().label(ADMIN_LABEL) == Some("true") {
        return ErrorList::new();
    }
    let detail =
        format!("admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace");
    Error::forbidden(&path, detail).into()
}
