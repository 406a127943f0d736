//! Selectors of devices, and the devices of ResourceSlices.

use super::Line;
use super::expressions::{Compiled, Expression};
use kubelith_cel::device::{COST_LIMIT, SelectorError};
use kubelith_cel::estimate;
use kubelith_meta::Value;
use kubelith_rules::expression::{Dialect, Expressions};

/// The selectors in an object: where they stand, and their texts.
fn texts(of: &Value) -> Vec<(String, &str)> {
    let mut found = Vec::new();
    collect(of, "", &mut found);
    found
}

fn collect<'a>(value: &'a Value, path: &str, found: &mut Vec<(String, &'a str)>) {
    match value {
        Value::Object(members) => {
            if let Some(text) = value.at(&["cel", "expression"]).and_then(Value::as_str) {
                found.push((format!("{path}.cel.expression"), text));
                return;
            }
            for (name, member) in members.iter() {
                let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                collect(member, &path, found);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                collect(item, &format!("{path}[{i}]"), found);
            }
        }
        _ => {}
    }
}

pub fn expressions(of: &Value) -> Vec<Expression> {
    let release = Expressions::of(Dialect::default());
    let selectors = release.selectors();
    let compile = |text: &str| -> Result<Compiled, String> {
        selectors.compile(text, false).map_err(|e| match e {
            SelectorError::Invalid(why) | SelectorError::Internal(why) => why,
        })?;
        let checked = selectors.env(false).compile(text).map_err(|issues| issues.to_string())?;
        let costs = estimate::costs(&checked, selectors.sizes());
        Ok(Compiled { checked, costs })
    };
    let expression = |(path, text): (String, &str)| Expression {
        path,
        text: text.into(),
        evaluations: 1,
        limit: Some(COST_LIMIT),
        compiled: compile(text),
    };
    texts(of).into_iter().map(expression).collect()
}

/// Which devices of a slice fulfil which selectors. None has to.
pub fn outcomes(of: &Value, slice: &Value) -> Option<Vec<Line>> {
    if slice.str_at(&["kind"]) != "ResourceSlice" {
        return None;
    }
    let driver = slice.str_at(&["spec", "driver"]);
    let devices = slice.at(&["spec", "devices"]).and_then(Value::as_array).unwrap_or(&[]);
    let release = Expressions::of(Dialect::default());
    let mut lines = Vec::new();
    for (path, text) in texts(of) {
        let Ok(selector) = release.selectors().compile(text, false) else { continue };
        for device in devices {
            let name = device.str_at(&["name"]);
            // Before v1beta2 what tells of a device stood one level deeper.
            let told = device.get("basic").unwrap_or(device);
            lines.push(match selector.matches(driver, told) {
                Ok(matches) => Line { text: format!("{path}: {name}: {matches}"), fine: true },
                Err(why) => Line { text: format!("{path}: {name}: {why}"), fine: false },
            });
        }
    }
    Some(lines)
}
