//! From text to the tree, with Go's complaints about what is none.

use super::ast::{Excess, Fold, Look, MAX_REPEAT, Node};
use super::class;

/// Digits beyond this many make a number too large, whatever it is.
const MAX_NUMBER: u32 = 100_000_000;

/// Parses an expression. The error is worded as Go words it.
pub fn parse(pattern: &str) -> Result<Node, String> {
    let parser = Parser {
        whole: pattern,
        rest: pattern,
        flags: Flags::default(),
        open: Vec::new(),
        now: Level::ROOT,
        no_names: false,
    };
    parser.run()
}

#[derive(Clone, Copy, Default)]
struct Flags {
    any_case: bool,
    multi_line: bool,
    dot_takes_all: bool,
    lazy: bool,
}

/// What parentheses are for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Capture,
    Plain,
}

/// One level of parentheses while it is open.
struct Level {
    group: Group,
    /// To return to behind it.
    outside: Flags,
    alternatives: Vec<Node>,
    /// Of the alternative that is being read.
    parts: Vec<Node>,
}

impl Level {
    const ROOT: Level = Level {
        group: Group::Plain,
        outside: Flags { any_case: false, multi_line: false, dot_takes_all: false, lazy: false },
        alternatives: Vec::new(),
        parts: Vec::new(),
    };

    fn end_alternative(&mut self) -> Result<(), Excess> {
        let done = Node::concat(std::mem::take(&mut self.parts))?;
        self.alternatives.push(done);
        Ok(())
    }

    fn close(mut self) -> Result<Node, Excess> {
        self.end_alternative()?;
        let node = Node::alternate(self.alternatives)?;
        if self.group == Group::Capture { Node::capture(node) } else { Ok(node) }
    }
}

/// `{min,max}`, or what its numbers are too large for.
enum Count {
    Range(u32, Option<u32>),
    TooLarge,
}

struct Parser<'a> {
    whole: &'a str,
    rest: &'a str,
    flags: Flags,
    /// Levels around the one that is being read.
    open: Vec<Level>,
    now: Level,
    /// No `:]` comes any more: nobody need look for it at each `[:`.
    no_names: bool,
}

fn error<T>(what: &str, expression: &str) -> Result<T, String> {
    Err(format!("error parsing regexp: {what}: `{expression}`"))
}

impl<'a> Parser<'a> {
    fn run(mut self) -> Result<Node, String> {
        // Where the repetition begins that ends right before what comes next.
        let mut last_repeat = None;
        while let Some(c) = self.rest.chars().next() {
            let at = self.rest;
            last_repeat = match c {
                '*' | '+' | '?' => {
                    self.skip(1);
                    let (min, max) = match c {
                        '*' => (0, None),
                        '+' => (1, None),
                        _ => (0, Some(1)),
                    };
                    self.repeat(at, last_repeat, |node, greedy| Node::star(node, min, max, greedy))?;
                    Some(at)
                }
                '{' if count(at).is_some() => {
                    self.counted(at, last_repeat)?;
                    Some(at)
                }
                c => {
                    self.item(c)?;
                    None
                }
            };
        }
        if !self.open.is_empty() {
            return error("missing closing )", self.whole);
        }
        let level = std::mem::replace(&mut self.now, Level::ROOT);
        level.close().map_err(|e| self.excess(e))
    }

    fn item(&mut self, c: char) -> Result<(), String> {
        let at = self.rest;
        match c {
            '(' if at.starts_with("(?") => self.perl_group(),
            '(' => {
                self.skip(1);
                self.open_group(Group::Capture);
                Ok(())
            }
            '|' => {
                self.skip(1);
                self.now.end_alternative().map_err(|e| self.excess(e))
            }
            ')' => self.close_group(),
            '^' => {
                self.skip(1);
                self.push(Node::look(if self.flags.multi_line { Look::LineStart } else { Look::TextStart }))
            }
            '$' => {
                self.skip(1);
                self.push(Node::look(if self.flags.multi_line { Look::LineEnd } else { Look::TextEnd }))
            }
            '.' => {
                self.skip(1);
                let any = if self.flags.dot_takes_all { r"[\x{0}-\x{10ffff}]" } else { r"[^\n]" };
                self.push(Node::class(any.to_owned()))
            }
            '[' => self.class(),
            '\\' => self.backslash(),
            c => {
                self.skip(c.len_utf8());
                self.literal(c)
            }
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    /// From `at` to where we are.
    fn since(&self, at: &'a str) -> &'a str {
        &at[..at.len() - self.rest.len()]
    }

    fn excess(&self, excess: Excess) -> String {
        let what = match excess {
            Excess::Large => "expression too large",
            Excess::Deep => "expression nests too deeply",
        };
        format!("error parsing regexp: {what}: `{}`", self.whole)
    }

    fn push(&mut self, node: Result<Node, Excess>) -> Result<(), String> {
        let node = node.map_err(|e| self.excess(e))?;
        // Only what is not the last part can grow: an operator that follows is about the last one alone.
        if let [.., last, next] = self.now.parts.as_mut_slice() {
            match last.join(next) {
                Ok(true) => drop(self.now.parts.pop()),
                Ok(false) => {}
                Err(excess) => return Err(self.excess(excess)),
            }
        }
        self.now.parts.push(node);
        Ok(())
    }

    fn literal(&mut self, c: char) -> Result<(), String> {
        let fold = if self.flags.any_case { Fold::AnyCase } else { Fold::Exact };
        self.push(Node::literal(c, fold))
    }

    fn open_group(&mut self, group: Group) {
        let level = Level { group, outside: self.flags, ..Level::ROOT };
        self.open.push(std::mem::replace(&mut self.now, level));
    }

    fn close_group(&mut self) -> Result<(), String> {
        let Some(around) = self.open.pop() else { return error("unexpected )", self.whole) };
        self.skip(1);
        let level = std::mem::replace(&mut self.now, around);
        self.flags = level.outside;
        self.push(level.close())
    }

    /// `(?…`: a named group, or flags.
    fn perl_group(&mut self) -> Result<(), String> {
        let at = self.rest;
        let name_at = match () {
            () if at.len() > 4 && at.starts_with("(?P<") => 4,
            () if at.len() > 3 && at.starts_with("(?<") => 3,
            () => return self.flags(),
        };
        let Some(end) = at.find('>') else { return error("invalid named capture", at) };
        let name = &at[name_at..end];
        if name.is_empty() || !name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
            return error("invalid named capture", &at[..=end]);
        }
        self.skip(end + 1);
        self.open_group(Group::Capture);
        Ok(())
    }

    fn flags(&mut self) -> Result<(), String> {
        let at = self.rest;
        self.skip(2);
        let (mut flags, mut on, mut seen) = (self.flags, true, false);
        while let Some(c) = self.rest.chars().next() {
            self.skip(c.len_utf8());
            match c {
                'i' => flags.any_case = on,
                'm' => flags.multi_line = on,
                's' => flags.dot_takes_all = on,
                'U' => flags.lazy = on,
                '-' if on => {
                    (on, seen) = (false, false);
                    continue;
                }
                ':' | ')' if on || seen => {
                    if c == ':' {
                        self.open_group(Group::Plain);
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => break,
            }
            seen = true;
        }
        error("invalid or unsupported Perl syntax", self.since(at))
    }

    fn counted(&mut self, at: &'a str, last_repeat: Option<&'a str>) -> Result<(), String> {
        let Some((counts, length)) = count(at) else { return Ok(()) };
        self.skip(length);
        let (min, max) = match counts {
            Count::Range(min, max) if min <= MAX_REPEAT && max.is_none_or(|m| m <= MAX_REPEAT && min <= m) => {
                (min, max)
            }
            _ => return error("invalid repeat count", self.since(at)),
        };
        self.repeat(at, last_repeat, |node, greedy| Node::repeat(node, min, max, greedy))?;
        let is_excessive = self.now.parts.last().is_some_and(Node::is_excessive);
        if is_excessive && (min >= 2 || max.is_some_and(|m| m >= 2)) {
            return error("invalid repeat count", self.since(at));
        }
        Ok(())
    }

    /// Repeats the last part; the operator began at `at` and is read but for a question mark.
    fn repeat(
        &mut self,
        at: &'a str,
        last_repeat: Option<&'a str>,
        make: impl FnOnce(Node, bool) -> Result<Node, Excess>,
    ) -> Result<(), String> {
        let mut greedy = !self.flags.lazy;
        if self.rest.starts_with('?') {
            self.skip(1);
            greedy = !greedy;
        }
        if let Some(last) = last_repeat {
            return error("invalid nested repetition operator", self.since(last));
        }
        let Some(node) = self.now.parts.pop() else {
            return error("missing argument to repetition operator", self.since(at));
        };
        let repeated = make(node, greedy).map_err(|e| self.excess(e))?;
        self.now.parts.push(repeated);
        Ok(())
    }

    fn backslash(&mut self) -> Result<(), String> {
        let at = self.rest;
        let Some(c) = at[1..].chars().next() else { return error("trailing backslash at end of expression", "") };
        let look = match c {
            'A' => Look::TextStart,
            'z' => Look::TextEnd,
            'b' => Look::WordBoundary,
            'B' => Look::NoWordBoundary,
            'C' => return error("invalid escape sequence", &at[..2]),
            'Q' => {
                let (quoted, rest) = at[2..].split_once(r"\E").unwrap_or((&at[2..], ""));
                self.rest = rest;
                return quoted.chars().try_for_each(|c| self.literal(c));
            }
            _ => {
                return match self.named_class()? {
                    Some(class) => self.push_class(&format!("[{class}]")),
                    None => {
                        let code = self.escape()?;
                        match char::from_u32(code) {
                            Some(c) => self.literal(c),
                            None => self.push_class(r"[^\x{0}-\x{10ffff}]"),
                        }
                    }
                };
            }
        };
        self.skip(2);
        self.push(Node::look(look))
    }

    fn push_class(&mut self, class: &str) -> Result<(), String> {
        self.push(Node::class(if self.flags.any_case { format!("(?i:{class})") } else { class.to_owned() }))
    }

    /// `\pL`, `\p{Greek}`, `\d` and their like, as they stand inside of brackets.
    fn named_class(&mut self) -> Result<Option<String>, String> {
        let at = self.rest;
        let mut chars = at.chars();
        if chars.next() != Some('\\') {
            return Ok(None);
        }
        let c = chars.next().unwrap_or_default();
        if let Some(perl) = class::perl(c) {
            self.skip(2);
            return Ok(Some(perl.to_owned()));
        }
        if !matches!(c, 'p' | 'P') {
            return Ok(None);
        }
        let (name, length) = match chars.next() {
            Some('{') => match at.find('}') {
                Some(end) => (&at[3..end], end + 1),
                None => return error("invalid character class range", at),
            },
            Some(c) => (&at[2..2 + c.len_utf8()], 2 + c.len_utf8()),
            None => ("", 2),
        };
        self.skip(length);
        let (name, turned) = name.strip_prefix('^').map_or((name, false), |name| (name, true));
        match class::property(name, (c == 'P') != turned) {
            Some(class) => Ok(Some(class)),
            None => error("invalid character class range", self.since(at)),
        }
    }

    /// The character that an escape stands for; a number, since it may be half of a character.
    fn escape(&mut self) -> Result<u32, String> {
        let at = self.rest;
        self.skip(1);
        let Some(c) = self.next() else { return error("trailing backslash at end of expression", "") };
        let code = match c {
            '1'..='7' if !self.rest.starts_with(|c: char| c.is_digit(8)) => None,
            '0'..='7' => {
                let more = self.rest.bytes().take(2).take_while(|b| (b'0'..=b'7').contains(b)).count();
                let digits = format!("{c}{}", &self.rest[..more]);
                self.skip(more);
                u32::from_str_radix(&digits, 8).ok()
            }
            'x' => self.hexadecimal(),
            'a' => Some(7),
            'f' => Some(12),
            'n' => Some(10),
            'r' => Some(13),
            't' => Some(9),
            'v' => Some(11),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(c.into()),
            _ => None,
        };
        match code {
            Some(code) => Ok(code),
            None => error("invalid escape sequence", self.since(at)),
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.skip(c.len_utf8());
        Some(c)
    }

    /// What follows `\x`. Reads on to what is wrong with it.
    fn hexadecimal(&mut self) -> Option<u32> {
        let first = self.next()?;
        if first != '{' {
            let second = self.next();
            return Some(first.to_digit(16)? * 16 + second?.to_digit(16)?);
        }
        let (mut code, mut digits) = (0, 0);
        loop {
            match self.next()? {
                '}' => return (digits > 0).then_some(code),
                c => code = code * 16 + c.to_digit(16)?,
            }
            if code > u32::from(char::MAX) {
                return None;
            }
            digits += 1;
        }
    }

    fn class(&mut self) -> Result<(), String> {
        let at = self.rest;
        self.skip(1);
        let mut out = String::from("[");
        if self.rest.starts_with('^') {
            self.skip(1);
            out.push('^');
        }
        let head = out.len();
        let mut first = true;
        while first || !self.rest.starts_with(']') {
            first = false;
            if let Some(named) = self.posix_class()? {
                out.push_str(named);
                continue;
            }
            if let Some(named) = self.named_class()? {
                out.push_str(&named);
                continue;
            }
            let range = self.rest;
            let lo = self.class_char(at)?;
            let mut hi = lo;
            if self.rest.len() >= 2 && self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                self.skip(1);
                hi = self.class_char(at)?;
                if hi < lo {
                    return error("invalid character class range", self.since(range));
                }
            }
            out.push_str(&class::range(lo, hi));
        }
        self.skip(1);
        // Nothing but halves of characters: no character, or any.
        let text = match out.len() == head {
            true if head == 1 => r"[^\x{0}-\x{10ffff}]".to_owned(),
            true => r"[\x{0}-\x{10ffff}]".to_owned(),
            false => format!("{out}]"),
        };
        self.push_class(&text)
    }

    /// `[:alpha:]`, inside of brackets.
    fn posix_class(&mut self) -> Result<Option<&'a str>, String> {
        let at = self.rest;
        let Some(name) = at.strip_prefix("[:").filter(|_| !self.no_names) else { return Ok(None) };
        let Some(end) = name.find(":]") else {
            self.no_names = true;
            return Ok(None);
        };
        self.skip(end + 4);
        match class::is_posix(&name[..end]) {
            true => Ok(Some(self.since(at))),
            false => error("invalid character class range", self.since(at)),
        }
    }

    fn class_char(&mut self, class: &str) -> Result<u32, String> {
        match self.rest.chars().next() {
            None => error("missing closing ]", class),
            Some('\\') => self.escape(),
            Some(c) => {
                self.skip(c.len_utf8());
                Ok(c.into())
            }
        }
    }
}

/// A repetition in braces at the beginning of `text`, with its length. Any other brace is a brace.
fn count(text: &str) -> Option<(Count, usize)> {
    let inside = text.strip_prefix('{')?;
    let inside = &inside[..inside.bytes().take_while(|b| b.is_ascii_digit() || *b == b',').count()];
    let end = 1 + inside.len();
    if !text[end..].starts_with('}') {
        return None;
    }
    let counts = match inside.split_once(',') {
        None => number(inside)?.map(|n| (n, Some(n))),
        Some((least, "")) => number(least)?.map(|n| (n, None)),
        Some((least, most)) => number(least)?.zip(number(most)?).map(|(least, most)| (least, Some(most))),
    };
    Some((counts.map_or(Count::TooLarge, |(min, max)| Count::Range(min, max)), end + 1))
}

/// Digits without zeros in front; `Some(None)` if they are too many.
fn number(text: &str) -> Option<Option<u32>> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number || (text.len() > 1 && text.starts_with('0')) {
        return None;
    }
    Some(text.parse().ok().filter(|n| *n < MAX_NUMBER * 10))
}
