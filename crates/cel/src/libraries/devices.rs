//! Attributes of devices, which are a value or a list of values.

use super::{Run, member, of};
use crate::decl::Function;
use crate::types::Type;
use crate::value::{EvalError, Res, Val};

/// The most values that the attributes of a device have.
pub const MAX_VALUES: usize = 48;

pub fn functions() -> Vec<Function> {
    vec![of("includes", [member("dra_includes_dyn_dyn", [Type::Dyn, Type::Dyn], Type::Bool)])]
}

pub fn run(id: &str) -> Option<Run> {
    (id == "dra_includes_dyn_dyn").then_some(Run::Binary(includes))
}

/// What cannot be compared is not the same.
fn includes<'a>(target: &Val<'a>, wanted: &Val<'a>) -> Res<'a> {
    let Some(list) = target.as_list() else {
        return Ok(Val::Bool(matches!(target.equal(wanted), Ok(true))));
    };
    for (i, item) in list.iter().enumerate() {
        if i >= MAX_VALUES {
            let message = "'includes' function cannot be applied to lists longer than 48 values";
            return Err(EvalError::fixed(message));
        }
        if matches!(item?.equal(wanted), Ok(true)) {
            return Ok(Val::Bool(true));
        }
    }
    Ok(Val::Bool(false))
}
