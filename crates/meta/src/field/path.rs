//! Field paths. A path is a chain of borrowed frames on the stack: walking a valid object allocates nothing, and
//! only an error renders its path.

use std::fmt;

/// The way from the root of an object to a field. `Path::new("spec").child("ports").index(0)` reads
/// `spec.ports[0]`. Each step borrows the one before; [`Path::item`] and [`Path::entry`] take two steps at
/// once so that a loop needs only one binding.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    /// The object itself. Renders as `<nil>` alone, which is what the reference prints for an absent path.
    Root,
    Name(&'a str),
    Names(&'a [&'a str]),
    Index(usize),
    Key(&'a str),
    Item(&'a str, usize),
    Entry(&'a str, &'a str),
}

impl<'a> Path<'a> {
    pub const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    pub const fn new(name: &'a str) -> Path<'a> {
        Path { parent: None, step: Step::Name(name) }
    }

    /// Several names at once: `Path::of(&["spec", "template"])` is `spec.template`.
    pub const fn of(names: &'a [&'a str]) -> Path<'a> {
        Path { parent: None, step: Step::Names(names) }
    }

    const fn step<'b>(&'b self, step: Step<'b>) -> Path<'b> {
        Path { parent: Some(self), step }
    }

    pub const fn child<'b>(&'b self, name: &'b str) -> Path<'b> {
        self.step(Step::Name(name))
    }

    pub const fn children<'b>(&'b self, names: &'b [&'b str]) -> Path<'b> {
        self.step(Step::Names(names))
    }

    /// An element of a list.
    pub const fn index(&self, index: usize) -> Path<'_> {
        self.step(Step::Index(index))
    }

    /// An entry of a map.
    pub const fn key<'b>(&'b self, key: &'b str) -> Path<'b> {
        self.step(Step::Key(key))
    }

    /// `path.child(name).index(index)`.
    pub const fn item<'b>(&'b self, name: &'b str, index: usize) -> Path<'b> {
        self.step(Step::Item(name, index))
    }

    /// `path.child(name).key(key)`.
    pub const fn entry<'b>(&'b self, name: &'b str, key: &'b str) -> Path<'b> {
        self.step(Step::Entry(name, key))
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render())
    }
}

impl Path<'_> {
    pub(super) fn render(&self) -> String {
        let mut steps = Vec::with_capacity(8);
        let mut next = Some(self);
        while let Some(path) = next {
            steps.push(path.step);
            next = path.parent;
        }
        let mut out = String::new();
        for step in steps.iter().rev() {
            match *step {
                Step::Root => {}
                Step::Name(name) => push_name(&mut out, name),
                Step::Names(names) => names.iter().for_each(|name| push_name(&mut out, name)),
                Step::Index(i) => push_subscript(&mut out, i),
                Step::Key(key) => push_subscript(&mut out, key),
                Step::Item(name, i) => {
                    push_name(&mut out, name);
                    push_subscript(&mut out, i);
                }
                Step::Entry(name, key) => {
                    push_name(&mut out, name);
                    push_subscript(&mut out, key);
                }
            }
        }
        if out.is_empty() {
            out.push_str("<nil>");
        }
        out
    }
}

fn push_name(out: &mut String, name: &str) {
    if name.is_empty() {
        // The reference cannot tell an empty name from an empty subscript.
        return push_subscript(out, "");
    }
    if !out.is_empty() {
        out.push('.');
    }
    out.push_str(name);
}

fn push_subscript(out: &mut String, subscript: impl fmt::Display) {
    use fmt::Write;
    write!(out, "[{subscript}]").expect("writing to a String cannot fail");
}
