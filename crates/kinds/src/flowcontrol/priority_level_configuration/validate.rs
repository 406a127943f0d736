//! Shares, queues and what is mandatory.

use crate::flowcontrol::flow_schema::validate::status;
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::Namespacing;
use kubelith_rules::common::{Fields, SPEC, member, meta};
use kubelith_rules::{Request, Rules, internal};

pub const RULES: Rules = Rules {
    create: priority_level,
    update: |request, new, _| match request.subresource {
        "status" => status(new),
        _ => priority_level(request, new),
    },
};

const MAX_QUEUES: i64 = 10_000_000;

const MAX_HASH_BITS: u32 = 60;

fn priority_level(_: Request<'_>, level: &Value) -> ErrorList {
    let mut errors = meta(level, Namespacing::Forbidden, name_is_dns_subdomain);
    const PRESERVE_ZERO: &str = "flowcontrol.k8s.io/preserve-zero-concurrency-shares";
    if level.meta().annotation(PRESERVE_ZERO).is_some() {
        let detail = format!("annotation '{PRESERVE_ZERO}' is forbidden");
        errors.push(Error::forbidden(&Path::of(&["metadata", "annotations"]), detail));
    }
    let (spec, name) = (member(level, "spec"), level.meta().name());
    let kind = spec.text("type");
    if (name == "exempt") != (kind == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(Error::invalid(&SPEC.child("type"), BadValue::json(kind), detail));
    }
    match kind {
        "Exempt" => {
            if spec.has("limited") {
                errors.push(Error::forbidden(&SPEC.child("limited"), "must be nil if the type is not Limited"));
            }
            if let Some(exempt) = spec.some("exempt") {
                check_shares(exempt, &SPEC.child("exempt"), &mut errors);
                check_lendable(exempt, &SPEC.child("exempt"), &mut errors);
            }
        }
        "Limited" => {
            if spec.has("exempt") {
                errors.push(Error::forbidden(&SPEC.child("exempt"), "must be nil if the type is Limited"));
            }
            match spec.some("limited") {
                None => errors.push(Error::required(&SPEC.child("limited"), "must not be empty when type is Limited")),
                Some(limited) => check_limited(limited, &mut errors),
            }
        }
        "" => errors.push(Error::required(&SPEC.child("type"), "")),
        other => {
            let known = ["Exempt", "Limited"];
            errors.push(Error::not_supported(&SPEC.child("type"), BadValue::json(other), known));
        }
    }
    check_mandatory(name, spec, &mut errors);
    errors.extend(status(level));
    errors
}

/// The levels that the server cannot do without have a fixed form.
fn check_mandatory(name: &str, spec: &Value, errors: &mut ErrorList) {
    match name {
        "exempt" => {
            let others = spec.as_object().is_some_and(|s| s.keys().any(|k| !matches!(k, "type" | "exempt")));
            if spec.text("type") != "Exempt" || others {
                let detail = "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value";
                let shown = internal::shown("PriorityLevelConfigurationSpec", Some(spec));
                errors.push(Error::invalid(&SPEC, shown, detail));
            }
        }
        "catch-all" => {
            let limited = member(spec, "limited");
            let fixed = spec.text("type") == "Limited"
                && limited.int("nominalConcurrencyShares") == Some(5)
                && limited.int("lendablePercent") == Some(0)
                && !limited.has("borrowingLimitPercent")
                && limited.str_at(&["limitResponse", "type"]) == "Reject"
                && !member(limited, "limitResponse").has("queuing")
                && !spec.has("exempt");
            if !fixed {
                let shown = internal::shown("PriorityLevelConfigurationSpec", Some(spec));
                errors.push(Error::invalid(&SPEC, shown, "spec of 'catch-all' must equal the fixed value"));
            }
        }
        _ => {}
    }
}

fn check_shares(level: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(shares) = level.int("nominalConcurrencyShares").filter(|s| *s < 0) {
        let path = path.child("nominalConcurrencyShares");
        errors.push(Error::invalid(&path, shares, "must be a non-negative integer"));
    }
}

fn check_lendable(level: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(percent) = level.int("lendablePercent").filter(|p| !(0..=100).contains(p)) {
        let detail = "must be between 0 and 100, inclusive";
        errors.push(Error::invalid(&path.child("lendablePercent"), percent, detail));
    }
}

fn check_limited(limited: &Value, errors: &mut ErrorList) {
    let path = SPEC.child("limited");
    check_shares(limited, &path, errors);
    let response = member(limited, "limitResponse");
    let at = path.child("limitResponse");
    match response.text("type") {
        "Reject" => {
            if response.has("queuing") {
                errors.push(Error::forbidden(
                    &at.child("queuing"),
                    "must be nil if limited.limitResponse.type is not Limited",
                ));
            }
        }
        "Queue" => match response.some("queuing") {
            None => {
                errors.push(Error::required(
                    &at.child("queuing"),
                    "must not be empty if limited.limitResponse.type is Limited",
                ));
            }
            Some(queuing) => check_queuing(queuing, &at.child("queuing"), errors),
        },
        "" => errors.push(Error::required(&at.child("type"), "")),
        other => errors.push(Error::not_supported(&at.child("type"), BadValue::json(other), ["Queue", "Reject"])),
    }
    check_lendable(limited, &path, errors);
    if let Some(percent) = limited.int("borrowingLimitPercent").filter(|p| *p < 0) {
        let detail = "if specified, must be a non-negative integer";
        errors.push(Error::invalid(&path.child("borrowingLimitPercent"), percent, detail));
    }
}

fn check_queuing(queuing: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let (limit, queues, hand) =
        (queuing.number("queueLengthLimit"), queuing.number("queues"), queuing.number("handSize"));
    if limit <= 0 {
        errors.push(Error::invalid(&path.child("queueLengthLimit"), limit, "must be positive"));
    }
    if queues <= 0 {
        errors.push(Error::invalid(&path.child("queues"), queues, "must be positive"));
    } else if queues > MAX_QUEUES {
        errors.push(Error::invalid(&path.child("queues"), queues, format!("must not be greater than {MAX_QUEUES}")));
    }
    let path = path.child("handSize");
    if hand <= 0 {
        errors.push(Error::invalid(&path, hand, "must be positive"));
    } else if hand > queues {
        errors.push(Error::invalid(&path, hand, format!("should not be greater than queues ({queues})")));
    } else if entropy_bits(queues, hand) > MAX_HASH_BITS {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {MAX_HASH_BITS}"
        );
        errors.push(Error::invalid(&path, hand, detail));
    }
}

/// How much randomness dealing a hand takes.
fn entropy_bits(deck: i64, hand: i64) -> u32 {
    (f64::log2(deck as f64) * hand as f64).ceil() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flowcontrol::flow_schema::validate::flow_schema;
    use crate::flowcontrol::flow_schema::validate::mandatory_schema;

    #[test]
    fn mandatory_schemas_keep_their_form() {
        for name in ["exempt", "catch-all"] {
            let mut schema = Value::from([("metadata", Value::from([("name", name)]))]);
            schema.set_at(&["spec"], mandatory_schema(name).unwrap());
            assert_eq!(flow_schema(&schema).len(), 0, "{name}");
            schema.set_at(&["spec", "priorityLevelConfiguration", "name"], "global-default".into());
            let errors = flow_schema(&schema);
            let want = format!("spec of '{name}' must equal the fixed value");
            assert!(errors.iter().any(|e| e.to_string().ends_with(&want)), "{name}");
        }
        assert!(mandatory_schema("probes").is_none());
    }
}
