//! ControllerRevisions.

use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::Namespacing;
use kubelith_meta::{GroupVersion, Value};
use kubelith_rules::cells::{Cells, Row};
use kubelith_rules::common::{Fields, immutable_member, meta, meta_update, not_negative};
use kubelith_rules::{Kind, Rules};

pub const CONTROLLER_REVISION: Kind =
    Kind { group: "apps", plural: "controllerrevisions", rules: RULES, cells: CELLS, ..Kind::PLAIN };

pub const RULES: Rules = Rules {
    create: |_, object| {
        let mut errors = meta(object, Namespacing::Required, name_is_dns_subdomain);
        revision(object, &mut errors);
        errors
    },
    update: |_, new, old| {
        let mut errors = meta_update(new, old);
        errors.extend(meta(new, Namespacing::Required, name_is_dns_subdomain));
        not_negative(new.number("revision"), &Path::new("revision"), &mut errors);
        immutable_member(new, old, "data", &Path::ROOT, &mut errors);
        errors
    },
};

fn revision(object: &Value, errors: &mut ErrorList) {
    not_negative(object.number("revision"), &Path::new("revision"), errors);
    if !object.has("data") {
        errors.push(Error::required(&Path::new("data"), "data is mandatory"));
    } else if object.get("data").is_some_and(|d| d.as_object().is_none()) {
        errors.push(Error::required(&Path::new("data"), "data must be a valid JSON object"));
    }
}

pub const CELLS: Cells = &[("controller_name", controller_name)];

/// `deployment.apps/web`.
fn controller_name(row: &Row<'_>) -> Option<Value> {
    let owners = row.list(&["metadata", "ownerReferences"]);
    let Some(owner) = owners.iter().find(|o| o.get("controller") == Some(&Value::Bool(true))) else {
        return Some("<none>".into());
    };
    let group = GroupVersion::parse(owner.str_at(&["apiVersion"])).unwrap_or_default().group;
    let (kind, name) = (owner.str_at(&["kind"]).to_lowercase(), owner.str_at(&["name"]));
    Some(match (kind.as_str(), group.to_lowercase().as_str()) {
        ("", "") => name.into(),
        (kind, "") => format!("{kind}/{name}").into(),
        (kind, group) => format!("{kind}.{group}/{name}").into(),
    })
}
