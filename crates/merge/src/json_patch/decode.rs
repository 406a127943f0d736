//! Reading a patch body that is already a value. The wording is that of Go's decoder.

use super::{Checking, JsonPatch, Member, Operation};
use crate::PatchError;
use kubelith_meta::Value;
use kubelith_meta::text::{json_kind, quote};

impl JsonPatch {
    /// Reads a patch. With `Checking::Checked` members must have the right types, and members that no operation has
    /// are reported (`json patch unknown field "[0].foo"`): warnings or errors as fieldValidation says.
    pub fn decode(body: Value, checking: Checking) -> Result<(JsonPatch, Vec<String>), PatchError> {
        let mut strict = Vec::new();
        if checking == Checking::Checked {
            check(&body, &mut strict)
                .map_err(|e| PatchError::BadRequest(format!("error decoding patch: json: cannot unmarshal {e}")))?;
        }
        let list = match body {
            Value::Array(list) => list,
            Value::Null => Vec::new(),
            other => return Err(mismatch(&other, "jsonpatch.Patch")),
        };
        let operations: Vec<Operation> = list.into_iter().map(read_operation).collect::<Result<_, _>>()?;
        Ok((JsonPatch { operations }, strict))
    }

    /// With no more than `max` operations: each may move all that a list has.
    pub fn at_most(self, max: usize) -> Result<JsonPatch, PatchError> {
        match self.operations.len() {
            given if given > max => Err(PatchError::TooLarge(format!(
                "The allowed maximum operations in a JSON patch is {max}, got {given}"
            ))),
            _ => Ok(self),
        }
    }
}

fn mismatch(value: &Value, go_type: &str) -> PatchError {
    PatchError::BadRequest(format!("json: cannot unmarshal {} into Go value of type {go_type}", json_kind(value)))
}

fn read_operation(value: Value) -> Result<Operation, PatchError> {
    let members = match value {
        Value::Object(members) => members,
        Value::Null => return Ok(Operation::default()),
        other => return Err(mismatch(&other, "jsonpatch.Operation")),
    };
    let mut operation = Operation::default();
    for (name, member) in members {
        match name.as_str() {
            "op" => {
                if let Value::String(op) = member {
                    operation.op = Some(op);
                }
            }
            "path" => operation.path = text_member(member),
            "from" => operation.from = text_member(member),
            "value" => operation.value = Some(member),
            _ => {}
        }
    }
    Ok(operation)
}

fn text_member(value: Value) -> Member {
    match value {
        Value::String(text) => Member::Text(text),
        Value::Null => Member::Missing,
        other => Member::Wrong(format!("json: cannot unmarshal {} into Go value of type string", json_kind(&other))),
    }
}

/// The first member of a wrong type is the error; unknown members are collected.
fn check(body: &Value, strict: &mut Vec<String>) -> Result<(), String> {
    let list = match body {
        Value::Array(list) => list,
        Value::Null => return Ok(()),
        other => return Err(format!("{} into Go value of type []handlers.jsonPatchOp", json_kind(other))),
    };
    for (i, element) in list.iter().enumerate() {
        let members = match element {
            Value::Object(members) => members,
            Value::Null => continue,
            other => return Err(format!("{} into Go value of type handlers.jsonPatchOp", json_kind(other))),
        };
        for (name, member) in members.iter() {
            match (name, member) {
                ("op" | "path" | "from", Value::String(_) | Value::Null) | ("value", _) => {}
                ("op" | "path" | "from", other) => {
                    let kind = json_kind(other);
                    return Err(format!("{kind} into Go struct field jsonPatchOp.{name} of type string"));
                }
                _ => strict.push(format!("json patch unknown field {}", quote(&format!("[{i}].{name}")))),
            }
        }
    }
    Ok(())
}
