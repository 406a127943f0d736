//! Values that are the system's alone.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, Path};
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::Namespacing;
use kubelith_rules::Rules;
use kubelith_rules::common::{Fields, immutable_member, meta, meta_update};
use kubelith_rules::values::preemption_policy;

const HIGHEST_OF_USERS: i64 = 1_000_000_000;

const SYSTEM_PREFIX: &str = "system-";

const OF_SYSTEM: [(&str, i64); 2] =
    [("system-node-critical", 2 * HIGHEST_OF_USERS + 1000), ("system-cluster-critical", 2 * HIGHEST_OF_USERS)];

pub const RULES: Rules = Rules {
    create: |_, class| {
        let mut errors = meta(class, Namespacing::Forbidden, name_is_dns_subdomain);
        if class.meta().name().starts_with(SYSTEM_PREFIX) {
            if let Some(problem) = not_of_system(class) {
                let detail = format!(
                    "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {problem}"
                );
                errors.push(Error::forbidden(&Path::of(&["metadata", "name"]), detail));
            }
        } else if class.number("value") > HIGHEST_OF_USERS {
            let detail = format!("maximum allowed value of a user defined priority is {HIGHEST_OF_USERS}");
            errors.push(Error::forbidden(&Path::new("value"), detail));
        }
        preemption_policy(class, &Path::ROOT, &mut errors);
        errors
    },
    update: |_, new, old| {
        let mut errors = meta_update(new, old);
        if new.number("value") != old.number("value") {
            errors.push(Error::forbidden(&Path::new("value"), "may not be changed in an update."));
        }
        immutable_member(new, old, "preemptionPolicy", &Path::ROOT, &mut errors);
        errors
    },
};

/// Why a class is none of the system's own.
fn not_of_system(class: &Value) -> Option<String> {
    let name = class.meta().name();
    let Some((_, value)) = OF_SYSTEM.into_iter().find(|(known, _)| *known == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if class.number("value") != value {
        return Some(format!("value of {name} PriorityClass must be {value}"));
    }
    class.flag("globalDefault").then(|| format!("globalDefault of {name} PriorityClass must be false"))
}
