//! Reads the lines of a type: fields, inlined types, unions.

use super::ast::{FieldText, Member, ShapeText};
use super::scan::{Line, Place, TextError};
use kubelith_meta::{Str, Value};
use kubelith_schema::{ListKind, Omit, PatchHint, Union};

/// A field without any words about it.
pub fn plain(place: &Place, number: u32, name: &str, target: &str) -> FieldText {
    FieldText {
        place: place.clone(),
        number: Some(number),
        name: name.into(),
        shape: ShapeText::Name(target.to_owned()),
        required: false,
        omit: Omit::Empty,
        default: None,
        default_hidden: false,
        list: None,
        atomic: false,
        granular: false,
        patch: None,
        go: None,
    }
}

/// `1 replicas *int32 = 1` or `2 inline VolumeSource`.
pub fn member(line: &mut Line<'_>) -> Result<Member, TextError> {
    let number = match line.word("the field's number")? {
        "-" => None,
        word => Some(word.parse().map_err(|_| line.error(format!("{word:?} is no field number")))?),
    };
    let name = line.word("the field's name")?;
    let place = line.place.clone();
    let target = line.word("the field's type")?;
    if name == "inline" {
        return Ok(Member::Inline { place, number, target: target.to_owned() });
    }
    let shape = shape(target).ok_or_else(|| line.error(format!("{target:?} is no type")))?;
    let mut field = FieldText { number, shape, ..plain(&place, 0, name, "") };
    if let Some(bare) = name.strip_suffix('!') {
        field.name = bare.into();
        field.required = true;
        field.omit = Omit::Never;
    }
    while !line.is_done() {
        word(&mut field, line)?;
    }
    Ok(Member::Field(field))
}

fn word(field: &mut FieldText, line: &mut Line<'_>) -> Result<(), TextError> {
    let word = line.word("a word about the field")?;
    let (name, argument) = match word.split_once('(') {
        Some((name, rest)) => {
            let argument = rest.strip_suffix(')').ok_or_else(|| line.error(format!("{word:?} has no closing )")))?;
            (name, Some(argument))
        }
        None => (word, None),
    };
    // A byte slice is a list in Go, and one of them says so.
    let is_list = match &field.shape {
        ShapeText::List(_) => true,
        ShapeText::Name(name) => name == "bytes",
        _ => false,
    };
    match (name, argument) {
        ("always", None) => field.omit = Omit::Never,
        ("omitzero", None) => field.omit = Omit::Zero,
        ("required", None) => field.required = true,
        ("=" | ":=", None) => {
            field.default_hidden = name == ":=";
            field.default = Some(literal(line)?);
        }
        ("atomic", None) if is_list => field.list = Some(ListKind::Atomic),
        ("set", None) if is_list => field.list = Some(ListKind::Set),
        ("map", Some(keys)) if is_list => field.list = Some(ListKind::Map(keys.split(',').map(Str::from).collect())),
        ("atomic", None) => field.atomic = true,
        ("granular", None) => field.granular = true,
        ("merge", key) => {
            let hint = field.patch.get_or_insert_with(PatchHint::default);
            hint.merge = true;
            hint.merge_key = key.map(Str::from);
        }
        ("retainKeys", None) => field.patch.get_or_insert_with(PatchHint::default).retain_keys = true,
        ("go", Some(name)) => field.go = Some(name.into()),
        ("replace", None) => field.patch = Some(PatchHint::default()),
        _ => return Err(line.error(format!("{word:?} says nothing about this field"))),
    }
    Ok(())
}

/// `"text"`, `12`, `true`, `{}`, or a list of one text: `["text"]`.
pub fn literal(line: &mut Line<'_>) -> Result<Value, TextError> {
    let text = line.literal("a value")?;
    if let Some(element) = text.strip_prefix("[\"").and_then(|rest| rest.strip_suffix("\"]")) {
        return Ok(vec![element].into());
    }
    if let Some(quoted) = text.strip_prefix('"') {
        return Ok(Value::from(quoted.trim_end_matches('"')));
    }
    match text {
        "{}" => Ok(Value::object()),
        "true" => Ok(Value::Bool(true)),
        "false" => Ok(Value::Bool(false)),
        _ => text.parse().map(Value::Int).map_err(|_| line.error(format!("{text:?} is no value"))),
    }
}

fn shape(text: &str) -> Option<ShapeText> {
    let inner = |text| shape(text).map(Box::new);
    if let Some(rest) = text.strip_prefix('*') {
        return Some(ShapeText::Pointer(inner(rest)?));
    }
    if let Some(rest) = text.strip_prefix("[]") {
        return Some(ShapeText::List(inner(rest)?));
    }
    if let Some(rest) = text.strip_prefix("map[string]") {
        return Some(ShapeText::Map(inner(rest)?));
    }
    if let Some(rest) = text.strip_prefix("box(") {
        return Some(ShapeText::Boxed(inner(rest.strip_suffix(')')?)?));
    }
    let is_name = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
    is_name.then(|| ShapeText::Name(text.to_owned()))
}

/// `union type localhostProfile=LocalhostProfile`; `-` stands for no discriminator.
pub fn union(line: &mut Line<'_>) -> Result<Union, TextError> {
    let discriminator = line.word("the discriminator, or -")?;
    let mut members = Vec::new();
    for word in line.words("a member")? {
        let (field, value) = word.split_once('=').ok_or_else(|| line.error(format!("{word:?} is not field=Value")))?;
        members.push((field.into(), value.into()));
    }
    Ok(Union { discriminator: (discriminator != "-").then(|| discriminator.into()), members })
}
