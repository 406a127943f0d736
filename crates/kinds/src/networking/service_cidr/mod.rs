//! ServiceCIDRs.

use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList};
use kubelith_meta::names::{Cidr, name_is_dns_subdomain, validate_cidr};
use kubelith_meta::object::Namespacing;
use kubelith_rules::common::{Fields, IMMUTABLE, SPEC, member, meta, meta_update};
use kubelith_rules::sealed::sealed;
use kubelith_rules::{Kind, Rules};
use kubelith_schema::lifecycle::Part;

/// With the status that clients write, as releases before 1.36 took it, unless the gate is on.
pub const SERVICE_CIDR: Kind = Kind {
    owns_status: false,
    keeps_status_on_create: true,
    reset_fields: |part| match part {
        Part::Status => &[&["metadata"], &["spec"]],
        Part::Main | Part::Other(_) => &[],
    },
    variants: &[("ServiceCIDRStatusFieldWiping", |_| SEALED)],
    ..SEALED
};

const SEALED: Kind = sealed(Kind { group: "networking.k8s.io", plural: "servicecidrs", rules: RULES, ..Kind::PLAIN });

pub const RULES: Rules = Rules {
    create: |_, object| {
        let mut errors = meta(object, Namespacing::Forbidden, name_is_dns_subdomain);
        check_cidrs(member(object, "spec"), &mut errors);
        errors
    },
    update: |request, new, old| {
        let mut errors = meta_update(new, old);
        if request.subresource.is_empty() {
            check_cidrs_update(member(new, "spec"), member(old, "spec"), &mut errors);
        }
        errors
    },
};

/// How the reference prints a parent: by the names of its fields in Go.
fn check_cidrs(spec: &Value, errors: &mut ErrorList) {
    let (cidrs, path) = (spec.texts("cidrs"), SPEC.child("cidrs"));
    if cidrs.is_empty() {
        return errors.push(Error::required(&path, "at least one CIDR required"));
    }
    if cidrs.len() > 2 {
        let shown = format!("{{\"CIDRs\":{}}}", kubelith_meta::text::json(member(spec, "cidrs")));
        return errors.push(Error::invalid(&path, BadValue::text(shown), "may only hold up to 2 values"));
    }
    for (i, cidr) in cidrs.iter().enumerate() {
        errors.extend(validate_cidr(cidr, &path.index(i)));
    }
    let families: Vec<bool> = cidrs.iter().filter_map(|c| Cidr::parse_sloppy(c)).map(|c| c.address.is_ipv6()).collect();
    if families.len() == 2 && families[0] == families[1] {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(Error::invalid(&path, member(spec, "cidrs"), detail));
    }
}

fn check_cidrs_update(spec: &Value, before: &Value, errors: &mut ErrorList) {
    let (new, old, path) = (spec.texts("cidrs"), before.texts("cidrs"), SPEC.child("cidrs"));
    match (old.len(), new.len()) {
        (a, b) if a == b => {
            for (i, (_, cidr)) in old.iter().zip(&new).enumerate().filter(|(_, (a, b))| a != b) {
                errors.push(Error::invalid(&path.index(i), *cidr, IMMUTABLE));
            }
        }
        (1, 2) => {
            if new[0] != old[0] {
                errors.push(Error::invalid(&path.index(0), new[0], IMMUTABLE));
            }
            check_cidrs(spec, errors);
        }
        _ => {
            let shown = spec.some("cidrs").map_or(BadValue::text("null"), BadValue::from);
            errors.push(Error::invalid(&path, shown, IMMUTABLE));
        }
    }
}
