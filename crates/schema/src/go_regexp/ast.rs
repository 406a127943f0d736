//! The tree of an expression, with the measures by which Go refuses some of them.

/// Go's limit of a repetition, with the repetitions inside of it.
pub const MAX_REPEAT: u32 = 1000;
/// Go's limit of levels.
const MAX_HEIGHT: u32 = 1000;
/// Go's limit of instructions.
const MAX_SIZE: u64 = (128 << 20) / 40;

#[derive(Debug, Clone)]
pub struct Node {
    pub kind: NodeKind,
    /// Levels below and with this one.
    height: u32,
    /// Instructions that Go makes of it, or nearly so.
    size: u64,
    /// How often its innermost part is repeated.
    copies: u32,
}

#[derive(Debug, Clone)]
pub enum NodeKind {
    Empty,
    Literal {
        text: String,
        fold: Fold,
    },
    /// In the syntax of the `regex` crate, and complete: with brackets and flags.
    Class(String),
    Look(Look),
    Concat(Vec<Node>),
    Alternate(Vec<Node>),
    Capture(Box<Node>),
    Repeat {
        node: Box<Node>,
        min: u32,
        max: Option<u32>,
        greedy: bool,
    },
}

/// Whether letters stand for their other case, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    Exact,
    AnyCase,
}

/// What is looked for between characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    TextStart,
    TextEnd,
    LineStart,
    LineEnd,
    WordBoundary,
    NoWordBoundary,
}

/// Why an expression is none although every part of it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    Large,
    Deep,
}

impl Node {
    fn new(kind: NodeKind, size: u64, parts: impl Fn(&mut dyn FnMut(&Node))) -> Result<Node, Excess> {
        let (mut height, mut copies) = (1, 1);
        parts(&mut |part| {
            height = height.max(1 + part.height);
            copies = copies.max(part.copies);
        });
        let size = size.max(1);
        match () {
            () if size > MAX_SIZE => Err(Excess::Large),
            () if height > MAX_HEIGHT => Err(Excess::Deep),
            () => Ok(Node { kind, height, size, copies }),
        }
    }

    fn leaf(kind: NodeKind, size: u64) -> Result<Node, Excess> {
        Node::new(kind, size, |_| {})
    }

    pub fn class(text: String) -> Result<Node, Excess> {
        Node::leaf(NodeKind::Class(text), 1)
    }

    pub fn look(look: Look) -> Result<Node, Excess> {
        Node::leaf(NodeKind::Look(look), 1)
    }

    pub fn literal(c: char, fold: Fold) -> Result<Node, Excess> {
        Node::leaf(NodeKind::Literal { text: c.into(), fold }, 1)
    }

    /// Takes another literal in, if both are literals of the same kind.
    pub fn join(&mut self, next: &Node) -> Result<bool, Excess> {
        let (NodeKind::Literal { text, fold }, NodeKind::Literal { text: more, fold: same }) =
            (&mut self.kind, &next.kind)
        else {
            return Ok(false);
        };
        if fold != same {
            return Ok(false);
        }
        text.push_str(more);
        self.size += next.size;
        if self.size > MAX_SIZE { Err(Excess::Large) } else { Ok(true) }
    }

    pub fn concat(mut parts: Vec<Node>) -> Result<Node, Excess> {
        if let [.., last, next] = parts.as_mut_slice()
            && last.join(next)?
        {
            parts.pop();
        }
        match parts.len() {
            0 => Node::leaf(NodeKind::Empty, 1),
            1 => Ok(parts.remove(0)),
            _ => Node::many(parts, 0, NodeKind::Concat),
        }
    }

    pub fn alternate(mut parts: Vec<Node>) -> Result<Node, Excess> {
        match parts.len() {
            1 => Ok(parts.remove(0)),
            n => Node::many(parts, n as u64 - 1, NodeKind::Alternate),
        }
    }

    fn many(parts: Vec<Node>, more: u64, kind: impl FnOnce(Vec<Node>) -> NodeKind) -> Result<Node, Excess> {
        let size = parts.iter().map(|p| p.size).sum::<u64>() + more;
        let measured = Node::new(NodeKind::Empty, size, |each| parts.iter().for_each(each))?;
        Ok(Node { kind: kind(parts), ..measured })
    }

    pub fn capture(node: Node) -> Result<Node, Excess> {
        let measured = Node::new(NodeKind::Empty, 2 + node.size, |each| each(&node))?;
        Ok(Node { kind: NodeKind::Capture(Box::new(node)), ..measured })
    }

    /// `*`, `+` and `?`, which count as no repetition.
    pub fn star(node: Node, min: u32, max: Option<u32>, greedy: bool) -> Result<Node, Excess> {
        let more = if (min, max) == (0, None) { 2 } else { 1 };
        let measured = Node::new(NodeKind::Empty, more + node.size, |each| each(&node))?;
        Ok(Node { kind: NodeKind::Repeat { node: Box::new(node), min, max, greedy }, ..measured })
    }

    /// `{min,max}`.
    pub fn repeat(node: Node, min: u32, max: Option<u32>, greedy: bool) -> Result<Node, Excess> {
        let size = match max {
            None if min == 0 => 2 + node.size,
            None => 1 + u64::from(min) * node.size,
            Some(max) => u64::from(max) * node.size + u64::from(max.saturating_sub(min)),
        };
        let measured = Node::new(NodeKind::Empty, size, |each| each(&node))?;
        let copies = match max.unwrap_or(min) {
            0 if max.is_some() => 1,
            times => node.copies.saturating_mul(times.max(1)),
        };
        Ok(Node { kind: NodeKind::Repeat { node: Box::new(node), min, max, greedy }, copies, ..measured })
    }

    /// Whether the innermost part is repeated too often.
    pub fn is_excessive(&self) -> bool {
        self.copies > MAX_REPEAT
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// The same expression for the `regex` crate.
    pub fn write(&self, out: &mut String) {
        match &self.kind {
            NodeKind::Empty => {}
            NodeKind::Literal { text, fold: Fold::Exact } => out.push_str(&regex::escape(text)),
            NodeKind::Literal { text, fold: Fold::AnyCase } => {
                out.push_str("(?i:");
                out.push_str(&regex::escape(text));
                out.push(')');
            }
            NodeKind::Class(text) => out.push_str(text),
            NodeKind::Look(look) => out.push_str(match look {
                Look::TextStart => r"\A",
                Look::TextEnd => r"\z",
                Look::LineStart => "(?m:^)",
                Look::LineEnd => "(?m:$)",
                Look::WordBoundary => r"(?-u:\b)",
                Look::NoWordBoundary => r"(?-u:\B)",
            }),
            NodeKind::Concat(parts) => parts.iter().for_each(|p| match p.kind {
                NodeKind::Alternate(_) => p.write_between("(?:", out),
                _ => p.write(out),
            }),
            NodeKind::Alternate(parts) => {
                for (i, part) in parts.iter().enumerate() {
                    if i > 0 {
                        out.push('|');
                    }
                    part.write(out);
                }
            }
            NodeKind::Capture(node) => node.write_between("(", out),
            NodeKind::Repeat { node, min, max, greedy } => {
                node.write_between("(?:", out);
                out.push_str(&match (min, max) {
                    (0, None) => "*".to_owned(),
                    (1, None) => "+".to_owned(),
                    (0, Some(1)) => "?".to_owned(),
                    (min, None) => format!("{{{min},}}"),
                    (min, Some(max)) => format!("{{{min},{max}}}"),
                });
                if !greedy {
                    out.push('?');
                }
            }
        }
    }

    fn write_between(&self, open: &str, out: &mut String) {
        out.push_str(open);
        self.write(out);
        out.push(')');
    }
}
