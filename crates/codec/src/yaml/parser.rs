//! Tokens to nodes: the grammar of YAML 1.1 as a stack of states, one for each collection that is open.

use super::cursor::{Input, Mark};
use super::nodes::{NodeId, NodeKind, Nodes};
use super::scanner::{Result, Scanner, Token, TokenKind, YamlError};
use std::collections::HashMap;

/// Reads the first document of a stream; no root if the stream is empty.
pub(super) fn first_document(data: &[u8]) -> Result<(Nodes, Option<NodeId>)> {
    let input = Input::new(data);
    let mut parser = Parser {
        scanner: Scanner::new(&input.text, input.problem),
        nodes: Nodes::default(),
        root: None,
        open: Vec::new(),
        states: Vec::new(),
        anchors: HashMap::new(),
        tags: HashMap::new(),
    };
    if parser.document_start()? {
        while let Some(state) = parser.states.pop() {
            parser.step(state)?;
        }
        // The document has ended only if what follows can be read.
        parser.scanner.peek()?;
    }
    Ok((parser.nodes, parser.root))
}

struct Parser<'t> {
    scanner: Scanner<'t>,
    nodes: Nodes,
    root: Option<NodeId>,
    /// The collections that have not ended, with where they began.
    open: Vec<(NodeId, Mark)>,
    /// What comes next in each of them, innermost last.
    states: Vec<ParserState>,
    anchors: HashMap<String, NodeId>,
    /// Prefixes of tags by their handles.
    tags: HashMap<String, String>,
}

#[derive(Clone, Copy)]
enum ParserState {
    BlockSequence,
    /// A list level with the key it belongs to.
    IndentlessSequence,
    BlockMappingKey,
    BlockMappingValue,
    FlowSequence(Turn),
    /// A single pair in a flow sequence: `[a: b]`.
    PairKey,
    PairValue,
    PairEnd,
    FlowMappingKey(Turn),
    FlowMappingValue,
    FlowMappingNoValue,
}

#[derive(Clone, Copy, PartialEq)]
enum Turn {
    First,
    Later,
}

/// A tag as it is written.
struct Tag {
    handle: String,
    suffix: String,
    start: Mark,
}

/// Where a node stands: block collections only begin in block context, and a list may be level with a key only as the
/// value of a block mapping.
#[derive(Clone, Copy, PartialEq)]
enum Context {
    Block,
    BlockMember,
    Flow,
}

impl Parser<'_> {
    fn kind(&mut self) -> Result<&TokenKind> {
        Ok(&self.scanner.peek()?.kind)
    }

    fn at(&mut self, kinds: &[TokenKind]) -> Result<bool> {
        let kind = self.kind()?;
        Ok(kinds.contains(kind))
    }

    /// Directives, if there are any, and the node of the document. False at the end of the stream.
    fn document_start(&mut self) -> Result<bool> {
        let explicit = matches!(
            self.kind()?,
            TokenKind::VersionDirective { .. } | TokenKind::TagDirective { .. } | TokenKind::DocumentStart
        );
        if *self.kind()? == TokenKind::StreamEnd {
            return Ok(false);
        }
        self.directives()?;
        if !explicit {
            self.node(Context::Block)?;
            return Ok(true);
        }
        let token = self.scanner.next()?;
        if token.kind != TokenKind::DocumentStart {
            return Err(YamlError::parser("did not find expected <document start>", token.start, Mark::default()));
        }
        let token = self.scanner.peek()?;
        let empty = matches!(
            token.kind,
            TokenKind::VersionDirective { .. }
                | TokenKind::TagDirective { .. }
                | TokenKind::DocumentStart
                | TokenKind::DocumentEnd
                | TokenKind::StreamEnd
        );
        if empty {
            let mark = token.start;
            self.empty(mark);
        } else {
            self.node(Context::Block)?;
        }
        Ok(true)
    }

    fn directives(&mut self) -> Result<()> {
        let mut version = false;
        loop {
            let (start, problem) = match self.scanner.peek()? {
                Token { kind: TokenKind::VersionDirective { major, minor }, start, .. } => {
                    let problem = if version {
                        Some("found duplicate %YAML directive")
                    } else if (*major, *minor) != (1, 1) {
                        Some("found incompatible YAML document")
                    } else {
                        None
                    };
                    version = true;
                    (*start, problem)
                }
                Token { kind: TokenKind::TagDirective { handle, prefix }, start, .. } => {
                    let before = self.tags.insert(handle.clone(), prefix.clone());
                    (*start, before.map(|_| "found duplicate %TAG directive"))
                }
                _ => break,
            };
            if let Some(problem) = problem {
                return Err(YamlError::parser(problem, start, Mark::default()));
            }
            self.scanner.next()?;
        }
        self.tags.entry("!".into()).or_insert_with(|| "!".into());
        self.tags.entry("!!".into()).or_insert_with(|| "tag:yaml.org,2002:".into());
        Ok(())
    }

    fn step(&mut self, state: ParserState) -> Result<()> {
        match state {
            ParserState::BlockSequence => self.block_sequence(),
            ParserState::IndentlessSequence => self.indentless_sequence(),
            ParserState::BlockMappingKey => self.block_mapping_key(),
            ParserState::BlockMappingValue => self.block_mapping_value(),
            ParserState::FlowSequence(turn) => self.flow_sequence(turn),
            ParserState::PairKey => self.pair_key(),
            ParserState::PairValue => self.pair_value(),
            ParserState::PairEnd => {
                self.scanner.peek()?;
                self.close();
                Ok(())
            }
            ParserState::FlowMappingKey(turn) => self.flow_mapping_key(turn),
            ParserState::FlowMappingValue => self.flow_mapping_value(),
            ParserState::FlowMappingNoValue => {
                let mark = self.scanner.peek()?.start;
                self.states.push(ParserState::FlowMappingKey(Turn::Later));
                self.empty(mark);
                Ok(())
            }
        }
    }

    /// One node: an alias, a scalar, or the beginning of a collection. `states` already says what follows it.
    fn node(&mut self, context: Context) -> Result<()> {
        let first = self.scanner.peek()?;
        let start = first.start;
        if let TokenKind::Alias(name) = &first.kind {
            let name = name.clone();
            self.scanner.next()?;
            return self.alias(name, start);
        }
        let (anchor, tag) = self.properties()?;
        let tag = self.resolve_tag(tag, start)?;
        let Token { kind, start: here, .. } = self.scanner.peek()?;
        let here = *here;
        match kind {
            TokenKind::BlockEntry if context == Context::BlockMember => {
                self.open(NodeKind::Sequence(Vec::new()), anchor, start, ParserState::IndentlessSequence);
            }
            TokenKind::Scalar { .. } => {
                let Token { kind: TokenKind::Scalar { value, plain }, .. } = self.scanner.next()? else {
                    unreachable!("the token that was just seen")
                };
                // A lone `!` says that the text decides nothing, which the tag itself says better.
                let implicit = (tag.is_empty() && plain) || tag == "!";
                self.leaf(NodeKind::Scalar { value, tag, implicit }, anchor, start);
            }
            TokenKind::FlowSequenceStart => {
                self.scanner.next()?;
                self.open_at(
                    NodeKind::Sequence(Vec::new()),
                    anchor,
                    start,
                    here,
                    ParserState::FlowSequence(Turn::First),
                );
            }
            TokenKind::FlowMappingStart => {
                self.scanner.next()?;
                self.open_at(
                    NodeKind::Mapping(Vec::new()),
                    anchor,
                    start,
                    here,
                    ParserState::FlowMappingKey(Turn::First),
                );
            }
            TokenKind::BlockSequenceStart if context != Context::Flow => {
                self.scanner.next()?;
                self.open_at(NodeKind::Sequence(Vec::new()), anchor, start, here, ParserState::BlockSequence);
            }
            TokenKind::BlockMappingStart if context != Context::Flow => {
                self.scanner.next()?;
                self.open_at(NodeKind::Mapping(Vec::new()), anchor, start, here, ParserState::BlockMappingKey);
            }
            _ if anchor.is_some() || !tag.is_empty() => {
                let implicit = tag.is_empty();
                self.leaf(NodeKind::Scalar { value: String::new(), tag, implicit }, anchor, start);
            }
            _ => return Err(YamlError::parser("did not find expected node content", here, start)),
        }
        Ok(())
    }

    /// An anchor and a tag, in either order.
    fn properties(&mut self) -> Result<(Option<String>, Option<Tag>)> {
        let (mut anchor, mut tag) = (None, None);
        loop {
            match &self.scanner.peek()?.kind {
                TokenKind::Anchor(_) if anchor.is_none() => {
                    if let Token { kind: TokenKind::Anchor(name), .. } = self.scanner.next()? {
                        anchor = Some(name);
                    }
                }
                TokenKind::Tag { .. } if tag.is_none() => {
                    if let Token { kind: TokenKind::Tag { handle, suffix }, start, .. } = self.scanner.next()? {
                        tag = Some(Tag { handle, suffix, start });
                    }
                }
                _ => return Ok((anchor, tag)),
            }
        }
    }

    /// The whole tag of a node that begins at `node`; empty if it has none.
    fn resolve_tag(&self, tag: Option<Tag>, node: Mark) -> Result<String> {
        let Some(Tag { handle, suffix, start }) = tag else { return Ok(String::new()) };
        if handle.is_empty() {
            return Ok(suffix);
        }
        match self.tags.get(&handle) {
            Some(prefix) if !(prefix.is_empty() && suffix.is_empty()) => Ok(format!("{prefix}{suffix}")),
            _ => Err(YamlError::parser("found undefined tag handle", start, node)),
        }
    }

    fn attach(&mut self, id: NodeId) {
        match self.open.last() {
            None => self.root = Some(id),
            Some((parent, _)) => self.nodes.append(*parent, id),
        }
    }

    fn leaf(&mut self, kind: NodeKind, anchor: Option<String>, start: Mark) {
        let id = self.nodes.add(kind, start.line + 1);
        if let Some(name) = anchor {
            self.anchors.insert(name, id);
        }
        self.attach(id);
    }

    /// A value that is not written.
    fn empty(&mut self, mark: Mark) {
        self.leaf(NodeKind::Scalar { value: String::new(), tag: String::new(), implicit: true }, None, mark);
    }

    fn open(&mut self, kind: NodeKind, anchor: Option<String>, start: Mark, state: ParserState) {
        self.open_at(kind, anchor, start, start, state);
    }

    /// `start` is where the node begins, `here` where its collection does.
    fn open_at(&mut self, kind: NodeKind, anchor: Option<String>, start: Mark, here: Mark, state: ParserState) {
        let id = self.nodes.add(kind, start.line + 1);
        // Known from here on: a collection can contain an alias of itself, which is found out later.
        if let Some(name) = anchor {
            self.anchors.insert(name, id);
        }
        self.attach(id);
        self.open.push((id, here));
        self.states.push(state);
    }

    fn close(&mut self) {
        self.open.pop();
    }

    fn alias(&mut self, name: String, start: Mark) -> Result<()> {
        let Some(&target) = self.anchors.get(&name) else {
            return Err(YamlError { problem: format!("unknown anchor '{name}' referenced"), line: 0 });
        };
        self.leaf(NodeKind::Alias { name, target }, None, start);
        Ok(())
    }

    /// An error in the innermost collection.
    fn unexpected<T>(&mut self, problem: &str) -> Result<T> {
        let at = self.scanner.peek()?.start;
        let context = self.open.last().map_or(Mark::default(), |(_, mark)| *mark);
        Err(YamlError::parser(problem, at, context))
    }

    fn block_sequence(&mut self) -> Result<()> {
        match self.kind()? {
            TokenKind::BlockEntry => {
                let mark = self.scanner.next()?.end;
                self.states.push(ParserState::BlockSequence);
                if self.at(&[TokenKind::BlockEntry, TokenKind::BlockEnd])? {
                    self.empty(mark);
                    return Ok(());
                }
                self.node(Context::Block)
            }
            TokenKind::BlockEnd => {
                self.scanner.next()?;
                self.close();
                Ok(())
            }
            _ => self.unexpected("did not find expected '-' indicator"),
        }
    }

    fn indentless_sequence(&mut self) -> Result<()> {
        if *self.kind()? != TokenKind::BlockEntry {
            self.close();
            return Ok(());
        }
        let mark = self.scanner.next()?.end;
        self.states.push(ParserState::IndentlessSequence);
        if self.at(&[TokenKind::BlockEntry, TokenKind::Key, TokenKind::Value, TokenKind::BlockEnd])? {
            self.empty(mark);
            return Ok(());
        }
        self.node(Context::Block)
    }

    fn block_mapping_key(&mut self) -> Result<()> {
        match self.kind()? {
            TokenKind::Key => {
                let mark = self.scanner.next()?.end;
                self.states.push(ParserState::BlockMappingValue);
                if self.at(&[TokenKind::Key, TokenKind::Value, TokenKind::BlockEnd])? {
                    self.empty(mark);
                    return Ok(());
                }
                self.node(Context::BlockMember)
            }
            TokenKind::BlockEnd => {
                self.scanner.next()?;
                self.close();
                Ok(())
            }
            _ => self.unexpected("did not find expected key"),
        }
    }

    fn block_mapping_value(&mut self) -> Result<()> {
        self.states.push(ParserState::BlockMappingKey);
        let mark = match self.scanner.peek()? {
            Token { kind: TokenKind::Value, end, .. } => {
                let mark = *end;
                self.scanner.next()?;
                if !self.at(&[TokenKind::Key, TokenKind::Value, TokenKind::BlockEnd])? {
                    return self.node(Context::BlockMember);
                }
                mark
            }
            other => other.start,
        };
        self.empty(mark);
        Ok(())
    }

    fn flow_sequence(&mut self, turn: Turn) -> Result<()> {
        if *self.kind()? != TokenKind::FlowSequenceEnd {
            if turn == Turn::Later {
                if *self.kind()? != TokenKind::FlowEntry {
                    return self.unexpected("did not find expected ',' or ']'");
                }
                self.scanner.next()?;
            }
            if *self.kind()? == TokenKind::Key {
                let start = self.scanner.next()?.start;
                self.states.push(ParserState::FlowSequence(Turn::Later));
                self.open(NodeKind::Mapping(Vec::new()), None, start, ParserState::PairKey);
                return Ok(());
            }
            if *self.kind()? != TokenKind::FlowSequenceEnd {
                self.states.push(ParserState::FlowSequence(Turn::Later));
                return self.node(Context::Flow);
            }
        }
        self.scanner.next()?;
        self.close();
        Ok(())
    }

    fn pair_key(&mut self) -> Result<()> {
        self.states.push(ParserState::PairValue);
        if !self.at(&[TokenKind::Value, TokenKind::FlowEntry, TokenKind::FlowSequenceEnd])? {
            return self.node(Context::Flow);
        }
        let mark = self.scanner.next()?.end;
        self.empty(mark);
        Ok(())
    }

    fn pair_value(&mut self) -> Result<()> {
        self.states.push(ParserState::PairEnd);
        let mark = self.scanner.peek()?.start;
        if *self.kind()? == TokenKind::Value {
            self.scanner.next()?;
            if !self.at(&[TokenKind::FlowEntry, TokenKind::FlowSequenceEnd])? {
                return self.node(Context::Flow);
            }
        }
        self.empty(mark);
        Ok(())
    }

    fn flow_mapping_key(&mut self, turn: Turn) -> Result<()> {
        if *self.kind()? != TokenKind::FlowMappingEnd {
            if turn == Turn::Later {
                if *self.kind()? != TokenKind::FlowEntry {
                    return self.unexpected("did not find expected ',' or '}'");
                }
                self.scanner.next()?;
            }
            if *self.kind()? == TokenKind::Key {
                self.scanner.next()?;
                self.states.push(ParserState::FlowMappingValue);
                if !self.at(&[TokenKind::Value, TokenKind::FlowEntry, TokenKind::FlowMappingEnd])? {
                    return self.node(Context::Flow);
                }
                let mark = self.scanner.peek()?.start;
                self.empty(mark);
                return Ok(());
            }
            if *self.kind()? != TokenKind::FlowMappingEnd {
                self.states.push(ParserState::FlowMappingNoValue);
                return self.node(Context::Flow);
            }
        }
        self.scanner.next()?;
        self.close();
        Ok(())
    }

    fn flow_mapping_value(&mut self) -> Result<()> {
        self.states.push(ParserState::FlowMappingKey(Turn::Later));
        if *self.kind()? == TokenKind::Value {
            self.scanner.next()?;
            if !self.at(&[TokenKind::FlowEntry, TokenKind::FlowMappingEnd])? {
                return self.node(Context::Flow);
            }
        }
        let mark = self.scanner.peek()?.start;
        self.empty(mark);
        Ok(())
    }
}
