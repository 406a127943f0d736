//! A ResourceQuota as it is counted with: limits, use, and which objects it is for.

use crate::plugins::amounts::{Amounts, amounts};
use crate::plugins::list;
use kubelith_meta::field::Path;
use kubelith_meta::selector::{Operator, Requirement};
use kubelith_meta::{Map, Str, Value};
use std::fmt;

#[derive(Debug, Clone)]
pub struct Quota {
    pub object: Value,
    pub hard: Amounts,
    pub used: Amounts,
    pub scopes: Vec<Scope>,
}

impl Quota {
    pub fn of(object: Value) -> Quota {
        let mut scopes: Vec<Scope> = Vec::new();
        for name in list(&object, &["spec", "scopes"]) {
            scopes.push(Scope::exists(name.as_str().unwrap_or_default()));
        }
        scopes.extend(list(&object, &["spec", "scopeSelector", "matchExpressions"]).iter().map(Scope::of));
        Quota {
            hard: amounts(object.at(&["status", "hard"])),
            used: amounts(object.at(&["status", "used"])),
            scopes,
            object,
        }
    }

    pub fn name(&self) -> &str {
        self.object.meta().name()
    }

    /// A number that grows with each change.
    pub fn revision(&self) -> u64 {
        self.object.meta().resource_version().parse().unwrap_or_default()
    }

    /// The object with another use in its status.
    pub fn with_use(&self, used: &Amounts) -> Value {
        let mut object = self.object.clone();
        let mut map = Map::new();
        for (name, amount) in used {
            map.insert(name.as_str(), Value::from(amount.canonical()));
        }
        object.set_at(&["status", "used"], Value::Object(map));
        object
    }
}

/// Which objects a quota is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    pub name: Str,
    pub operator: Str,
    pub values: Vec<Str>,
}

impl Scope {
    pub fn exists(name: &str) -> Scope {
        Scope { name: name.into(), operator: "Exists".into(), values: Vec::new() }
    }

    pub fn of(selector: &Value) -> Scope {
        let values = selector.get("values").and_then(Value::as_array).unwrap_or(&[]);
        Scope {
            name: selector.str_at(&["scopeName"]).into(),
            operator: selector.str_at(&["operator"]).into(),
            values: values.iter().filter_map(Value::as_str).map(Str::from).collect(),
        }
    }

    /// Whether an object whose class (of priority, of volume attributes) is one of these is selected.
    pub fn selects(&self, classes: &[&str]) -> Result<bool, String> {
        let operator = match self.operator.as_str() {
            "Exists" => return Ok(!classes.is_empty()),
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "DoesNotExist" => Operator::DoesNotExist,
            other => {
                return Err(format!(
                    "failed to parse and convert selector: \"{other}\" is not a valid scope selector operator"
                ));
            }
        };
        let requirement = Requirement::new(self.name.clone(), operator, self.values.clone(), &Path::new("values"))
            .map_err(|errors| {
                let texts = errors.0.iter().map(ToString::to_string);
                format!("failed to parse and convert selector: {}", kubelith_meta::text::aggregate(texts))
            })?;
        let label = |class: &str| [(self.name.clone(), Str::from(class))];
        Ok(match classes.is_empty() {
            true => requirement.matches(&[] as &[(Str, Str)]),
            false => classes.iter().any(|class| requirement.matches(&label(class)[..])),
        })
    }
}

/// As Go prints the struct.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<&str> = self.values.iter().map(Str::as_str).collect();
        write!(f, "{{{} {} [{}]}}", self.name, self.operator, values.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_select_by_class() {
        let scope = |operator: &str, values: &[&str]| Scope {
            name: "PriorityClass".into(),
            operator: operator.into(),
            values: values.iter().map(|value| Str::from(*value)).collect(),
        };
        for (operator, values, classes, want) in [
            ("Exists", &[][..], &[][..], false),
            ("Exists", &[], &["a"], true),
            ("DoesNotExist", &[], &[], true),
            ("DoesNotExist", &[], &["a"], false),
            ("In", &["a", "b"], &["b"], true),
            ("In", &["a", "b"], &["c"], false),
            ("In", &["a"], &["c", "a"], true),
            ("In", &["a"], &[], false),
            ("NotIn", &["a"], &["a"], false),
            ("NotIn", &["a"], &[], true),
        ] {
            assert_eq!(scope(operator, values).selects(classes), Ok(want), "{operator} {values:?} {classes:?}");
        }
        let odd = scope("Odd", &[]).selects(&["a"]).unwrap_err();
        assert_eq!(odd, "failed to parse and convert selector: \"Odd\" is not a valid scope selector operator");
        assert!(scope("In", &[]).selects(&["a"]).is_err());
    }
}
