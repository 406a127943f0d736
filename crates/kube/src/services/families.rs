//! Which IP families a service has: what the client asks for, what the cluster can give, what the service had.

use super::Addresses;
use kubelith_kinds::core::service::view::{
    CLUSTER_IP, EXTERNAL_NAME, IPV4, LOAD_BALANCER, NODE_PORT, NONE, PREFER_DUAL_STACK, REQUIRE_DUAL_STACK,
    SINGLE_STACK, family_of, is_headless_without_selector, list, other_family, text, texts,
};
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{IpRules, parse_ip_sloppy, validate_ip_of_legacy_field};
use kubelith_meta::{Status, Str, Value};
use kubelith_registry::Call;

const POLICY: Path<'static> = Path::of(&["spec", "ipFamilyPolicy"]);
const FAMILIES: Path<'static> = Path::of(&["spec", "ipFamilies"]);
const CLUSTER_IPS: Path<'static> = Path::of(&["spec", "clusterIPs"]);

/// Fills in spec.ipFamilyPolicy and spec.ipFamilies, or says why they cannot be as they are.
pub fn init(
    call: &Call,
    addresses: &Addresses,
    rules: IpRules,
    service: &mut Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    if text(service, "type") == EXTERNAL_NAME || old.is_some_and(|old| unchanged_dual_stack(service, old)) {
        return Ok(());
    }
    if service.at(&["spec", "ipFamilyPolicy"]).is_none() {
        let had = old.and_then(|old| old.at(&["spec", "ipFamilyPolicy"])).cloned();
        let fresh = if is_headless_without_selector(service) { REQUIRE_DUAL_STACK } else { SINGLE_STACK };
        service.set_at(&["spec", "ipFamilyPolicy"], had.unwrap_or_else(|| fresh.into()));
    }
    let name = Str::from(service.meta().name());
    let refuse = |errors: ErrorList| match errors.is_empty() {
        true => Ok(()),
        false => Err(Status::invalid(&call.group_kind(), &name, &errors)),
    };
    refuse(related_fields(rules, service, old))?;

    let mut errors = ErrorList::default();
    if let Some(old) = old {
        reduce(service, old, &mut errors);
    }
    if text(service, "ipFamilyPolicy") == SINGLE_STACK {
        for (key, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
            if list(service, key).len() == 2 {
                let why = format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
                errors.push(Error::invalid(&POLICY, SINGLE_STACK, why));
            }
        }
    }
    follow_addresses(addresses, service, &mut errors);
    refuse(errors)?;

    if is_headless_without_selector(service) {
        complete_headless(addresses, service);
        return Ok(());
    }
    let mut errors = ErrorList::default();
    if text(service, "ipFamilyPolicy") == REQUIRE_DUAL_STACK && addresses.families().len() < 2 {
        let why = "this cluster is not configured for dual-stack services";
        errors.push(Error::invalid(&POLICY, REQUIRE_DUAL_STACK, why));
    }
    for (i, family) in texts(service, "ipFamilies").into_iter().enumerate() {
        if !addresses.families().contains(&family) {
            errors.push(Error::invalid(&FAMILIES.index(i), family, "not configured on this cluster"));
        }
    }
    refuse(errors)?;
    if list(service, "ipFamilies").is_empty() {
        push_family(service, addresses.families()[0]);
    }
    let dual = text(service, "ipFamilyPolicy") != SINGLE_STACK && addresses.families().len() == 2;
    if dual && list(service, "ipFamilies").len() == 1 {
        add_other_family(service);
    }
    Ok(())
}

/// The families of a service that was stored before there were any: they follow from its addresses.
pub fn complete_read(addresses: &Addresses, service: &mut Value) {
    if text(service, "type") == EXTERNAL_NAME || !list(service, "ipFamilies").is_empty() {
        return;
    }
    let primary = addresses.families()[0];
    let families: Vec<&str> = if is_headless_without_selector(service) {
        vec![primary, other_family(primary)]
    } else if text(service, "clusterIP") == NONE {
        vec![primary]
    } else {
        let parsed = texts(service, "clusterIPs").into_iter().map(parse_ip_sloppy);
        parsed.map(|address| address.map_or(IPV4, family_of)).collect()
    };
    let policy = match families.len() {
        1 => SINGLE_STACK,
        2 => REQUIRE_DUAL_STACK,
        _ => return,
    };
    service.set_at(&["spec", "ipFamilyPolicy"], policy.into());
    service.set_at(&["spec", "ipFamilies"], families.into_iter().map(Str::from).collect::<Vec<_>>().into());
}

/// Nothing about addresses changes in a service that prefers dual stack and gets what it can.
pub fn unchanged_dual_stack(service: &Value, old: &Value) -> bool {
    let prefers = |s: &Value| text(s, "ipFamilyPolicy") == PREFER_DUAL_STACK;
    let old_prefers = old.at(&["spec", "ipFamilyPolicy"]).is_none() || prefers(old);
    let kind = text(service, "type");
    prefers(service)
        && old_prefers
        && kind == text(old, "type")
        && matches!(kind, CLUSTER_IP | NODE_PORT | LOAD_BALANCER)
        && list(service, "clusterIPs") == list(old, "clusterIPs")
        && list(service, "ipFamilies") == list(old, "ipFamilies")
}

/// Going back to one family: the second address and family go with the policy, and only with it.
fn reduce(service: &mut Value, old: &Value, errors: &mut ErrorList) {
    let single = text(service, "ipFamilyPolicy") == SINGLE_STACK;
    for (key, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
        let (new, had) = (list(service, key), list(old, key));
        if single {
            if new == had && new.len() > 1 {
                let first = new[..1].to_vec();
                service.set_at(&["spec", key], Value::Array(first));
            }
        } else if !new.is_empty() && new.len() < had.len() {
            let why = format!("must be 'SingleStack' to release the secondary {what}");
            errors.push(Error::invalid(&POLICY, text(service, "ipFamilyPolicy"), why));
        }
    }
}

/// Addresses that were asked for say which families are meant.
fn follow_addresses(addresses: &Addresses, service: &mut Value, errors: &mut ErrorList) {
    let wanted: Vec<String> = texts(service, "clusterIPs").into_iter().map(str::to_owned).collect();
    for (i, wanted) in wanted.iter().enumerate() {
        if wanted == NONE {
            break;
        }
        let Some(family) = parse_ip_sloppy(wanted).map(family_of) else { continue };
        if i < list(service, "ipFamilies").len() {
            continue;
        }
        if addresses.families().contains(&family) {
            push_family(service, family);
        } else {
            let why = format!("{family} is not configured on this cluster");
            errors.push(Error::invalid(&CLUSTER_IPS.index(i), all_addresses(service), why));
        }
    }
}

/// Headless services without a selector have no addresses: they may have families that the cluster has not.
fn complete_headless(addresses: &Addresses, service: &mut Value) {
    if list(service, "ipFamilies").is_empty() {
        push_family(service, addresses.families()[0]);
    }
    if list(service, "ipFamilies").len() < 2 && text(service, "ipFamilyPolicy") != SINGLE_STACK {
        add_other_family(service);
    }
}

fn push_family(service: &mut Value, family: &str) {
    let mut families = list(service, "ipFamilies").to_vec();
    families.push(family.into());
    service.set_at(&["spec", "ipFamilies"], Value::Array(families));
}

fn add_other_family(service: &mut Value) {
    let other = other_family(texts(service, "ipFamilies")[0]);
    push_family(service, other);
}

pub fn all_addresses(service: &Value) -> Value {
    service.at(&["spec", "clusterIPs"]).cloned().unwrap_or(Value::Null)
}

/// What clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy must be like before any of them is filled in.
fn related_fields(rules: IpRules, service: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = ErrorList::default();
    let all = texts(service, "clusterIPs");
    let invalid = |why: &str| Error::invalid(&CLUSTER_IPS, all_addresses(service), why);
    match (text(service, "clusterIP"), all.first()) {
        ("", None) => {}
        ("", Some(_)) => errors.push(invalid("must be empty when `clusterIP` is not specified")),
        (_, None) => errors.push(Error::required(&CLUSTER_IPS, "")),
        (one, Some(first)) if one != *first => errors.push(invalid("first value must match `clusterIP`")),
        _ => {}
    }
    let families = texts(service, "ipFamilies");
    for (i, family) in families.iter().enumerate() {
        if !matches!(*family, "IPv4" | "IPv6") {
            errors.push(Error::not_supported(&FAMILIES.index(i), *family, ["IPv4", "IPv6"]));
        }
        if families[..i].contains(family) {
            errors.push(Error::duplicate(&FAMILIES.index(i), *family));
        }
    }
    let policy = text(service, "ipFamilyPolicy");
    let policies = [PREFER_DUAL_STACK, REQUIRE_DUAL_STACK, SINGLE_STACK];
    if service.at(&["spec", "ipFamilyPolicy"]).is_some() && !policies.contains(&policy) {
        errors.push(Error::not_supported(&POLICY, policy, policies));
    }
    let known = old.map(|old| texts(old, "clusterIPs")).unwrap_or_default();
    let mut readable = true;
    for (i, address) in all.iter().enumerate() {
        if i == 0 && *address == NONE {
            if all.len() > 1 {
                readable = false;
                errors.push(invalid("'None' must be the first and only value"));
            }
            continue;
        }
        let problems = validate_ip_of_legacy_field(address, rules, &known, &CLUSTER_IPS.index(i));
        readable &= problems.is_empty();
        errors.extend(problems);
    }
    if all.len() > 2 {
        errors.push(invalid("may only hold up to 2 values"));
    }
    if readable {
        match_families(service, &mut errors);
    }
    errors
}

fn match_families(service: &Value, errors: &mut ErrorList) {
    let all = texts(service, "clusterIPs");
    let family = |address: &str| parse_ip_sloppy(address).map(family_of);
    if all.len() > 1 && !(all.len() == 2 && family(all[0]) != family(all[1])) {
        let why = "may specify no more than one IP for each IP family";
        errors.push(Error::invalid(&CLUSTER_IPS, all_addresses(service), why));
    }
    if text(service, "clusterIP") == NONE {
        return;
    }
    for (i, (address, wanted)) in all.iter().zip(texts(service, "ipFamilies")).enumerate() {
        if matches!(wanted, "IPv4" | "IPv6") && family(address).is_some_and(|found| found != wanted) {
            let why = format!("expected an {wanted} value as indicated by `ipFamilies[{i}]`");
            errors.push(Error::invalid(&CLUSTER_IPS.index(i), *address, why));
        }
    }
}
