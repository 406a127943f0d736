//! The first document of a YAML stream as a tree of nodes. Aliases stay references: expanding them is the next
//! step's business, with its limits.

use libyaml_safer::{ErrorKind, EventData, Parser};
use std::collections::HashMap;
use std::io::BufReader;

/// Collections inside one another; the reference's limit for either style.
const MAX_DEPTH: usize = 10_000;

/// The library looks at every open flow collection for each token. This bounds what deep nesting can make
/// it do: a document of the largest size that is ten levels deep everywhere stays far below.
const MAX_WORK: usize = 200_000_000;

/// Each directive is compared with all before it. Documents have one or two.
const MAX_DIRECTIVES: usize = 64;

/// The library reads its input in pieces of this size, so that it does not hold all of it decoded.
const READ_BYTES: usize = 8 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct NodeId(u32);

#[derive(Debug)]
pub(super) struct Node {
    pub kind: Kind,
    /// Counted from 1.
    pub line: u64,
}

#[derive(Debug)]
pub(super) enum Kind {
    Scalar {
        value: String,
        /// Empty if there is none.
        tag: String,
        /// Plain, so that its text decides what it is.
        implicit: bool,
    },
    Sequence(Vec<NodeId>),
    /// Keys and values in turn.
    Mapping(Vec<NodeId>),
    Alias {
        name: String,
        target: NodeId,
    },
}

#[derive(Debug, Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
}

impl Nodes {
    pub fn get(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    fn add(&mut self, kind: Kind, line: u64) -> NodeId {
        self.nodes.push(Node { kind, line });
        NodeId((self.nodes.len() - 1) as u32)
    }
}

/// Reads the first document; `None` if there is none. Errors are worded as the reference's.
pub(super) fn read(data: &[u8]) -> Result<(Nodes, Option<NodeId>), String> {
    if data.split(|&b| b == b'\n').filter(|line| line.starts_with(b"%")).count() > MAX_DIRECTIVES {
        return Err("found too many directives".into());
    }
    let mut input = BufReader::with_capacity(READ_BYTES, data);
    let mut parser = Parser::new();
    parser.set_input(&mut input);
    let mut builder = Builder::default();
    loop {
        let event = parser.parse().map_err(|e| message(&e, data))?;
        let line = event.start_mark.line + 1;
        match event.data {
            EventData::StreamStart { .. } | EventData::DocumentStart { .. } => {}
            EventData::StreamEnd => return Ok((builder.nodes, None)),
            EventData::DocumentEnd { .. } => return Ok((builder.nodes, builder.root)),
            EventData::Alias { anchor } => builder.alias(anchor, line)?,
            EventData::Scalar { anchor, tag, value, plain_implicit, .. } => {
                let kind = Kind::Scalar { value, tag: tag.unwrap_or_default(), implicit: plain_implicit };
                let id = builder.nodes.add(kind, line);
                builder.anchor(anchor, id);
                builder.attach(id);
            }
            EventData::SequenceStart { anchor, .. } => builder.open(Kind::Sequence(Vec::new()), anchor, line)?,
            EventData::MappingStart { anchor, .. } => builder.open(Kind::Mapping(Vec::new()), anchor, line)?,
            EventData::SequenceEnd | EventData::MappingEnd => {
                builder.open.pop();
            }
        }
        builder.work += builder.open.len();
        if builder.work > MAX_WORK {
            return Err(too_deep(line));
        }
    }
}

fn too_deep(line: u64) -> String {
    format!("line {line}: exceeded max depth of {MAX_DEPTH}")
}

#[derive(Default)]
struct Builder {
    nodes: Nodes,
    root: Option<NodeId>,
    /// Collections that have not ended.
    open: Vec<NodeId>,
    anchors: HashMap<String, NodeId>,
    work: usize,
}

impl Builder {
    fn attach(&mut self, id: NodeId) {
        match self.open.last() {
            None => self.root = Some(id),
            Some(parent) => match &mut self.nodes.nodes[parent.0 as usize].kind {
                Kind::Sequence(children) | Kind::Mapping(children) => children.push(id),
                Kind::Scalar { .. } | Kind::Alias { .. } => {}
            },
        }
    }

    fn open(&mut self, kind: Kind, anchor: Option<String>, line: u64) -> Result<(), String> {
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(line));
        }
        let id = self.nodes.add(kind, line);
        // Known from here on: a collection can contain an alias of itself, which is found out later.
        self.anchor(anchor, id);
        self.attach(id);
        self.open.push(id);
        Ok(())
    }

    fn anchor(&mut self, anchor: Option<String>, id: NodeId) {
        if let Some(name) = anchor {
            self.anchors.insert(name, id);
        }
    }

    fn alias(&mut self, name: String, line: u64) -> Result<(), String> {
        let Some(&target) = self.anchors.get(&name) else {
            return Err(format!("unknown anchor '{name}' referenced"));
        };
        let id = self.nodes.add(Kind::Alias { name, target }, line);
        self.attach(id);
        Ok(())
    }
}

/// The reference names a line only if it is not the first, and counts the lines of parser errors from 0.
fn message(error: &libyaml_safer::Error, data: &[u8]) -> String {
    if matches!(error.kind(), ErrorKind::Reader | ErrorKind::Io) {
        return reader_problem(data).into();
    }
    let line_of = |mark: Option<libyaml_safer::Mark>| mark.map_or(0, |m| m.line);
    let mut line = line_of(error.problem_mark());
    if line != 0 && error.kind() == ErrorKind::Scanner {
        line += 1;
    } else if line == 0 {
        line = line_of(error.context_mark());
    }
    match line {
        0 => error.problem().into(),
        line => format!("line {line}: {}", error.problem()),
    }
}

/// What the reference says of input that is no text.
fn reader_problem(data: &[u8]) -> &'static str {
    let Err(e) = std::str::from_utf8(data) else { return "control characters are not allowed" };
    // A control character may come first.
    let good = std::str::from_utf8(&data[..e.valid_up_to()]).unwrap_or("");
    if good.chars().any(is_control) {
        return "control characters are not allowed";
    }
    let bad = &data[e.valid_up_to()..];
    let width = match bad[0] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => return "invalid leading UTF-8 octet",
    };
    if bad.len() < width {
        return "incomplete UTF-8 octet sequence";
    }
    if bad[1..width].iter().any(|b| b & 0xc0 != 0x80) {
        return "invalid trailing UTF-8 octet";
    }
    // Well formed, but for a character in fewer bytes, or for none at all.
    match bad[0] {
        0xc0 | 0xc1 => "invalid length of a UTF-8 sequence",
        0xe0 if bad[1] < 0xa0 => "invalid length of a UTF-8 sequence",
        0xf0 if bad[1] < 0x90 => "invalid length of a UTF-8 sequence",
        _ => "invalid Unicode character",
    }
}

fn is_control(c: char) -> bool {
    !matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}
