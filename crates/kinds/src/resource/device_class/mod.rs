//! DeviceClasses.

use crate::resource::resource_claim::validate::{
    MAX_CONFIGURATIONS, Parameters, Stored, check_configuration, check_selectors,
};
use crate::resource::shared::each;
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList};
use kubelith_meta::object::Namespacing;
use kubelith_rules::common::{Fields, SPEC, declared_long_name, member, meta, meta_update};
use kubelith_rules::gated::{Feature, feature};
use kubelith_rules::resources::is_extended_resource;
use kubelith_rules::{Env, Kind, Rules, internal};
use kubelith_schema::lifecycle::Generation;

pub const DEVICE_CLASS: Kind = Kind {
    group: "resource.k8s.io",
    plural: "deviceclasses",
    features: &[(&[], FEATURES)],
    rules: RULES,
    ..Kind::PLAIN
}
.generation(Generation::Spec)
.returned();

const FEATURES: &[Feature] = &[feature(&["DRAExtendedResource"], &["spec.extendedResourceName"])];

pub const RULES: Rules = Rules {
    create: |request, class| check_class(request.env, class, None),
    update: |request, new, old| {
        let mut errors = meta(new, Namespacing::Forbidden, declared_long_name);
        errors.extend(meta_update(new, old));
        check_class_spec(request.env, new, Some(old), &mut errors);
        errors
    },
};

pub fn check_class(env: &Env, class: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = meta(class, Namespacing::Forbidden, declared_long_name);
    check_class_spec(env, class, old, &mut errors);
    errors
}

pub fn check_class_spec(env: &Env, class: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let spec = member(class, "spec");
    let is_same = |form: &str, key: &str| {
        let before = old.map(|old| member(old, "spec").get(key));
        before.is_some_and(|old| internal::same(form, old, spec.get(key)))
    };
    // All as before, in the same order.
    let stored = if is_same("[]DeviceSelector", "selectors") { Stored::Yes } else { Stored::No };
    check_selectors(env, spec.list("selectors"), stored, &SPEC.child("selectors"), errors);
    let parameters = if is_same("[]DeviceClassConfiguration", "config") { Parameters::Stored } else { Parameters::New };
    each(spec.list("config"), MAX_CONFIGURATIONS, &SPEC.child("config"), errors, |config, path, errors| {
        check_configuration(config, parameters, path, errors);
    });
    if let Some(name) = spec.some("extendedResourceName").and_then(Value::as_str).filter(|n| !is_extended_resource(n)) {
        let detail = "must be a valid extended resource name";
        errors.push(Error::invalid(&SPEC.child("extendedResourceName"), name, detail));
    }
}
