//! What macros want to know of their arguments.

use super::{Diagnosis, Token};
use crate::parse::macros::{BIND_NAMES, BIND_NAMESPACE, OVERWRITES, is_accumulator};

/// What was parsed, and where its tree would be.
#[derive(Clone, Copy)]
pub enum Shape {
    Ident(u32),
    /// A name in backquotes.
    Escaped(u32),
    /// Something else where a name should be.
    NoName(u32),
    Select(u32),
    Other(u32),
}

impl Shape {
    pub fn offset(self) -> u32 {
        match self {
            Shape::Ident(at) | Shape::Escaped(at) | Shape::NoName(at) | Shape::Select(at) | Shape::Other(at) => at,
        }
    }

    /// Why a field cannot have this name.
    pub fn why_not(self) -> Option<(u32, &'static str)> {
        match self {
            Shape::Escaped(offset) => Some((offset, "unsupported syntax: '`'")),
            Shape::NoName(offset) => Some((offset, "unsupported ident kind")),
            _ => None,
        }
    }
}

impl Diagnosis<'_> {
    /// Tells what is wrong with the arguments of a macro.
    pub(super) fn macro_call(
        &mut self,
        name: &str,
        target: Option<Shape>,
        args: &[Shape],
        open: Option<Token>,
    ) -> Shape {
        let at = open.map_or(0, |o| o.start);
        let has = self.macros;
        let wrong = match (name, target, args) {
            ("has", None, [Shape::Select(_)]) => return Shape::Select(at),
            ("has", None, [arg]) => Some((arg.offset(), "invalid argument to has() macro".to_owned())),
            ("all" | "exists" | "exists_one", Some(_), [arg, _]) => {
                self.not_a_variable(*arg, "argument must be a simple name")
            }
            ("sortBy", _, _) if !has.sort_by => None,
            ("map", Some(_), [arg, _] | [arg, _, _]) | ("filter" | "sortBy", Some(_), [arg, _]) => {
                self.not_a_variable(*arg, "argument is not an identifier")
            }
            ("optMap" | "optFlatMap", Some(_), [arg, _]) if !matches!(arg, Shape::Ident(_)) => {
                Some((arg.offset(), format!("{name}() variable name must be a simple identifier")))
            }
            ("all" | "exists" | "exists_one" | "existsOne", Some(_), [first, second, _])
            | (
                "transformList" | "transformMap" | "transformMapEntry",
                Some(_),
                [first, second, _] | [first, second, _, _],
            ) => self.not_two_variables(*first, *second),
            ("bind", Some(Shape::Ident(target)), [arg, _, _])
                if has.bind && self.name_at(target) == BIND_NAMESPACE && !matches!(arg, Shape::Ident(_)) =>
            {
                Some((arg.offset(), BIND_NAMES.to_owned()))
            }
            _ => None,
        };
        match wrong {
            Some((offset, message)) => {
                self.later.push((offset, message));
                Shape::Other(offset)
            }
            None => Shape::Other(at),
        }
    }

    fn name_at(&self, offset: u32) -> &str {
        let text = &self.source[offset as usize..];
        &text[..text.bytes().take_while(|b| *b == b'_' || b.is_ascii_alphanumeric()).count()]
    }

    fn not_a_variable(&self, arg: Shape, message: &str) -> Option<(u32, String)> {
        match arg {
            Shape::Ident(at) if is_accumulator(self.name_at(at)) => Some((at, OVERWRITES.to_owned())),
            Shape::Ident(_) => None,
            other => Some((other.offset(), message.to_owned())),
        }
    }

    fn not_two_variables(&self, first: Shape, second: Shape) -> Option<(u32, String)> {
        for arg in [first, second] {
            if !matches!(arg, Shape::Ident(_)) {
                return Some((arg.offset(), "argument must be a simple name".to_owned()));
            }
        }
        let name = self.name_at(first.offset());
        if name == self.name_at(second.offset()) {
            return Some((second.offset(), format!("duplicate variable name: {name}")));
        }
        self.not_a_variable(first, "").or_else(|| self.not_a_variable(second, ""))
    }
}
