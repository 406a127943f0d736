//! Regular expressions in Go's syntax (RE2), as schemas and rules are written.
//!
//! The `regex` crate has the same semantics and nearly the same syntax. What differs is rewritten: `\d`, `\w`, `\s` and
//! `\b` are ASCII in Go, braces that are no repetition and brackets inside of a class are literal, `\Q...\E` quotes.

use regex::{Regex, RegexBuilder};

/// Memory that one compiled expression may take: Go refuses what repeats more than a thousand times, which needs less.
const SIZE_LIMIT: usize = 8 << 20;
/// Go's limit of a counted repetition.
const MAX_REPEAT: u32 = 1000;

/// Compiles an expression. The error begins as Go's does.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let text = translate(pattern)?;
    let built = RegexBuilder::new(&text).size_limit(SIZE_LIMIT).build();
    built.map_err(|e| match e {
        regex::Error::CompiledTooBig(_) => "error parsing regexp: expression too large".to_owned(),
        _ => format!("error parsing regexp: invalid syntax: `{pattern}`"),
    })
}

fn translate(pattern: &str) -> Result<String, String> {
    let mut t = Translator { rest: pattern, out: String::with_capacity(pattern.len() + 16) };
    // What follows the last repetition began with it, if nothing came between.
    let mut repeated: Option<&str> = None;
    let mut depth = 0u32;
    // Whether there is nothing that could be repeated.
    let mut bare = true;
    loop {
        let before = t.rest;
        let Some(c) = t.next() else { break };
        let mut repeats = false;
        match c {
            '\\' => t.escape(Place::Outside)?,
            '[' => t.class()?,
            '(' => {
                depth += 1;
                t.group()?;
            }
            ')' if depth == 0 => return Err(format!("error parsing regexp: unexpected ): `{pattern}`")),
            ')' => {
                depth -= 1;
                t.out.push(c);
            }
            '{' => repeats = t.brace()?,
            '*' | '+' | '?' => {
                repeats = true;
                t.out.push(c);
            }
            other => t.out.push(other),
        }
        if repeats && bare {
            let operator = &before[..before.len() - t.rest.len()];
            return Err(format!("error parsing regexp: missing argument to repetition operator: `{operator}`"));
        }
        // A question mark that begins flags repeats nothing.
        bare = c == '|' || (c == '(' && !t.rest.starts_with('?'));
        if repeats {
            // A repetition of few rather than many.
            if t.eat("?") {
                t.out.push('?');
            }
            if let Some(first) = repeated {
                let operators = &first[..first.len() - t.rest.len()];
                return Err(format!("error parsing regexp: invalid nested repetition operator: `{operators}`"));
            }
        }
        repeated = repeats.then_some(before);
    }
    if depth > 0 {
        return Err(format!("error parsing regexp: missing closing ): `{pattern}`"));
    }
    Ok(t.out)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    InClass,
}

struct Translator<'a> {
    rest: &'a str,
    out: String,
}

impl Translator<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// What follows a backslash.
    fn escape(&mut self, place: Place) -> Result<(), String> {
        let Some(c) = self.next() else {
            return Err("error parsing regexp: trailing backslash at end of expression: ``".into());
        };
        let (positive, negative) = match c {
            'd' | 'D' => ("0-9", "^0-9"),
            'w' | 'W' => ("0-9A-Za-z_", "^0-9A-Za-z_"),
            's' | 'S' => (r"\t\n\f\r ", r"^\t\n\f\r "),
            _ => return self.plain_escape(c, place),
        };
        match (c.is_lowercase(), place) {
            (true, Place::InClass) => self.out.push_str(positive),
            (true, Place::Outside) => self.out.push_str(&format!("[{positive}]")),
            (false, _) => self.out.push_str(&format!("[{negative}]")),
        }
        Ok(())
    }

    fn plain_escape(&mut self, c: char, place: Place) -> Result<(), String> {
        match c {
            'b' if place == Place::Outside => self.out.push_str(r"(?-u:\b)"),
            'B' if place == Place::Outside => self.out.push_str(r"(?-u:\B)"),
            'Q' if place == Place::Outside => {
                let (quoted, rest) = self.rest.split_once(r"\E").unwrap_or((self.rest, ""));
                self.out.push_str(&regex::escape(quoted));
                self.rest = rest;
            }
            // Octal, of which `\0` alone is the shortest.
            '0'..='7' => {
                let more = self.rest.bytes().take(2).take_while(|b| (b'0'..=b'7').contains(b)).count();
                if c != '0' && more == 0 {
                    return Err(format!("error parsing regexp: invalid escape sequence: `\\{c}`"));
                }
                let digits = format!("{c}{}", &self.rest[..more]);
                self.rest = &self.rest[more..];
                let code = u32::from_str_radix(&digits, 8).unwrap_or_default();
                self.out.push_str(&format!(r"\x{{{code:x}}}"));
            }
            'A' | 'z' if place == Place::Outside => {
                self.out.push('\\');
                self.out.push(c);
            }
            'p' | 'P' | 'x' | 'a' | 'f' | 't' | 'n' | 'r' | 'v' => {
                self.out.push('\\');
                self.out.push(c);
                // The name of a property, or a number, stands in braces that are no repetition.
                if matches!(c, 'p' | 'P' | 'x')
                    && self.rest.starts_with('{')
                    && let Some(end) = self.rest.find('}')
                {
                    self.out.push_str(&self.rest[..=end]);
                    self.rest = &self.rest[end + 1..];
                }
            }
            _ if c.is_ascii() && !c.is_ascii_alphanumeric() => self.out.push_str(&literal(c)),
            _ => return Err(format!("error parsing regexp: invalid escape sequence: `\\{c}`")),
        }
        Ok(())
    }

    /// Groups can have a name or flags, of which Go has fewer.
    fn group(&mut self) -> Result<(), String> {
        self.out.push('(');
        let Some(flags) = self.rest.strip_prefix('?').filter(|f| !f.starts_with(['P', '<'])) else { return Ok(()) };
        let end = flags.find([':', ')']).unwrap_or(flags.len());
        if flags[..end].chars().all(|c| matches!(c, 'i' | 'm' | 's' | 'U' | '-')) {
            return Ok(());
        }
        let shown: String = self.rest.chars().take_while(|c| matches!(c, '?' | 'i' | 'm' | 's' | 'U' | '-')).collect();
        let bad = self.rest[shown.len()..].chars().next().map_or_else(String::new, String::from);
        Err(format!("error parsing regexp: invalid or unsupported Perl syntax: `({shown}{bad}`"))
    }

    /// `{2,5}` repeats; any other brace is a brace.
    fn brace(&mut self) -> Result<bool, String> {
        let end = self.rest.find('}').filter(|end| is_count(&self.rest[..*end]));
        let Some(end) = end else {
            self.out.push_str(r"\{");
            return Ok(false);
        };
        let counts = &self.rest[..end];
        let over = |n: &str| !n.is_empty() && n.parse::<u32>().map_or(true, |n| n > MAX_REPEAT);
        if counts.split(',').any(over) {
            return Err(format!("error parsing regexp: invalid repeat count: `{{{counts}}}`"));
        }
        self.out.push_str(&format!("{{{counts}}}"));
        self.rest = &self.rest[end + 1..];
        Ok(true)
    }

    fn class(&mut self) -> Result<(), String> {
        let whole = self.rest;
        self.out.push('[');
        if self.eat("^") {
            self.out.push('^');
        }
        // A bracket that comes first closes nothing.
        if self.eat("]") {
            self.out.push_str(r"\]");
        }
        loop {
            let named = self.rest.starts_with("[:").then(|| self.rest.find(":]")).flatten();
            if let Some(end) = named {
                self.out.push_str(&self.rest[..end + 2]);
                self.rest = &self.rest[end + 2..];
                continue;
            }
            match self.next() {
                None => return Err(format!("error parsing regexp: missing closing ]: `[{whole}`")),
                Some(']') => break,
                Some('\\') => self.escape(Place::InClass)?,
                // `[`, `&&`, `--` and `~~` mean something to us that they do not mean to Go.
                Some(c @ ('[' | '&' | '~')) => self.out.push_str(&literal(c)),
                Some('-') if self.rest.starts_with('-') => self.out.push_str(r"\-"),
                Some(c) => self.out.push(c),
            }
        }
        self.out.push(']');
        Ok(())
    }
}

fn is_count(text: &str) -> bool {
    let (least, most) = text.split_once(',').unwrap_or((text, ""));
    !least.is_empty() && least.bytes().chain(most.bytes()).all(|b| b.is_ascii_digit())
}

fn literal(c: char) -> String {
    format!(r"\x{{{:x}}}", u32::from(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_s_syntax_means_what_it_means_in_go() {
        let table = [
            (r"^\d+$", "12", true),
            (r"^\d+$", "٣", false),
            (r"^\w+$", "é", false),
            (r"^[\w-]+$", "a-b_1", true),
            (r"^[^\s]+$", "a b", false),
            (r"^[[a-z]+$", "[a", true),
            (r"^[]a]+$", "]a", true),
            (r"^[a&&b]+$", "&", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^a{2,3}$", "aaa", true),
            (r"^\{x\}$", "{x}", true),
            (r"^{foo}$", "{foo}", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^\<a\>$", "<a>", true),
            (r"^\/a\_b$", "/a_b", true),
            (r"^[[:alpha:]]+$", "ab", true),
            (r"^[\D]+$", "ab", true),
            (r"^\p{Greek}+$", "αβ", true),
            (r"^\x{61}\x62\143$", "abc", true),
            (r"^a$", "a\n", false),
            (r"(?i)^ab$", "AB", true),
            (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "my-name", true),
        ];
        for (pattern, text, expected) in table {
            let regex = compile(pattern).unwrap_or_else(|e| panic!("{pattern}: {e}"));
            assert_eq!(regex.is_match(text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for pattern in
            ["(", "a{1001}", r"\8", r"\", "[a", "*a", "(?=a)", r"\1", "a**", "a+?*", "a{2}{3}", "(?x)a", "(?u:a)"]
        {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
        assert!(compile("a*?b+?(?i-s:c)(?P<d>e)(?<f>g)(?:h)").is_ok());
    }
}
