//! How a string is written: plain, quoted or as a literal block, by the rules of the reference's library.

use super::resolve::{Resolved, resolve};

/// Where a string stands.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Place {
    SimpleKey,
    Elsewhere,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

pub(super) fn style(s: &str, place: Place) -> Style {
    let a = Analysis::of(s);
    let wanted = if s.contains('\n') {
        Style::Literal
    } else if matches!(resolve("", s), Ok(Resolved::Str)) && !is_base60(s) {
        Style::Plain
    } else {
        Style::DoubleQuoted
    };
    match wanted {
        _ if place == Place::SimpleKey && a.multiline => Style::DoubleQuoted,
        Style::Plain if a.plain_allowed => Style::Plain,
        Style::Plain if a.single_quoted_allowed => Style::SingleQuoted,
        Style::Literal if a.block_allowed && place != Place::SimpleKey => Style::Literal,
        _ => Style::DoubleQuoted,
    }
}

/// `1:30:00`, a number to other YAML 1.1 readers.
fn is_base60(s: &str) -> bool {
    let rest = s.strip_prefix(['+', '-']).unwrap_or(s);
    if !rest.starts_with(|c: char| c.is_ascii_digit()) || !rest.contains(':') {
        return false;
    }
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let mut parts = whole.split(':');
    let sexagesimal = |part: &str| matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']);
    parts.next().is_some_and(digits) && parts.all(sexagesimal) && digits(fraction)
}

/// Which styles can hold a text.
struct Analysis {
    multiline: bool,
    plain_allowed: bool,
    single_quoted_allowed: bool,
    block_allowed: bool,
}

impl Analysis {
    fn of(s: &str) -> Analysis {
        let mut indicators = s.starts_with("---") || s.starts_with("...");
        let (mut breaks, mut special, mut break_space, mut space_break) = (false, false, false, false);
        let mut previous = '\0';
        let mut chars = s.chars().peekable();
        let mut first = true;
        while let Some(c) = chars.next() {
            let before_blank = chars.peek().is_none_or(|next| matches!(next, ' ' | '\t'));
            indicators |= match c {
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`'
                    if first =>
                {
                    true
                }
                '?' | '-' if first => before_blank,
                ':' => before_blank,
                '#' => matches!(previous, ' ' | '\t') || is_break(previous),
                _ => false,
            };
            special |= !is_printable(c);
            if c == ' ' {
                break_space |= !first && is_break(previous);
            } else if is_break(c) {
                breaks = true;
                space_break |= previous == ' ';
            }
            previous = c;
            first = false;
        }
        let edge = |c: char| c == ' ' || is_break(c);
        let ragged = s.starts_with(edge) || s.ends_with(edge);
        let quotable = !break_space && !space_break && !special;
        Analysis {
            multiline: breaks,
            plain_allowed: !ragged && quotable && !breaks && !indicators,
            single_quoted_allowed: quotable,
            block_allowed: !s.is_empty() && !s.ends_with(' ') && !space_break && !special,
        }
    }
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What the reference's library writes as it is. Tabs and characters beyond the basic plane are escaped.
fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && c != '\u{feff}'
}

pub(super) fn is_plain_in_quotes(c: char) -> bool {
    is_printable(c) && !is_break(c) && !matches!(c, '"' | '\\')
}
