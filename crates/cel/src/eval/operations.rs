//! What is done with values once they are there.

use super::*;
use crate::declared::{Declared, MemberKind};

/// A constant, without a copy.
#[inline]
pub(super) fn borrow<'a>(val: &'a Val<'static>) -> Val<'a> {
    match val {
        Val::Text(s) => Val::Str(s),
        Val::Blob(b) => Val::Bytes(b),
        Val::List(list) => Val::ListRef(list),
        Val::Map(map) => Val::MapRef(map),
        other => other.clone(),
    }
}

#[inline]
pub(super) fn compare<'a>(op: Comparison, a: &Val<'a>, b: &Val<'a>) -> Res<'a> {
    if !a.is_comparable() {
        let name = match op {
            Comparison::Less => "_<_",
            Comparison::LessEqual => "_<=_",
            Comparison::Greater => "_>_",
            Comparison::GreaterEqual => "_>=_",
        };
        return Err(no_operator(a, name));
    }
    let order = a.compare(b)?;
    Ok(Val::Bool(match op {
        Comparison::Less => order == Ordering::Less,
        Comparison::LessEqual => order != Ordering::Greater,
        Comparison::Greater => order == Ordering::Greater,
        Comparison::GreaterEqual => order != Ordering::Less,
    }))
}

pub(super) fn is_in<'a>(item: &Val<'a>, of: &Val<'a>) -> Res<'a> {
    if let Some(list) = of.as_list() {
        return list.contains(item).map(Val::Bool);
    }
    match of.as_map() {
        Some(map) => map.has(item).map(Val::Bool),
        None => Err(EvalError::no_overload()),
    }
}

pub(super) fn matches<'a>(text: &Val<'a>, pattern: &Val<'a>) -> Res<'a> {
    let Some(string) = text.as_str() else { return Err(no_operator(text, "matches")) };
    let Some(pattern) = pattern.as_str() else { return Err(EvalError::no_overload()) };
    let matched = kubelith_schema::go_regexp::Matcher::new(pattern).and_then(|matcher| matcher.is_match(string));
    matched.map(Val::Bool).map_err(EvalError::new)
}

fn is_escaped(declared: &Declared) -> bool {
    matches!(declared.kind, MemberKind::Escaped)
}

/// A member or an element. What is absent is an error, unless that is asked (`lenient`).
pub(super) fn look_up<'a>(val: &Val<'a>, key: &Val<'_>, lenient: bool) -> Result<Option<Val<'a>>, EvalError> {
    let no_key = || if lenient { Ok(None) } else { Err(EvalError::new(format!("no such key: {key}"))) };
    if let Some(map) = val.as_map() {
        let found = match (val, key.as_str()) {
            (Val::Json(Value::Object(map), Some(declared)), Some(name)) if is_escaped(declared) => {
                crate::value::escaped_member(map, name, declared)
            }
            _ => map.find(key)?,
        };
        return match found {
            None => no_key(),
            found => Ok(found),
        };
    }
    if let Some(list) = val.as_list() {
        let index = match key {
            Val::Int(i) => Some(*i),
            Val::Uint(u) => i64::try_from(*u).ok(),
            Val::Double(d) => crate::value::double_to_int(*d).filter(|i| *i as f64 == *d),
            other => return Err(EvalError::new(format!("unsupported index type '{}' in list", other.type_name()))),
        };
        let Some(index) = index else {
            return Err(EvalError::new(format!("unsupported index value {key} in list")));
        };
        return match usize::try_from(index).ok().filter(|i| *i < list.len()) {
            Some(_) if list.declared().is_some() && !matches!(key, Val::Int(_)) => {
                Err(EvalError::new(format!("unsupported index: {key}")))
            }
            Some(i) => match val {
                Val::Json(Value::Array(items), Some(declared)) if is_escaped(declared) => {
                    Ok(Some(crate::value::escaped(&items[i], declared)))
                }
                _ => list.at(i).map(Some),
            },
            None if lenient => Ok(None),
            None => Err(EvalError::new(format!("index out of bounds: {key}"))),
        };
    }
    match (val, key.as_str()) {
        (Val::Patch(patch), name) => patch_field(patch, name, key, lenient),
        (Val::Object(object), Some(name)) => match object.field(name) {
            None => no_key(),
            found => Ok(found.cloned()),
        },
        _ => no_key(),
    }
}

pub(super) fn patch_field<'a>(
    patch: &PatchVal<'a>,
    name: Option<&str>,
    key: &Val<'_>,
    lenient: bool,
) -> Result<Option<Val<'a>>, EvalError> {
    let text = |text: &Arc<str>| Ok((!lenient || !text.is_empty()).then(|| Val::Text(text.clone())));
    match name {
        Some("op") => text(&patch.op),
        Some("path") => text(&patch.path),
        Some("from") => text(&patch.from),
        Some("value") if lenient => Ok(patch.value.clone()),
        Some("value") => Ok(Some(patch.value.clone().unwrap_or(Val::Null))),
        _ if lenient => Err(EvalError::new(format!("unsupported field: {key}"))),
        _ => Err(EvalError::new(format!("unsupported indexer: {key}"))),
    }
}

pub(super) fn made_field<'a>(val: &Val<'a>, name: &str, test: bool) -> Result<Option<Val<'a>>, EvalError> {
    match val {
        Val::Object(object) => match object.field(name) {
            Some(field) => Ok(Some(field.clone())),
            None if test => Ok(None),
            None => Ok(Some(Val::Null)),
        },
        Val::Json(Value::Object(map), _) => match map.get(name) {
            Some(member) => Ok(Some(crate::value::json_val(member))),
            None if test => Ok(None),
            None => Ok(Some(Val::Null)),
        },
        _ if test => Ok(None),
        _ => Err(EvalError::new(format!("cannot get field {}", kubelith_meta::text::quote(name)))),
    }
}

pub(crate) fn check_key(key: &Val<'_>) -> Result<(), EvalError> {
    match key {
        Val::Str(_) | Val::Text(_) | Val::Int(_) | Val::Uint(_) | Val::Bool(_) | Val::Double(_) => Ok(()),
        other => Err(EvalError::new(format!("invalid qualifier type: {}", other.go_type()))),
    }
}

/// As `check_key`, of a path. What is found from a variable on is JSON as it was decoded, to the reference.
pub(super) fn check_path(key: &Val<'_>, attr: &Attr) -> Result<(), EvalError> {
    let decoded = match (key, &attr.base) {
        (Val::Json(Value::Array(_), None), Base::Variable(_)) => "[]interface {}",
        (Val::Json(Value::Object(_), None), Base::Variable(_)) => "map[string]interface {}",
        (Val::Null, Base::Variable(_)) if attr.path.last().is_some_and(is_undeclared) => "<nil>",
        _ => return check_key(key),
    };
    Err(EvalError::new(format!("invalid qualifier type: {decoded}")))
}

fn is_undeclared(step: &Step) -> bool {
    !matches!(&step.key, StepKey::Field(field) if field.known.is_some())
}

#[cold]
pub(super) fn missing(step: &Step) -> EvalError {
    match &step.key {
        StepKey::Field(field) => EvalError::new(format!("no such key: {}", field.name)),
        _ => EvalError::fixed("no such key"),
    }
}

pub(super) fn dispatch<'a>(call: &Call, args: &[Val<'a>]) -> Res<'a> {
    for overload in &call.overloads {
        let is_right = match &overload.args {
            Some(types) => types.len() == args.len() && types.iter().zip(args).all(|(t, val)| fits(t, val)),
            None => true,
        };
        if !is_right {
            continue;
        }
        match (overload.run, args) {
            (Run::Unary(run), [x]) => return run(x),
            (Run::Binary(run), [a, b]) => return run(a, b),
            (Run::Many(run), _) => return run(args),
            _ => {}
        }
    }
    let args: Vec<&Val<'a>> = args.iter().collect();
    Err(no_signature(&call.function, &args))
}

/// Whether a value can be an argument of a type. Of lists and maps the first entry is looked at.
pub(super) fn fits(want: &Type, val: &Val<'_>) -> bool {
    match want {
        Type::Dyn | Type::Any | Type::Param(_) | Type::Var(_) | Type::Error => true,
        Type::List(element) => val.as_list().is_some_and(|list| {
            list.is_empty()
                || matches!(**element, Type::Param(_) | Type::Dyn)
                || list.at(0).is_ok_and(|x| fits(element, &x))
        }),
        Type::Map(of) => val.as_map().is_some_and(|map| {
            if matches!((&of.0, &of.1), (Type::Param(_), Type::Param(_))) {
                return true;
            }
            map.entries().into_iter().next().is_none_or(|(k, v)| fits(&of.0, &k) && v.is_ok_and(|v| fits(&of.1, &v)))
        }),
        other => other.runtime_name() == val.type_name(),
    }
}

#[cold]
pub(super) fn no_signature(function: &str, args: &[&Val<'_>]) -> EvalError {
    let types: Vec<&str> = args.iter().map(|arg| arg.type_name()).collect();
    EvalError::new(format!("no such overload: {function}({})", types.join(", ")))
}

#[cold]
pub(super) fn not_optional(name: &str, value: &Val<'_>) -> EvalError {
    EvalError::new(format!("cannot initialize optional entry '{name}' from non-optional value {value}"))
}

/// A message, an object or a patch of its fields.
pub(super) fn make<'a>(name: &Arc<str>, fields: Vec<(Arc<str>, Val<'a>)>) -> Res<'a> {
    if &**name == "JSONPatch" {
        let mut patch = PatchVal::default();
        for (field, value) in fields {
            let text = |value: &Val<'a>| match value.as_str() {
                Some(text) => Ok(text.into()),
                None => {
                    let message = format!("unexpected type {} for JSONPatchType '{field}' field", native_type(value));
                    Err(EvalError::new(message))
                }
            };
            match &*field {
                "op" => patch.op = text(&value)?,
                "path" => patch.path = text(&value)?,
                "from" => patch.from = text(&value)?,
                "value" => patch.value = Some(value),
                other => return Err(EvalError::new(format!("unexpected JSONPatchType field: {other}"))),
            }
        }
        return Ok(Val::Patch(Arc::new(patch)));
    }
    if name.starts_with("google.protobuf.") {
        return crate::messages::make(name, fields);
    }
    let depth = fields.iter().map(|(_, v)| v.depth()).max().unwrap_or(0) + 1;
    if depth > crate::value::MAX_DEPTH {
        return Err(EvalError::size());
    }
    Ok(Val::Object(Arc::new(ObjectVal { type_name: name.clone(), fields, depth })))
}

pub(super) fn native_type(value: &Val<'_>) -> &'static str {
    match value {
        Val::Bool(_) => "bool",
        Val::Int(_) => "int64",
        Val::Uint(_) => "uint64",
        Val::Double(_) => "float64",
        Val::Null => "structpb.NullValue",
        Val::Bytes(_) | Val::Blob(_) => "[]uint8",
        other => other.go_type(),
    }
}
