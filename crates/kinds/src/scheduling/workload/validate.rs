//! Templates of groups, and who made the workload.

use crate::scheduling::pod_group::validate::{check_parts, repeated};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList};
use kubelith_meta::names::{name_is_dns_subdomain, name_is_path_segment};
use kubelith_meta::object::Namespacing;
use kubelith_rules::common::{Fields, SPEC, member, meta, meta_update, name_full};
use kubelith_rules::declared::{long_name, required, short_name, unchanged};
use kubelith_rules::{Env, Rules};

const MAX_TEMPLATES: usize = 8;

pub const RULES: Rules = Rules {
    create: |request, workload| {
        let mut errors = meta(workload, Namespacing::Required, name_is_dns_subdomain);
        let spec = member(workload, "spec");
        check_controller(spec, &mut errors);
        check_templates(request.env, spec.list("podGroupTemplates"), &mut errors);
        errors
    },
    update: |_, new, old| {
        let mut errors = meta_update(new, old);
        let [spec, before] = [new, old].map(|workload| member(workload, "spec"));
        unchanged("*SchedulingController", spec, before, "controllerRef", &SPEC, &mut errors);
        unchanged("[]PodGroupTemplate", spec, before, "podGroupTemplates", &SPEC, &mut errors);
        if spec.list("podGroupTemplates").is_empty() {
            errors.push(Error::required(&SPEC.child("podGroupTemplates"), ""));
        }
        errors
    },
};

fn check_controller(spec: &Value, errors: &mut ErrorList) {
    let Some(controller) = spec.some("controllerRef") else { return };
    let path = SPEC.child("controllerRef");
    if !controller.text("apiGroup").is_empty() {
        long_name(controller.text("apiGroup"), &path.child("apiGroup"), errors);
    }
    for key in ["kind", "name"] {
        required(controller, key, &path, errors, |name, path, errors| {
            name_full(name_is_path_segment, name, path, errors)
        });
    }
}

fn check_templates(env: &Env, templates: &[Value], errors: &mut ErrorList) {
    let path = SPEC.child("podGroupTemplates");
    if templates.is_empty() {
        return errors.push(Error::required(&path, ""));
    }
    if templates.len() > MAX_TEMPLATES {
        return errors.push(Error::too_many(&path, templates.len(), MAX_TEMPLATES));
    }
    repeated("v1alpha2.PodGroupTemplate", templates, &path, errors);
    for (i, template) in templates.iter().enumerate() {
        required(template, "name", &path.index(i), errors, short_name);
        check_parts(env, template, &path.index(i), errors);
    }
}
