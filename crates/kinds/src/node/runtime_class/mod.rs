//! RuntimeClasses.

use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{NameUse, name_is_dns_label, name_is_dns_subdomain};
use kubelith_meta::object::{Namespacing, validate_object_meta, validate_object_meta_update};
use kubelith_meta::selector::validate_labels;
use kubelith_meta::{Map, Value};
use kubelith_pods::validate::requirements;
use kubelith_pods::validate::tolerations;
use kubelith_pods::warnings::old_node_label;
use kubelith_rules::common::{Fields, METADATA, immutable_text, invalid_all, member};
use kubelith_rules::{Env, Kind, Rules, internal};

pub const RUNTIME_CLASS: Kind = Kind {
    group: "node.k8s.io",
    plural: "runtimeclasses",
    rules: RULES,

    creates_on_update: true,
    updates_unconditionally: false,
    warnings_on_create: |_, class| runtime_class_warnings(class),
    warnings_on_update: |_, _, class, _| runtime_class_warnings(class),
    ..Kind::PLAIN
};

pub const RULES: Rules = Rules {
    create: |request, class| check(request.env, class),
    update: |request, new, old| {
        let mut errors = check(request.env, new);
        errors.extend(validate_object_meta_update(new.meta(), old.meta(), &METADATA));
        immutable_text(new, old, "handler", &Path::ROOT, &mut errors);
        errors
    },
};

fn check(env: &Env, class: &Value) -> ErrorList {
    let mut errors = validate_object_meta(class.meta(), Namespacing::Forbidden, name_is_dns_subdomain, &METADATA);
    let handler = class.text("handler");
    if handler.is_empty() {
        errors.push(Error::required(&Path::new("handler"), ""));
    } else {
        invalid_all(name_is_dns_label(handler, NameUse::Full), &Path::new("handler"), handler, &mut errors);
    }
    if let Some(overhead) = class.some("overhead") {
        let limits = Value::from([("limits", member(overhead, "podFixed").clone())]);
        requirements(&limits, &[], &Path::new("overhead"), &mut errors);
    }
    if let Some(scheduling) = class.some("scheduling") {
        let path = Path::new("scheduling");
        if let Some(labels) = scheduling.map("nodeSelector") {
            errors.extend(validate_labels(labels, &path.child("nodeSelector")));
        }
        let list = scheduling.list("tolerations");
        tolerations(env, list, &path.child("tolerations"), &mut errors);
        let key = |t: &Value| ["key", "operator", "value", "effect"].map(|k| t.text(k).to_owned());
        for (i, toleration) in list.iter().enumerate() {
            if list[..i].iter().any(|other| key(other) == key(toleration)) {
                errors.push(Error::duplicate(
                    &path.item("tolerations", i),
                    internal::shown("Toleration", Some(toleration)),
                ));
            }
        }
    }
    errors
}

fn runtime_class_warnings(class: &Value) -> Vec<String> {
    let selector = class.at(&["scheduling", "nodeSelector"]).and_then(Value::as_object);
    let keys = selector.into_iter().flat_map(Map::keys);
    keys.filter_map(old_node_label).map(|why| format!("scheduling.nodeSelector: {why}")).collect()
}
