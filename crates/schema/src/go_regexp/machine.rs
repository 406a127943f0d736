//! Runs expressions that are too large for the `regex` crate: in that, `\pL{1,500}` is the automaton of a letter five
//! hundred times. Here it is five hundred instructions, made for one search and dropped after it.

use super::ast::{Fold, Look, Node, NodeKind};
use regex::Regex;
use std::collections::HashMap;

/// Instructions of one program: what it takes (30 MB) lasts as long as the search.
const MAX_INSTRUCTIONS: usize = 1 << 20;
/// Steps of one search: half a second or so.
const MAX_STEPS: u64 = 100_000_000;

#[derive(Clone, Copy)]
enum Instruction {
    Char(char),
    Class(u32),
    Look(Look),
    Split(u32, u32),
    Jump(u32),
    Match,
}

/// A program and its classes.
struct Program {
    code: Vec<Instruction>,
    classes: Vec<Class>,
    known: HashMap<String, u32>,
}

struct Class {
    ascii: u128,
    regex: Regex,
}

impl Class {
    fn new(text: &str) -> Result<Class, String> {
        let regex = Regex::new(&format!(r"\A(?:{text})\z")).map_err(|_| "a class is too large".to_owned())?;
        let takes = |code: &u8| regex.is_match(char::from(*code).encode_utf8(&mut [0; 4]));
        let ascii = (0..128u8).filter(takes).fold(0, |bits, code| bits | 1 << code);
        Ok(Class { ascii, regex })
    }

    fn has(&self, c: char) -> bool {
        match u32::from(c) {
            code @ 0..128 => self.ascii >> code & 1 == 1,
            _ => self.regex.is_match(c.encode_utf8(&mut [0; 4])),
        }
    }
}

/// Whether the expression matches anywhere in a text.
pub fn is_match(node: &Node, text: &str) -> Result<bool, String> {
    if node.size() > MAX_INSTRUCTIONS as u64 {
        return Err("expression too large to be matched".to_owned());
    }
    let mut program = Program { code: Vec::new(), classes: Vec::new(), known: HashMap::new() };
    program.add(node)?;
    program.push(Instruction::Match)?;
    Search { program: &program, steps: 0 }.run(text)
}

impl Program {
    fn push(&mut self, instruction: Instruction) -> Result<usize, String> {
        if self.code.len() >= MAX_INSTRUCTIONS {
            return Err("expression too large to be matched".to_owned());
        }
        self.code.push(instruction);
        Ok(self.code.len() - 1)
    }

    fn here(&self) -> u32 {
        self.code.len() as u32
    }

    fn add(&mut self, node: &Node) -> Result<(), String> {
        match &node.kind {
            NodeKind::Empty => {}
            NodeKind::Literal { text, fold: Fold::Exact } => {
                for c in text.chars() {
                    self.push(Instruction::Char(c))?;
                }
            }
            NodeKind::Literal { text, fold: Fold::AnyCase } => {
                for c in text.chars() {
                    self.class(&format!("(?i:{})", regex::escape(c.encode_utf8(&mut [0; 4]))))?;
                }
            }
            NodeKind::Class(text) => self.class(text)?,
            NodeKind::Look(look) => drop(self.push(Instruction::Look(*look))?),
            NodeKind::Concat(parts) => parts.iter().try_for_each(|part| self.add(part))?,
            NodeKind::Alternate(parts) => self.alternatives(parts)?,
            NodeKind::Capture(node) => self.add(node)?,
            NodeKind::Repeat { node, min, max, .. } => self.repeated(node, *min, *max)?,
        }
        Ok(())
    }

    fn class(&mut self, text: &str) -> Result<(), String> {
        let known = self.known.get(text).copied();
        let index = match known {
            Some(index) => index,
            None => {
                self.classes.push(Class::new(text)?);
                let index = self.classes.len() as u32 - 1;
                self.known.insert(text.to_owned(), index);
                index
            }
        };
        self.push(Instruction::Class(index)).map(drop)
    }

    fn alternatives(&mut self, parts: &[Node]) -> Result<(), String> {
        let mut ends = Vec::new();
        let Some((last, others)) = parts.split_last() else { return Ok(()) };
        for part in others {
            let split = self.push(Instruction::Split(0, 0))?;
            self.add(part)?;
            ends.push(self.push(Instruction::Jump(0))?);
            self.code[split] = Instruction::Split(split as u32 + 1, self.here());
        }
        self.add(last)?;
        let end = self.here();
        ends.into_iter().for_each(|jump| self.code[jump] = Instruction::Jump(end));
        Ok(())
    }

    fn repeated(&mut self, node: &Node, min: u32, max: Option<u32>) -> Result<(), String> {
        for _ in 0..min {
            self.add(node)?;
        }
        let Some(max) = max else {
            let split = self.push(Instruction::Split(0, 0))?;
            self.add(node)?;
            self.push(Instruction::Jump(split as u32))?;
            self.code[split] = Instruction::Split(split as u32 + 1, self.here());
            return Ok(());
        };
        let mut splits = Vec::new();
        for _ in min..max {
            splits.push(self.push(Instruction::Split(0, 0))?);
            self.add(node)?;
        }
        let end = self.here();
        splits.into_iter().for_each(|split| self.code[split] = Instruction::Split(split as u32 + 1, end));
        Ok(())
    }
}

struct Search<'a> {
    program: &'a Program,
    steps: u64,
}

/// Where a search may be at one place of the text; each instruction at most once.
struct Threads {
    dense: Vec<u32>,
    /// The place at which an instruction was last added, counted from one.
    added: Vec<u32>,
}

/// What is on both sides of a place in the text.
#[derive(Clone, Copy)]
struct Place {
    before: Option<char>,
    after: Option<char>,
    number: u32,
}

impl Search<'_> {
    fn run(mut self, text: &str) -> Result<bool, String> {
        let size = self.program.code.len();
        let new = || Threads { dense: Vec::new(), added: vec![0; size] };
        let (mut now, mut next, mut stack) = (new(), new(), Vec::new());
        let mut chars = text.chars();
        let mut place = Place { before: None, after: chars.next(), number: 1 };
        loop {
            // A match may begin anywhere.
            if self.follow(0, place, &mut now, &mut stack)? {
                return Ok(true);
            }
            let Some(c) = place.after else { return Ok(false) };
            let after = Place { before: Some(c), after: chars.next(), number: place.number.saturating_add(1) };
            for at in std::mem::take(&mut now.dense) {
                let takes = match self.program.code[at as usize] {
                    Instruction::Char(wanted) => wanted == c,
                    Instruction::Class(class) => self.program.classes[class as usize].has(c),
                    _ => false,
                };
                if takes && self.follow(at + 1, after, &mut next, &mut stack)? {
                    return Ok(true);
                }
            }
            std::mem::swap(&mut now, &mut next);
            place = after;
        }
    }

    /// Adds all that can be reached from an instruction without reading; true if that is a match.
    fn follow(&mut self, from: u32, place: Place, to: &mut Threads, stack: &mut Vec<u32>) -> Result<bool, String> {
        stack.clear();
        stack.push(from);
        while let Some(at) = stack.pop() {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return Err("expression takes too long to be matched".to_owned());
            }
            if std::mem::replace(&mut to.added[at as usize], place.number) == place.number {
                continue;
            }
            match self.program.code[at as usize] {
                Instruction::Match => return Ok(true),
                Instruction::Jump(target) => stack.push(target),
                Instruction::Split(a, b) => stack.extend([b, a]),
                Instruction::Look(look) => {
                    if holds(look, place) {
                        stack.push(at + 1);
                    }
                }
                Instruction::Char(_) | Instruction::Class(_) => to.dense.push(at),
            }
        }
        Ok(false)
    }
}

fn holds(look: Look, place: Place) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c == '_' || c.is_ascii_alphanumeric());
    match look {
        Look::TextStart => place.before.is_none(),
        Look::TextEnd => place.after.is_none(),
        Look::LineStart => place.before.is_none_or(|c| c == '\n'),
        Look::LineEnd => place.after.is_none_or(|c| c == '\n'),
        Look::WordBoundary => is_word(place.before) != is_word(place.after),
        Look::NoWordBoundary => is_word(place.before) == is_word(place.after),
    }
}
