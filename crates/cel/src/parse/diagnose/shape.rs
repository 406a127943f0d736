//! What macros want to know of their arguments.

use super::{Diagnosis, Token};

/// What was parsed, and where it is.
#[derive(Clone, Copy)]
pub enum Shape {
    Ident(u32),
    /// A name in backquotes.
    Escaped(u32),
    /// Something else where a name should be.
    NoName(u32),
    Select,
    Literal(u32),
    Other,
}

impl Shape {
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
    pub(super) fn macro_call(&mut self, name: &str, receiver: bool, args: &[Shape], open: Option<Token>) -> Shape {
        let at = open.map_or(0, |o| o.start);
        let place = |shape: &Shape| match shape {
            Shape::Ident(offset) | Shape::Escaped(offset) | Shape::NoName(offset) | Shape::Literal(offset) => *offset,
            Shape::Select | Shape::Other => at,
        };
        let wrong = match (name, receiver, args) {
            ("has", false, [Shape::Select]) => None,
            ("has", false, [arg]) => Some((place(arg), "invalid argument to has() macro")),
            ("all" | "exists" | "exists_one", true, [arg, _]) => not_a_name(arg, "argument must be a simple name"),
            ("map", true, [arg, _] | [arg, _, _]) | ("filter" | "sortBy", true, [arg, _]) => {
                not_a_name(arg, "argument is not an identifier")
            }
            _ => None,
        };
        if let Some((offset, message)) = wrong {
            self.later.push((offset, message.into()));
        }
        Shape::Other
    }
}

fn not_a_name(arg: &Shape, message: &'static str) -> Option<(u32, &'static str)> {
    match arg {
        Shape::Literal(offset) => Some((*offset, message)),
        _ => None,
    }
}
