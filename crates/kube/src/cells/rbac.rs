//! Bindings of roles.

use super::{CellFn, Row};
use kubelith_meta::Value;

pub fn find(name: &str) -> Option<CellFn> {
    Some(match name {
        "role_reference" => {
            |row| Some(format!("{}/{}", row.text(&["roleRef", "kind"]), row.text(&["roleRef", "name"])).into())
        }
        "subject_users" => |row| Some(subjects(row, "User", name_of)),
        "subject_groups" => |row| Some(subjects(row, "Group", name_of)),
        "subject_service_accounts" => |row| Some(subjects(row, "ServiceAccount", account_of)),
        _ => return None,
    })
}

fn subjects(row: &Row<'_>, kind: &str, format: fn(&Value) -> String) -> Value {
    let of_kind = row.list(&["subjects"]).iter().filter(|s| s.str_at(&["kind"]) == kind);
    of_kind.map(format).collect::<Vec<_>>().join(", ").into()
}

fn name_of(subject: &Value) -> String {
    subject.str_at(&["name"]).to_owned()
}

fn account_of(subject: &Value) -> String {
    format!("{}/{}", subject.str_at(&["namespace"]), subject.str_at(&["name"]))
}
