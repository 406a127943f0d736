//! A value as the YAML that kube-apiserver answers: block style, two spaces, lists level with their keys, long
//! lines folded at 80 columns, strings quoted only where they would be read as something else.

use super::order;
use super::scalar::whole;
use super::style::{Place, Style, is_break, is_plain_in_quotes, style};
use crate::json;
use kubelith_meta::{Map, Value, text};

/// Lines are broken at the first single space behind this column.
const WIDTH: usize = 80;
const INDENT: usize = 2;

/// Deeper values are written in flow style.
const MAX_RECURSION: usize = 100;

/// Longer keys are written as `? key` and `: value`.
const MAX_SIMPLE_KEY_BYTES: usize = 128;

/// Appends one document with its newline.
pub fn write(out: &mut Vec<u8>, value: &Value) {
    let mut w = Writer { out, column: 0, whitespace: true, indention: true, depth: 0 };
    w.node(value, Position::Root, None);
    w.line_start(0);
}

pub fn to_vec(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    write(&mut out, value);
    out
}

struct Writer<'o> {
    out: &'o mut Vec<u8>,
    /// Characters on the line so far.
    column: usize,
    /// The last character was white space.
    whitespace: bool,
    /// Only indentation (and list dashes) on the line so far.
    indention: bool,
    /// Collections that are open.
    depth: usize,
}

/// Where a node stands.
#[derive(Clone, Copy, PartialEq)]
enum Position {
    Root,
    Item,
    /// The value of a key, or a key that is no simple one.
    Member,
    SimpleKey,
}

impl Writer<'_> {
    /// `indent` is that of the collection around; `None` at the root.
    fn node(&mut self, value: &Value, position: Position, indent: Option<usize>) {
        match value {
            Value::Null => self.plain("null"),
            Value::Bool(b) => self.plain(if *b { "true" } else { "false" }),
            Value::Int(i) => self.plain(itoa::Buffer::new().format(*i)),
            Value::Float(f) => self.plain(&float(*f)),
            Value::String(s) => self.string(s, position, indent),
            Value::Raw(text) => self.node(&json::parse(text.as_bytes()).unwrap_or_default(), position, indent),
            Value::Array(items) if items.is_empty() => self.indicator("[]", Before::Space, false),
            Value::Object(members) if members.is_empty() => self.indicator("{}", Before::Space, false),
            // JSON is YAML, too, and written without recursion.
            deep if self.depth > MAX_RECURSION => {
                let text = json::to_string(deep);
                self.plain(&text);
            }
            Value::Array(items) => {
                self.depth += 1;
                self.sequence(items, position, indent);
                self.depth -= 1;
            }
            Value::Object(members) => {
                self.depth += 1;
                self.mapping(members, indent);
                self.depth -= 1;
            }
        }
    }

    fn sequence(&mut self, items: &[Value], position: Position, indent: Option<usize>) {
        // A list in a mapping is not indented; one in a list is.
        let level = match indent {
            None => 0,
            Some(level) if position == Position::Member && !self.indention => level,
            Some(level) => level + INDENT,
        };
        for item in items {
            self.line_start(level);
            self.indicator("-", Before::Space, true);
            self.node(item, Position::Item, Some(level));
        }
    }

    fn mapping(&mut self, members: &Map, indent: Option<usize>) {
        let level = indent.map_or(0, |level| level + INDENT);
        for (key, value) in order::sort(members.iter().collect()) {
            self.line_start(level);
            if key.len() <= MAX_SIMPLE_KEY_BYTES && !key.chars().any(is_break) {
                self.string(key, Position::SimpleKey, Some(level));
                self.indicator(":", Before::Nothing, false);
            } else {
                self.indicator("?", Before::Space, true);
                self.string(key, Position::Member, Some(level));
                self.line_start(level);
                self.indicator(":", Before::Space, true);
            }
            self.node(value, Position::Member, Some(level));
        }
    }

    fn string(&mut self, s: &str, position: Position, indent: Option<usize>) {
        let folded;
        let s = if s.contains(NEXT_LINE) {
            folded = fold_next_lines(s);
            &folded
        } else {
            s
        };
        // Continuation lines stand one level deeper than what is around.
        let level = indent.map_or(INDENT, |level| level + INDENT);
        let fold = if position == Position::SimpleKey { Fold::Never } else { Fold::At(level) };
        let place = if position == Position::SimpleKey { Place::SimpleKey } else { Place::Elsewhere };
        match style(s, place) {
            Style::Plain => {
                self.space();
                self.folded(s, fold, |_, _| false);
            }
            Style::SingleQuoted => {
                self.indicator("'", Before::Space, false);
                self.folded(s, fold, |w, c| {
                    if c == '\'' {
                        w.put('\'');
                    }
                    false
                });
                self.indicator("'", Before::Nothing, false);
            }
            Style::DoubleQuoted => {
                self.indicator("\"", Before::Space, false);
                self.double_quoted(s, fold);
                self.indicator("\"", Before::Nothing, false);
            }
            Style::Literal => self.literal(s, level),
        }
    }

    fn plain(&mut self, s: &str) {
        self.space();
        self.out.extend_from_slice(s.as_bytes());
        self.column += s.len();
        self.whitespace = false;
        self.indention = false;
    }

    /// Plain and single-quoted text. Line breaks double; `special` writes what stands before a character.
    fn folded(&mut self, s: &str, fold: Fold, special: fn(&mut Self, char) -> bool) {
        let quoted = self.out.last() == Some(&b'\'');
        let last = s.chars().count().saturating_sub(1);
        let mut after_space = false;
        let mut after_break = false;
        let mut chars = s.chars().enumerate().peekable();
        while let Some((i, c)) = chars.next() {
            if c == ' ' {
                let next_is_space = chars.peek().is_some_and(|(_, c)| *c == ' ');
                // Quotes keep a space at either end of the text.
                let inside = !quoted || (i > 0 && i < last);
                match fold {
                    Fold::At(level) if !after_space && self.column > WIDTH && inside && !next_is_space => {
                        self.line_start(level);
                    }
                    _ => self.put(' '),
                }
                after_space = true;
            } else if is_break(c) {
                if !after_break && c == '\n' {
                    self.newline();
                }
                self.put_break(c);
                self.indention = true;
                after_break = true;
            } else {
                if after_break && let Fold::At(level) = fold {
                    self.line_start(level);
                }
                special(self, c);
                self.put(c);
                self.indention = false;
                after_space = false;
                after_break = false;
            }
        }
        self.whitespace = false;
        self.indention = false;
    }

    fn double_quoted(&mut self, s: &str, fold: Fold) {
        // Behind a byte order mark the reference's library takes everything for one.
        let escape_all = s.starts_with('\u{feff}');
        let last = s.chars().count().saturating_sub(1);
        let mut after_space = false;
        let mut chars = s.chars().enumerate().peekable();
        while let Some((i, c)) = chars.next() {
            if c == ' ' && !escape_all {
                match fold {
                    Fold::At(level) if !after_space && self.column > WIDTH && i > 0 && i < last => {
                        self.line_start(level);
                        if chars.peek().is_some_and(|(_, c)| *c == ' ') {
                            self.put('\\');
                        }
                    }
                    _ => self.put(' '),
                }
                after_space = true;
                continue;
            }
            after_space = false;
            if is_plain_in_quotes(c) && !escape_all {
                self.put(c);
            } else {
                self.escape(c);
            }
        }
    }

    fn escape(&mut self, c: char) {
        let code = c as u32;
        let letter = match c {
            '\0' => '0',
            '\x07' => 'a',
            '\x08' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\x0b' => 'v',
            '\x0c' => 'f',
            '\r' => 'r',
            '\x1b' => 'e',
            '"' | '\\' => c,
            '\u{85}' => 'N',
            '\u{a0}' => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            _ if code <= 0xff => return self.put_all(&format!("\\x{code:02X}")),
            _ if code <= 0xffff => return self.put_all(&format!("\\u{code:04X}")),
            _ => return self.put_all(&format!("\\U{code:08X}")),
        };
        self.put('\\');
        self.put(letter);
    }

    fn literal(&mut self, s: &str, level: usize) {
        self.indicator("|", Before::Space, false);
        if s.starts_with([' ', '\n']) || s.starts_with(is_break) {
            self.indicator("2", Before::Nothing, false);
        }
        let mut from_end = s.chars().rev();
        let chomp = match (from_end.next(), from_end.next()) {
            (Some(c), _) if !is_break(c) => "-",
            (Some(_), Some(c)) if !is_break(c) => "",
            (None, _) => "-",
            _ => "+",
        };
        if !chomp.is_empty() {
            self.indicator(chomp, Before::Nothing, false);
        }
        self.newline();
        self.indention = true;
        self.whitespace = true;
        let mut after_break = true;
        for c in s.chars() {
            if is_break(c) {
                self.put_break(c);
                self.indention = true;
                after_break = true;
            } else {
                if after_break {
                    self.line_start(level);
                }
                self.put(c);
                self.indention = false;
                after_break = false;
            }
        }
    }

    /// Goes to column `level` of a line that has nothing else on it yet.
    fn line_start(&mut self, level: usize) {
        if !self.indention || self.column > level || (self.column == level && !self.whitespace) {
            self.newline();
        }
        while self.column < level {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn indicator(&mut self, s: &str, before: Before, indention: bool) {
        if before == Before::Space {
            self.space();
        }
        self.put_all(s);
        self.whitespace = false;
        self.indention = self.indention && indention;
    }

    fn space(&mut self) {
        if !self.whitespace {
            self.put(' ');
        }
    }

    fn put(&mut self, c: char) {
        self.out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        self.column += 1;
    }

    fn put_all(&mut self, s: &str) {
        self.out.extend_from_slice(s.as_bytes());
        self.column += s.len();
    }

    fn put_break(&mut self, c: char) {
        if c == '\n' {
            self.newline();
        } else {
            self.put(c);
            self.column = 0;
        }
    }

    fn newline(&mut self) {
        self.out.push(b'\n');
        self.column = 0;
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Before {
    Space,
    Nothing,
}

#[derive(Clone, Copy)]
enum Fold {
    Never,
    /// The indentation of continuation lines.
    At(usize),
}

/// A double: as an integer if JSON prints it as one, else with Go's shortest digits.
fn float(f: f64) -> String {
    if let Some(i) = whole(f) {
        return i.to_string();
    }
    // Between i64 and u64 the digits come back as an integer, too.
    if f.fract() == 0.0 && (0.0..18_446_744_073_709_551_616.0).contains(&f) {
        return format!("{f}");
    }
    text::float_v(f)
}

const NEXT_LINE: char = '\u{85}';

/// The reference makes YAML by reading its JSON as YAML, to which U+0085 in a quoted string is a line break: one
/// becomes a space, several lose one, and blanks around them go.
fn fold_next_lines(s: &str) -> String {
    // Tabs are escaped in JSON, so only spaces are blank here.
    let blank = ' ';
    let mut out = String::with_capacity(s.len());
    let mut parts = s.split(NEXT_LINE).peekable();
    let mut breaks = 0;
    let mut first = true;
    while let Some(part) = parts.next() {
        let mut text = part;
        if !first {
            text = text.trim_start_matches(blank);
        }
        if parts.peek().is_some() {
            text = text.trim_end_matches(blank);
        }
        if !first {
            breaks += 1;
        }
        if !text.is_empty() || parts.peek().is_none() {
            match breaks {
                0 => {}
                1 => out.push(' '),
                n => out.extend(std::iter::repeat_n('\n', n - 1)),
            }
            breaks = 0;
            out.push_str(text);
        }
        first = false;
    }
    out
}
