//! What containers and pods ask for.

use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::{Map, Quantity, Value, members};
use kubelith_rules::common::{Fields, dns_label, dns_subdomain, plain_milli, quantity, quantity_text};
use kubelith_rules::resources::{container_resource_name, may_overcommit, resource_name, resource_value};
use std::collections::BTreeSet;

/// Requests and limits.
pub fn requirements(requirements: &Value, claims: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    check_requirements(requirements, container_resource_name, claims, path, errors);
}

fn check_requirements(
    requirements: &Value,
    check_name: fn(&str, &Path<'_>, &mut ErrorList),
    claims: &[&str],
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    members!(requirements => limits: "limits", requests: "requests", claimed: "claims");
    let (limits_path, requests_path) = (path.child("limits"), path.child("requests"));
    let (limits, requests) = (limits.as_object(), requests.as_object());
    let mut has_compute = false;
    let mut has_huge = false;
    let mut check = |name: &str, value: &Value, path: &Path<'_>, errors: &mut ErrorList| {
        check_name(name, path, errors);
        resource_value(name, value, path, errors);
        has_compute |= matches!(name, "cpu" | "memory");
    };
    let mut check_huge = |name: &str, value: &Value, path: &Path<'_>, errors: &mut ErrorList| {
        if let Some(size) = name.strip_prefix("hugepages-") {
            has_huge = true;
            check_pages(size, value, path, errors);
        }
    };
    for (name, value) in limits.into_iter().flat_map(Map::iter) {
        let path = limits_path.key(name);
        check(name, value, &path, errors);
        check_huge(name, value, &path, errors);
    }
    for (name, value) in requests.into_iter().flat_map(Map::iter) {
        let path = requests_path.key(name);
        check(name, value, &path, errors);
        match limits.and_then(|l| l.get(name)) {
            Some(limit) if limit == value => {}
            Some(limit) if may_overcommit(name) && is_plainly_within(value, limit) => {}
            Some(limit) => {
                let (asked, most) = (quantity(value), quantity(limit));
                let shown = || BadValue::from(quantity_text(value));
                if asked != most && !may_overcommit(name) {
                    let detail = format!("must be equal to {name} limit of {}", quantity_text(limit));
                    errors.push(Error::invalid(&requests_path, shown(), detail));
                } else if asked > most {
                    let detail = format!("must be less than or equal to {name} limit of {}", quantity_text(limit));
                    errors.push(Error::invalid(&requests_path, shown(), detail));
                }
            }
            None if !may_overcommit(name) => {
                errors.push(Error::required(&limits_path, "Limit must be set for non overcommitable resources"));
            }
            None => {}
        }
        check_huge(name, value, &path, errors);
    }
    if has_huge && !has_compute {
        errors.push(Error::forbidden(path, "HugePages require cpu or memory"));
    }
    check_claims(claimed.items(), claims, &path.child("claims"), errors);
}

/// Whether that is seen without reading the quantities.
fn is_plainly_within(asked: &Value, most: &Value) -> bool {
    plain_milli(asked).zip(plain_milli(most)).is_some_and(|(asked, most)| asked <= most)
}

fn check_pages(size: &str, value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Ok(page) = Quantity::parse(size) else { return };
    let amount = quantity(value).map_or(0, |q| q.value());
    if page.value() > 0 && amount % page.value() != 0 {
        let detail = format!("{} is not positive integer multiple of hugepages-{size}", quantity_text(value));
        errors.push(Error::invalid(path, quantity_text(value), detail));
    }
}

fn check_claims(claims: &[Value], known: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    if claims.is_empty() {
        return;
    }
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (i, claim) in claims.iter().enumerate() {
        let path = path.index(i);
        let (name, request) = (claim.text("name"), claim.text("request"));
        if name.is_empty() {
            errors.push(Error::required(&path, ""));
            continue;
        }
        if seen.contains(name) {
            errors.push(Error::duplicate(&path, name));
        } else {
            let mut key = name.to_owned();
            if !request.is_empty() {
                dns_label(request, &path.child("request"), errors);
                key = format!("{name}/{request}");
            }
            if seen.contains(&key) {
                errors.push(Error::duplicate(&path, key.as_str()));
            } else if request.is_empty() {
                let prefix = format!("{name}/");
                for _ in seen.iter().filter(|k| k.starts_with(&prefix)) {
                    errors.push(Error::duplicate(&path, name));
                }
            }
            seen.insert(key);
        }
        if !known.contains(&name) {
            let mut error = Error::not_found(&path, name);
            let mut sorted = known.to_vec();
            sorted.sort_unstable();
            error.detail = match known {
                [] => "must be one of the names in pod.spec.resourceClaims which is empty".into(),
                _ => format!("must be one of the names in pod.spec.resourceClaims: {}", sorted.join(", ")),
            };
            errors.push(error);
        }
    }
}

pub fn check_pod_claims(claims: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    let mut names = BTreeSet::new();
    for (i, claim) in claims.iter().enumerate() {
        let path = path.index(i);
        let name = claim.text("name");
        if name.is_empty() {
            errors.push(Error::required(&path.child("name"), ""));
        } else if !names.insert(name) {
            errors.push(Error::duplicate(&path.child("name"), name));
        } else {
            dns_label(name, &path.child("name"), errors);
        }
        let text = |key: &str| claim.some(key).and_then(Value::as_str);
        let shown = || {
            let json = |key: &str| text(key).map_or("null".to_owned(), kubelith_meta::text::quote);
            BadValue::text(format!(
                "{{\"Name\":{},\"ResourceClaimName\":{},\"ResourceClaimTemplateName\":{}}}",
                kubelith_meta::text::quote(name),
                json("resourceClaimName"),
                json("resourceClaimTemplateName")
            ))
        };
        match (text("resourceClaimName"), text("resourceClaimTemplateName")) {
            (Some(_), Some(_)) => {
                let detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
                errors.push(Error::invalid(&path, shown(), detail));
            }
            (None, None) => {
                let detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
                errors.push(Error::invalid(&path, shown(), detail));
            }
            _ => {}
        }
        for key in ["resourceClaimName", "resourceClaimTemplateName"] {
            if let Some(value) = text(key) {
                dns_subdomain(value, &path.child(key), errors);
            }
        }
    }
}

/// Resources of the pod as a whole.
pub fn check_pod(own: &Value, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if spec.get("os").is_some_and(|os| os.text("name") == "windows") {
        return errors.push(Error::forbidden(path, "may not be set for a windows pod"));
    }
    if own.has("claims") {
        errors.push(Error::forbidden(&path.child("claims"), "claims may not be set for Resources at pod-level"));
    }
    let claims: Vec<&str> = spec.list("resourceClaims").iter().map(|c| c.text("name")).collect();
    check_requirements(own, pod_resource_name, &claims, path, errors);
    check_sums(own, spec, path, errors);
}

fn is_huge(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn pod_resource_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let before = errors.len();
    resource_name(name, path, errors);
    if errors.len() == before && !["cpu", "memory"].contains(&name) && !is_huge(name) {
        errors.push(Error::not_supported(path, BadValue::json(name), ["cpu", "hugepages-", "memory"]));
    }
}

/// What containers ask for, together and each.
fn check_sums(own: &Value, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    for (name, value) in own.entries("requests") {
        let sum = total(spec, "requests", name);
        if let Some(sum) = sum.filter(|sum| quantity(value).is_some_and(|own| *sum > own)) {
            let detail =
                format!("must be greater than or equal to aggregate container requests of {}", sum.canonical());
            errors.push(Error::invalid(&path.entry("requests", name), quantity_text(value), detail));
        }
    }
    for (name, value) in own.entries("limits").filter(|(name, _)| is_huge(name)) {
        let sum = total(spec, "limits", name);
        if let Some(sum) = sum.filter(|sum| quantity(value).is_some_and(|own| *sum > own)) {
            let detail = format!("must be greater than or equal to aggregate container limits of {}", sum.canonical());
            errors.push(Error::invalid(&path.entry("limits", name), quantity_text(value), detail));
        }
    }
    for (i, container) in spec.list("containers").iter().enumerate() {
        let limits = container.get("resources").map(|resources| resources.entries("limits"));
        for (name, limit) in limits.into_iter().flatten() {
            let Some(most) = own.get("limits").and_then(|limits| limits.get(name)) else { continue };
            if quantity(limit) > quantity(most) {
                let path = path.item("containers", i);
                let path = path.key(name);
                let detail = format!("must be less than or equal to pod limits of {}", quantity_text(most));
                errors.push(Error::invalid(&path.child("limits"), quantity_text(limit), detail));
            }
        }
    }
}

/// What the containers of a pod come to: all that run together, or as much as one that runs before them needs.
fn total(spec: &Value, key: &str, name: &str) -> Option<Quantity> {
    let of = |container: &Value| container.get("resources")?.get(key)?.get(name).and_then(quantity);
    let add = |sum: Option<Quantity>, more: Option<Quantity>| match (sum, more) {
        (Some(mut sum), Some(more)) => {
            sum += &more;
            Some(sum)
        }
        (sum, more) => sum.or(more),
    };
    let mut running = spec.list("containers").iter().map(of).fold(None, add);
    let (mut sidecars, mut most) = (None, None);
    for container in spec.list("initContainers") {
        let mut need = of(container);
        if container.text("restartPolicy") == "Always" {
            running = add(running, need.clone());
            sidecars = add(sidecars, need);
            need = sidecars.clone();
        } else {
            need = add(need, sidecars.clone());
        }
        most = most.max(need);
    }
    running.max(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_rules::testing::value;

    #[test]
    fn of_pods() {
        let containers = r#""containers":[{"resources":{"requests":{"cpu":"1"},"limits":{"cpu":"3"}}},
            {"resources":{"requests":{"cpu":"1500m"}}}]"#;
        let cases = [
            (r#"{"requests":{"cpu":"3"}}"#, "", vec![]),
            (
                r#"{"claims":[{"name":"c"}],"requests":{"cpu":"2"},"limits":{"cpu":"2"}}"#,
                r#","resourceClaims":[{"name":"c"}]"#,
                vec![
                    "p.claims: Forbidden: claims may not be set for Resources at pod-level",
                    "p.requests[cpu]: Invalid value: \"2\": must be greater than or equal to aggregate container requests of \
                     2500m",
                    "p.containers[0][cpu].limits: Invalid value: \"3\": must be less than or equal to pod limits of 2",
                ],
            ),
            (
                r#"{"requests":{"k":"1"}}"#,
                "",
                vec!["p.requests[k]: Invalid value: \"k\": must be a standard resource type or fully qualified"],
            ),
            (
                r#"{"requests":{"example.com/k":"1"},"limits":{"example.com/k":"1"}}"#,
                "",
                vec![
                    "p.limits[example.com/k]: Unsupported value: \"example.com/k\": supported values: \"cpu\", \
                     \"hugepages-\", \"memory\"",
                    "p.requests[example.com/k]: Unsupported value: \"example.com/k\": supported values: \"cpu\", \
                     \"hugepages-\", \"memory\"",
                ],
            ),
            ("{}", r#","os":{"name":"windows"}"#, vec!["p: Forbidden: may not be set for a windows pod"]),
        ];
        for (own, more, expected) in cases {
            let mut errors = ErrorList::new();
            check_pod(&value(own), &value(&format!("{{{containers}{more}}}")), &Path::new("p"), &mut errors);
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{own}");
        }
    }
}
