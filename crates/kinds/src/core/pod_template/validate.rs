//! The template.

use kubelith_meta::field::Path;
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::Namespacing;
use kubelith_pods::template::template;
use kubelith_rules::Rules;
use kubelith_rules::common::{member, meta, meta_update};

pub const RULES: Rules = Rules {
    create: |request, object| {
        let mut errors = meta(object, Namespacing::Required, name_is_dns_subdomain);
        template(request.env, member(object, "template"), &Path::new("template"), &mut errors);
        errors
    },
    update: |request, new, old| {
        let mut errors = meta_update(new, old);
        template(request.env, member(new, "template"), &Path::new("template"), &mut errors);
        errors
    },
};
