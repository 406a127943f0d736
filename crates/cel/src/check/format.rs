//! Format strings that are known before they are used.

use crate::ast::{Checked, Expr, ExprId};
use crate::types::Type;

/// Which argument is wrong (`None`: the format), and why.
type Bad = (Option<ExprId>, String);

/// How many arguments a format uses.
pub fn check(checked: &Checked, format: &str, args: &[ExprId]) -> Result<usize, Bad> {
    let whole = |message: String| (None, message);
    let mut used = 0;
    let mut rest = format.as_bytes();
    while let Some(at) = memchr::memchr(b'%', rest) {
        rest = &rest[at + 1..];
        match rest.first() {
            Some(b'%') => {
                rest = &rest[1..];
                continue;
            }
            None => return Err(whole("unexpected end of string".into())),
            Some(_) => {}
        }
        let Some(arg) = args.get(used) else { return Err(whole(format!("index {used} out of range"))) };
        let read = precision(rest)
            .map_err(|why| whole(format!("could not parse formatting clause: error while parsing precision: {why}")))?;
        // A format that ends behind its precision makes the reference fail; nothing is wrong with it here.
        let Some(clause) = rest.get(read) else { return Ok(args.len()) };
        verify(checked, *clause, *arg)?;
        rest = &rest[read + 1..];
        used += 1;
    }
    Ok(used)
}

/// How long the precision is: `.3`.
fn precision(text: &[u8]) -> Result<usize, String> {
    if text.first() != Some(&b'.') {
        return Ok(0);
    }
    let digits = text[1..].iter().take_while(|b| b.is_ascii_digit()).count();
    if text.len() == digits + 1 {
        return Err("could not find end of precision specifier".into());
    }
    let number = std::str::from_utf8(&text[1..=digits]).unwrap_or_default();
    let bad =
        |why| Err(format!("error while converting precision to integer: strconv.Atoi: parsing \"{number}\": {why}"));
    match number.parse::<i64>() {
        Ok(_) => Ok(digits + 1),
        Err(_) if number.is_empty() => bad("invalid syntax"),
        Err(_) => bad("value out of range"),
    }
}

fn verify(checked: &Checked, clause: u8, arg: ExprId) -> Result<(), Bad> {
    use Type::{Bool, Bytes, Double, Int, String as Text, Uint};
    let of = checked.type_of(arg);
    let one_of = |types: &[Type]| of.is_dyn() || types.iter().any(|t| super::unify::same(t, of));
    let (fits, says) = match clause {
        b's' => return string(checked, arg),
        b'd' => (one_of(&[Int, Uint]), "decimal clause can only be used on integers"),
        b'f' => (one_of(&[Double, Text]), "fixed-point clause can only be used on doubles"),
        b'e' => (one_of(&[Double, Text]), "scientific clause can only be used on doubles"),
        b'b' => (one_of(&[Int, Uint, Bool]), "only integers and bools can be formatted as binary"),
        b'x' | b'X' => {
            (one_of(&[Int, Uint, Text, Bytes]), "only integers, byte buffers, and strings can be formatted as hex")
        }
        b'o' => (one_of(&[Int, Uint]), "octal clause can only be used on integers"),
        other => {
            let message =
                format!("could not parse formatting clause: unrecognized formatting clause \"{}\"", char::from(other));
            return Err((None, message));
        }
    };
    if fits { Ok(()) } else { Err(wrong(arg, says, of)) }
}

fn wrong(arg: ExprId, says: &str, given: &Type) -> Bad {
    (Some(arg), format!("error during formatting: {says}, was given {}", given.runtime_name()))
}

/// Whether something can be written as a string, with what is in it as far as that is known.
fn string(checked: &Checked, arg: ExprId) -> Result<(), Bad> {
    let of = checked.type_of(arg);
    let fits = !matches!(of, Type::Object(_) | Type::Named(_) | Type::Optional(_) | Type::Any | Type::Error);
    if !fits {
        let says = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps";
        return Err(wrong(arg, says, of));
    }
    match checked.ast.expr(arg) {
        Expr::List { elements, .. } => checked.ast.list(*elements).iter().try_for_each(|e| string(checked, *e)),
        Expr::Map(entries) => checked.ast.entries(*entries).iter().try_for_each(|entry| {
            string(checked, entry.key)?;
            string(checked, entry.value)
        }),
        _ => Ok(()),
    }
}
