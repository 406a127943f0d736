//! What new objects have in common whose creators own the same fields. Objects that are made of one template are of one form.

use super::{Type, TypeKind};
use kubelith_meta::{Map, Value, keys};
use kubelith_schema::ListKind;

/// Which members an object has, of which kind its values are, and those values themselves that ownership depends on: they tell elements of lists
/// apart, or are compared with those that any new object has. It is kept as one text that objects are compared with, for that takes a tenth of what
/// finding the fields takes: no type is looked up, and nothing is sorted or written.
#[derive(Debug)]
pub(crate) struct Form(Box<[u8]>);

const NULL: u8 = b'n';
const FALSE: u8 = b'f';
const TRUE: u8 = b't';
/// Any value of a kind.
const ANY_INT: u8 = b'i';
const ANY_FLOAT: u8 = b'd';
const ANY_TEXT: u8 = b's';
/// These very values.
const INT: u8 = b'I';
const FLOAT: u8 = b'D';
const TEXT: u8 = b'S';
const LIST: u8 = b'[';
const OBJECT: u8 = b'{';

/// Values that count themselves, not only their kind.
#[derive(Clone, Copy)]
struct Exact<'z> {
    all: bool,
    /// What stands there in an object that was just made.
    zero: Option<&'z Value>,
}

impl Form {
    /// The form of `object`, if it fits the type.
    pub(crate) fn of(ty: Type<'_>, object: &Value) -> Option<Form> {
        let mut out = Vec::with_capacity(4096);
        write(&mut out, ty, Exact { all: false, zero: Some(&ty.zero()) }, object)?;
        Some(Form(out.into()))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether `object` is of this form.
    pub(crate) fn is_of(&self, object: &Value) -> bool {
        let mut rest = &*self.0;
        is_next(&mut rest, object).is_some() && rest.is_empty()
    }
}

fn write(out: &mut Vec<u8>, ty: Type<'_>, exact: Exact<'_>, value: &Value) -> Option<()> {
    let is_exact = exact.all || exact.zero.is_some();
    match value {
        Value::Null => out.push(NULL),
        Value::Bool(false) => out.push(FALSE),
        Value::Bool(true) => out.push(TRUE),
        Value::Int(number) if is_exact => {
            out.push(INT);
            out.extend(number.to_le_bytes());
        }
        Value::Float(number) if is_exact => {
            out.push(FLOAT);
            out.extend(number.to_le_bytes());
        }
        Value::String(text) if is_exact => {
            out.push(TEXT);
            write_text(out, text)?;
        }
        Value::Int(_) => out.push(ANY_INT),
        Value::Float(_) => out.push(ANY_FLOAT),
        Value::String(_) => out.push(ANY_TEXT),
        Value::Array(elements) => {
            let TypeKind::List(list) = ty.kind(Some(value)) else { return None };
            out.push(LIST);
            write_len(out, elements.len())?;
            let all = exact.all || matches!(list.kind, ListKind::Set);
            for element in elements {
                match (list.kind, element) {
                    (ListKind::Map(keys), Value::Object(members)) => {
                        let is_key = |name: &str| keys.iter().any(|key| key == name);
                        write_members(out, (list.element, element), Exact { all, zero: None }, members, is_key)?;
                    }
                    _ => write(out, list.element, Exact { all, zero: None }, element)?,
                }
            }
        }
        Value::Object(members) => write_members(out, (ty, value), exact, members, |_| false)?,
        Value::Raw(_) => return None,
    }
    Some(())
}

fn write_members(
    out: &mut Vec<u8>,
    (ty, value): (Type<'_>, &Value),
    exact: Exact<'_>,
    members: &Map,
    is_key: impl Fn(&str) -> bool,
) -> Option<()> {
    let TypeKind::Map(map) = ty.kind(Some(value)) else { return None };
    let mut types = map.in_order(members.len());
    out.push(OBJECT);
    write_len(out, members.len())?;
    for (key, member) in members.entries() {
        write_text(out, key)?;
        let exact = Exact { all: exact.all || is_key(key), zero: exact.zero.and_then(|zero| zero.get(key)) };
        write(out, types.member(key)?, exact, member)?;
    }
    Some(())
}

fn write_text(out: &mut Vec<u8>, text: &str) -> Option<()> {
    write_len(out, text.len())?;
    out.extend(text.as_bytes());
    Some(())
}

fn write_len(out: &mut Vec<u8>, len: usize) -> Option<()> {
    out.extend(u16::try_from(len).ok()?.to_le_bytes());
    Some(())
}

/// Goes on to what stands behind `value` in a form, if that is what comes next.
#[inline(always)]
fn is_next(rest: &mut &[u8], value: &Value) -> Option<()> {
    let (tag, behind) = rest.split_first()?;
    *rest = behind;
    match (*tag, value) {
        (NULL, Value::Null)
        | (FALSE, Value::Bool(false))
        | (TRUE, Value::Bool(true))
        | (ANY_INT, Value::Int(_))
        | (ANY_FLOAT, Value::Float(_))
        | (ANY_TEXT, Value::String(_)) => Some(()),
        (INT, Value::Int(number)) => pass(rest, &number.to_le_bytes()),
        (FLOAT, Value::Float(number)) => pass(rest, &number.to_le_bytes()),
        (TEXT, Value::String(text)) => pass_text(rest, text),
        (LIST, Value::Array(elements)) => are_next(rest, elements),
        (OBJECT, Value::Object(members)) => are_next_members(rest, members),
        _ => None,
    }
}

fn are_next(rest: &mut &[u8], elements: &[Value]) -> Option<()> {
    pass_len(rest, elements.len())?;
    elements.iter().try_for_each(|element| is_next(rest, element))
}

fn are_next_members(rest: &mut &[u8], members: &Map) -> Option<()> {
    pass_len(rest, members.len())?;
    members.entries().iter().try_for_each(|(key, member)| {
        pass_text(rest, key)?;
        is_next(rest, member)
    })
}

#[inline]
fn pass_len(rest: &mut &[u8], len: usize) -> Option<()> {
    let (there, behind) = rest.split_first_chunk()?;
    *rest = behind;
    (usize::from(u16::from_le_bytes(*there)) == len).then_some(())
}

#[inline]
fn pass_text(rest: &mut &[u8], text: &str) -> Option<()> {
    pass_len(rest, text.len())?;
    pass(rest, text.as_bytes())
}

#[inline]
fn pass(rest: &mut &[u8], bytes: &[u8]) -> Option<()> {
    let (there, behind) = rest.split_at_checked(bytes.len())?;
    *rest = behind;
    keys::same_bytes(there, bytes).then_some(())
}
