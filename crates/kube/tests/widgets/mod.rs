//! Widgets.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::name_is_dns_label;
use kubelith_meta::object::{Namespacing, validate_object_meta, validate_object_meta_update};
use kubelith_rules::common::{Fields, METADATA, immutable_text, member};
use kubelith_rules::defaults::set_absent;
use kubelith_rules::{Kind, Rules};
use kubelith_schema::lifecycle::Generation;

pub const WIDGET: Kind = Kind {
    group: "example.dev",
    plural: "widgets",
    // As many spare parts as there are parts.
    defaults: &[("dev.example.v1.WidgetSpec", |spec| {
        let parts = spec.get("parts").and_then(Value::as_array).map_or(0, <[_]>::len);
        set_absent(spec, "spare", parts as i64);
    })],
    rules: RULES,

    generation: Generation::Spec,
    warnings_on_create: |_, widget| match widget.at(&["spec", "parts"]) {
        Some(_) => Vec::new(),
        None => vec!["spec.parts: a widget without parts is of little use".into()],
    },
    cells: &[("widget_parts", |row| {
        let names: Vec<&str> = row.list(&["spec", "parts"]).iter().map(|part| part.text("name")).collect();
        (!names.is_empty()).then(|| names.join(",").into())
    })],
    ..Kind::PLAIN
};

const RULES: Rules = Rules {
    create: |_, widget| check(widget),
    update: |_, new, old| {
        let mut errors = check(new);
        errors.extend(validate_object_meta_update(new.meta(), old.meta(), &METADATA));
        immutable_text(member(new, "spec"), member(old, "spec"), "colour", &Path::new("spec"), &mut errors);
        errors
    },
};

fn check(widget: &Value) -> ErrorList {
    let mut errors = validate_object_meta(widget.meta(), Namespacing::Required, name_is_dns_label, &METADATA);
    let path = Path::new("spec");
    for (i, part) in member(widget, "spec").list("parts").iter().enumerate() {
        if part.text("name").is_empty() {
            errors.push(Error::required(&path.item("parts", i).child("name"), ""));
        }
    }
    errors
}
