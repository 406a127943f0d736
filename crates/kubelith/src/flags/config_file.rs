//! `--config`: flags from a YAML file. The command line wins.

use super::{Flags, UsageError};
use kubelith_meta::Value;

/// Adds the flags of the file that `--config` names, if it is given.
pub fn with_config_file(mut flags: Flags) -> Result<Flags, UsageError> {
    let path = flags.text("config");
    if path.is_empty() {
        return Ok(flags);
    }
    let error = |why: String| UsageError(format!("--config {path}: {why}"));
    let text = std::fs::read(&path).map_err(|e| error(e.to_string()))?;
    let value = read(&text).map_err(error)?;
    for (name, values) in value {
        flags.add_default(&name, &values).map_err(|e| error(e.to_string()))?;
    }
    Ok(flags)
}

/// Name and values of each flag.
fn read(text: &[u8]) -> Result<Vec<(String, Vec<String>)>, String> {
    let document = kubelith_codec::yaml::read(text).map_err(|e| e.to_string())?;
    let map = match document.value {
        Value::Null => return Ok(Vec::new()),
        Value::Object(map) => map,
        _ => return Err("must hold one key per flag".into()),
    };
    map.iter().map(|(name, value)| Ok((name.to_owned(), values_of(name, value)?))).collect()
}

fn values_of(name: &str, value: &Value) -> Result<Vec<String>, String> {
    let scalar = |v: &Value| match v {
        Value::String(s) => Ok(s.to_string()),
        Value::Bool(b) => Ok(b.to_string()),
        Value::Int(i) => Ok(i.to_string()),
        Value::Float(f) => Ok(f.to_string()),
        _ => Err(format!("{name}: must be a text, a number, true, false, or a list or map of them")),
    };
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(list) => list.iter().map(scalar).collect(),
        Value::Object(map) => map.iter().map(|(k, v)| Ok(format!("{k}={}", scalar(v)?))).collect(),
        other => Ok(vec![scalar(other)?]),
    }
}
