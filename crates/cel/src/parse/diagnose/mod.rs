//! What is wrong with a text that is no expression, worded as the reference's generated (ANTLR) parser words it.
//!
//! It follows the grammar rule by rule, as that parser does, and goes on after a mistake as that parser does: a token too
//! many is left out, a missing one is taken as there, and otherwise tokens are skipped up to one that can follow a rule
//! that is open. While it looks for such a token nothing else is told.

mod rules;
mod shape;

use super::Macros;
use super::lexer::{Token, TokenKind, Tokens};
use crate::error::{Issues, MAX_ISSUES};
use crate::stack::on_stack;

/// How often the parser goes on after a mistake.
const MAX_RECOVERIES: u32 = 30;
/// How many tokens it skips to do so.
const MAX_SKIPPED: u32 = 256;

/// What nests deeper is looked at with a stack of its own: each level goes through all rules of the grammar.
const SHALLOW: usize = 32;
/// Enough for the deepest nesting that the rules allow, in bytes.
const STACK: usize = 32 << 20;

pub fn diagnose(source: &str, tokens: &Tokens, macros: Macros) -> Issues {
    let nests = |token: &&Token| {
        matches!(token.kind, TokenKind::LParen | TokenKind::LBracket | TokenKind::LBrace | TokenKind::Question)
    };
    if tokens.list.iter().filter(nests).count() <= SHALLOW {
        return run(source, tokens, macros);
    }
    on_stack(STACK, || run(source, tokens, macros)).unwrap_or_else(|| {
        let mut issues = Issues::new(source);
        issues.report_nowhere("Syntax error: the expression nests too deep to tell where");
        issues
    })
}

fn run(source: &str, tokens: &Tokens, macros: Macros) -> Issues {
    let mut d = Diagnosis {
        source,
        tokens,
        macros,
        at: 0,
        issues: Issues::new(source),
        later: Vec::new(),
        syntax_errors: 0,
        mistakes: 0,
        frames: Vec::new(),
        recovering: false,
        recoveries: 0,
        last_error: None,
        open: super::Open::default(),
        partial: None,
    };
    // What is found in the tree is told only if the end was reached.
    if d.reach(0).is_ok() && d.start().is_ok() {
        for (offset, message) in std::mem::take(&mut d.later) {
            d.issues.report(offset, message);
        }
    }
    d.issues
}

/// Some kinds of tokens.
pub type Set = u64;

const fn set(kinds: &[TokenKind]) -> Set {
    let mut set = 0;
    let mut i = 0;
    while i < kinds.len() {
        set |= 1 << kinds[i] as u8;
        i += 1;
    }
    set
}

fn has(set: Set, kind: TokenKind) -> bool {
    set >> kind as u8 & 1 == 1
}

/// What can come next: some tokens, and perhaps the end of the rule.
#[derive(Clone, Copy)]
struct Next {
    tokens: Set,
    end: bool,
}

const fn only(kinds: &[TokenKind]) -> Next {
    Next { tokens: set(kinds), end: false }
}

const fn or_end(kinds: &[TokenKind]) -> Next {
    Next { tokens: set(kinds), end: true }
}

/// Why a rule was left.
enum Stop {
    /// What came cannot be what was wanted.
    Mismatch { at: usize, wanted: Next },
    /// Between alternatives: from the token where they begin to the one that fits none.
    NoAlternative { from: usize, at: usize },
    /// Enough: a limit was reached, and told.
    Abort,
}

struct Diagnosis<'a> {
    source: &'a str,
    tokens: &'a Tokens,
    macros: Macros,
    at: usize,
    issues: Issues,
    /// What is wrong with the tree.
    later: Vec<(u32, String)>,
    syntax_errors: usize,
    /// How many of the lexer's mistakes were told.
    mistakes: usize,
    /// What can follow each rule that is open.
    frames: Vec<Next>,
    recovering: bool,
    recoveries: u32,
    /// Where the last recovery began, and the points in the grammar that had one there.
    last_error: Option<(usize, Vec<u32>)>,
    open: super::Open,
    /// What is left of a rule that stops now.
    partial: Option<shape::Shape>,
}

impl Diagnosis<'_> {
    fn token(&self, at: usize) -> Token {
        self.tokens.list[at.min(self.tokens.list.len() - 1)]
    }

    /// The kind of the n-th token from here; looking at it makes the lexer go there.
    fn look(&mut self, n: usize) -> Result<TokenKind, Stop> {
        self.reach(self.at + n)?;
        Ok(self.token(self.at + n).kind)
    }

    /// Tells the lexer's mistakes before a token.
    fn reach(&mut self, at: usize) -> Result<(), Stop> {
        while let Some(mistake) = self.tokens.mistakes.get(self.mistakes).filter(|m| m.before as usize <= at) {
            self.mistakes += 1;
            let text = &self.source[mistake.start as usize..mistake.end as usize];
            let message = format!("token recognition error at: '{text}'");
            self.syntax_error(mistake.start, &message)?;
        }
        Ok(())
    }

    fn syntax_error(&mut self, offset: u32, message: &str) -> Result<(), Stop> {
        if self.syntax_errors == MAX_ISSUES {
            self.issues.report(offset, format!("Syntax error: More than {MAX_ISSUES} syntax errors"));
            return Err(Stop::Abort);
        }
        self.syntax_errors += 1;
        self.issues.report(offset, format!("Syntax error: {message}"));
        Ok(())
    }

    fn consume(&mut self) -> Result<(), Stop> {
        if self.token(self.at).kind != TokenKind::Eof {
            self.at += 1;
        }
        self.reach(self.at)
    }

    /// What can come next, with what follows the rules that are open.
    fn expected(&self, next: Next) -> Set {
        let mut tokens = next.tokens;
        let mut end = next.end;
        for frame in self.frames.iter().rev() {
            if !end {
                return tokens;
            }
            tokens |= frame.tokens;
            end = frame.end;
        }
        if end { tokens | set(&[TokenKind::Eof]) } else { tokens }
    }

    fn matched(&mut self) {
        self.recovering = false;
        self.last_error = None;
    }

    /// Takes a token of this kind, or what can be taken for one. `None`: it is missing, and was told.
    fn expect(&mut self, kind: TokenKind, after: Next) -> Result<Option<Token>, Stop> {
        if self.look(0)? == kind {
            let token = self.token(self.at);
            self.matched();
            self.consume()?;
            return Ok(Some(token));
        }
        self.count_recovery()?;
        let wanted = only(&[kind]);
        if self.delete_token(wanted)? {
            let token = self.token(self.at);
            self.consume()?;
            return Ok(Some(token));
        }
        let current = self.look(0)?;
        if has(self.expected(after), current) {
            if !self.recovering {
                self.recovering = true;
                let message = format!("missing {} at {}", names(wanted.tokens), self.shown(self.at));
                self.syntax_error(self.token(self.at).start, &message)?;
            }
            return Ok(None);
        }
        Err(Stop::Mismatch { at: self.at, wanted })
    }

    /// If the token after this one is what is wanted, this one is one too many.
    fn delete_token(&mut self, wanted: Next) -> Result<bool, Stop> {
        let next = self.look(1)?;
        if !has(self.expected(wanted), next) {
            return Ok(false);
        }
        self.unwanted(wanted)?;
        self.consume()?;
        self.matched();
        Ok(true)
    }

    fn unwanted(&mut self, wanted: Next) -> Result<(), Stop> {
        if self.recovering {
            return Ok(());
        }
        self.recovering = true;
        let message = format!("extraneous input {} expecting {}", self.shown(self.at), names(self.expected(wanted)));
        self.syntax_error(self.token(self.at).start, &message)
    }

    /// At the beginning of alternatives: whether the next token can begin one of them.
    fn sync(&mut self, next: Next) -> Result<(), Stop> {
        if self.recovering || next.end || has(next.tokens, self.look(0)?) {
            return Ok(());
        }
        if self.delete_token(next)? { Ok(()) } else { Err(Stop::Mismatch { at: self.at, wanted: next }) }
    }

    /// After a turn of a loop: what cannot come next is skipped.
    fn sync_loop(&mut self, next: Next) -> Result<(), Stop> {
        if self.recovering || next.end || has(next.tokens, self.look(0)?) {
            return Ok(());
        }
        self.unwanted(next)?;
        let until = self.expected(next) | self.recovery_set();
        self.skip_to(until, None)
    }

    fn recovery_set(&self) -> Set {
        self.frames.iter().fold(0, |all, frame| all | frame.tokens)
    }

    fn skip_to(&mut self, until: Set, mut skipped: Option<u32>) -> Result<(), Stop> {
        loop {
            let kind = self.look(0)?;
            if kind == TokenKind::Eof || has(until, kind) {
                return Ok(());
            }
            if let Some(n) = &mut skipped {
                if *n >= MAX_SKIPPED {
                    let message = format!("error recovery token lookahead limit exceeded: {MAX_SKIPPED}");
                    self.issues.report_nowhere(message);
                    return Err(Stop::Abort);
                }
                *n += 1;
            }
            self.consume()?;
        }
    }

    fn count_recovery(&mut self) -> Result<(), Stop> {
        if self.recoveries == MAX_RECOVERIES {
            let message = format!("error recovery attempt limit exceeded: {MAX_RECOVERIES}");
            self.syntax_error(self.token(self.at).start, &message)?;
            return Err(Stop::Abort);
        }
        self.recoveries += 1;
        Ok(())
    }

    /// Tells why a rule was left, and goes to where another one can go on. `point` is the place in the grammar.
    fn recover(&mut self, stop: Stop, point: u32) -> Result<(), Stop> {
        if !self.recovering {
            let (at, message) = match &stop {
                Stop::Abort => return Err(stop),
                Stop::Mismatch { at, wanted } => {
                    let wanted = names(self.expected(*wanted));
                    (*at, format!("mismatched input {} expecting {wanted}", self.shown(*at)))
                }
                Stop::NoAlternative { from, at } => (*at, self.no_alternative(*from, *at)),
            };
            self.recovering = true;
            self.syntax_error(self.token(at).start, &message)?;
        } else if let Stop::Abort = stop {
            return Err(stop);
        }
        self.count_recovery()?;
        let mut skipped = 0;
        let again = matches!(&self.last_error, Some((at, points)) if *at == self.at && points.contains(&point));
        if again {
            // Nothing was skipped here before; without this it would go on forever.
            skipped += 1;
            self.consume()?;
        }
        let at = self.at;
        let points = &mut self.last_error.get_or_insert_with(|| (at, Vec::new()));
        points.0 = at;
        points.1.push(point);
        self.skip_to(self.recovery_set(), Some(skipped))
    }

    /// The text of what fits no alternative. Literals where a name should be get the words they always had.
    fn no_alternative(&self, from: usize, at: usize) -> String {
        let (first, last) = (self.token(from), self.token(at));
        if first.kind == TokenKind::Eof {
            return "no viable alternative at input '<EOF>'".into();
        }
        // The end has no text, but what is before it and is no token has.
        let text = &self.source[first.start as usize..last.end as usize];
        let text = self.without_mistakes(text, first.start, from, at);
        if let Some(word) = text.char_indices().nth(1).map(|(i, _)| &text[i..])
            && matches!(word, "true" | "false" | "null")
        {
            return format!("mismatched input '{word}' expecting IDENTIFIER");
        }
        format!("no viable alternative at input '{}'", escaped(&text))
    }

    /// Text without what the lexer could not read; up to the end of the last token that has a text.
    fn without_mistakes(&self, text: &str, start: u32, from: usize, at: usize) -> String {
        let mut out = String::with_capacity(text.len());
        let mut position = start as usize;
        let end = start as usize + text.len();
        for mistake in &self.tokens.mistakes {
            let inside = mistake.before as usize > from && mistake.before as usize <= at;
            if inside {
                out.push_str(&self.source[position..mistake.start as usize]);
                position = mistake.end as usize;
            }
        }
        out.push_str(&self.source[position.min(end)..end]);
        out
    }

    /// A token in quotes.
    fn shown(&self, at: usize) -> String {
        let token = self.token(at);
        match token.kind {
            TokenKind::Eof => "'<EOF>'".into(),
            _ => format!("'{}'", escaped(token.text(self.source))),
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t")
}

/// A set of tokens as messages list it.
fn names(set: Set) -> String {
    let mut names = Vec::new();
    if has(set, TokenKind::Eof) {
        names.push("<EOF>");
    }
    let named = NAMES.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1);
    names.extend(named.map(|(_, name)| *name));
    match names.as_slice() {
        [one] => (*one).to_owned(),
        many => format!("{{{}}}", many.join(", ")),
    }
}

const NAMES: [&str; 35] = [
    "'=='",
    "'!='",
    "'in'",
    "'<'",
    "'<='",
    "'>='",
    "'>'",
    "'&&'",
    "'||'",
    "'['",
    "']'",
    "'{'",
    "'}'",
    "'('",
    "')'",
    "'.'",
    "','",
    "'-'",
    "'!'",
    "'?'",
    "':'",
    "'+'",
    "'*'",
    "'/'",
    "'%'",
    "'true'",
    "'false'",
    "'null'",
    "NUM_FLOAT",
    "NUM_INT",
    "NUM_UINT",
    "STRING",
    "BYTES",
    "IDENTIFIER",
    "ESC_IDENTIFIER",
];
