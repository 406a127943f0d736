//! Templates of claims on devices.

use crate::resource::resource_claim::gated::TEMPLATE;
use crate::resource::resource_claim::validate::check_spec;
use crate::resource::shared::unchanged_spec;
use kubelith_meta::Value;
use kubelith_meta::field::ErrorList;
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::Namespacing;
use kubelith_pods::claim::check_template_metadata;
use kubelith_rules::common::{SPEC, member, meta, meta_update};
use kubelith_rules::{Env, Kind, Rules};

pub const RESOURCE_CLAIM_TEMPLATE: Kind = Kind {
    group: "resource.k8s.io",
    plural: "resourceclaimtemplates",
    features: &[(&[], TEMPLATE)],
    rules: RULES,
    ..Kind::PLAIN
}
.returned();

pub const RULES: Rules = Rules {
    create: |request, template| check_template(request.env, template),
    update: |request, new, old| {
        let mut errors = check_template(request.env, new);
        errors.extend(meta_update(new, old));
        unchanged_spec("ResourceClaimTemplateSpec", new, old, &mut errors);
        errors
    },
};

pub fn check_template(env: &Env, template: &Value) -> ErrorList {
    let mut errors = meta(template, Namespacing::Required, name_is_dns_subdomain);
    let spec = member(template, "spec");
    check_template_metadata(member(spec, "metadata"), &SPEC.child("metadata"), &mut errors);
    check_spec(env, spec.get("spec"), &SPEC.child("spec"), &mut errors);
    errors
}
